"""The notes on Python `mcp` 1.x, with tools that ask the client: by requests in mid-call."""

from mcp.server.fastmcp import Context
from mcp.types import Completion, SamplingMessage, TextContent
from pydantic import BaseModel

from tests.peers.servers.with_mcp_1 import server


class Name(BaseModel):
    name: str


@server.tool()
async def ask_name(ctx: Context) -> str:  # type: ignore[type-arg]
    """Ask the user for a name."""
    answer = await ctx.elicit("Who are you?", Name)
    return f"Hello, {answer.data.name}!" if answer.action == "accept" else answer.action


@server.tool()
async def ask_model(ctx: Context) -> str:  # type: ignore[type-arg]
    """Ask the client's model for a city."""
    prompt = SamplingMessage(role="user", content=TextContent(type="text", text="Which city?"))
    answer = await ctx.session.create_message([prompt], max_tokens=10)
    return f"The model says {answer.content.text}."


@server.tool()
async def ask_roots(ctx: Context) -> str:  # type: ignore[type-arg]
    """Ask the client for its roots."""
    return " ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@server.completion()
async def complete(ref: object, argument: object, context: object) -> Completion:
    return Completion(values=["Ada"])


if __name__ == "__main__":
    server.run()
