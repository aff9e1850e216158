"""The notes on Python `mcp` 1.x, with tools that ask the client: by requests in mid-call.

Subscriptions are there by the SDK's lower layer, which has them but says that it has not.
"""

import asyncio
from typing import Any

from mcp.server.fastmcp import Context
from mcp.server.lowlevel.server import request_ctx
from mcp.types import Completion, SamplingMessage, ServerCapabilities, TextContent
from pydantic import AnyUrl, BaseModel

from tests.peers.servers.notes import CHANGES_EVERY_S, TODAY
from tests.peers.servers.with_mcp_1 import server

below = server._mcp_server
declared = below.get_capabilities
subscribed: dict[str, asyncio.Task[None]] = {}


def capabilities(*options: Any) -> ServerCapabilities:
    """With subscriptions, which this SDK calls absent whatever is registered."""
    found = declared(*options)
    found.resources.subscribe = True
    return found


below.get_capabilities = capabilities  # type: ignore[method-assign]


@below.subscribe_resource()
async def subscribe(uri: AnyUrl) -> None:
    async def change(session: Any) -> None:
        while str(uri) == TODAY:
            await asyncio.sleep(CHANGES_EVERY_S)
            await session.send_resource_updated(uri)

    subscribed[str(uri)] = asyncio.ensure_future(change(request_ctx.get().session))


@below.unsubscribe_resource()
async def unsubscribe(uri: AnyUrl) -> None:
    subscribed.pop(str(uri)).cancel()


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
