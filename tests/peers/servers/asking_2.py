"""The notes on Python `mcp` 2.x, with tools that ask the client: in the way of either era."""

from typing import Annotated

from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import (
    Completion,
    CreateMessageResult,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

from tests.peers.servers.with_mcp_2 import server


class Name(BaseModel):
    name: str


def name() -> Elicit[Name]:
    return Elicit("Who are you?", Name)


def city() -> Sample:
    prompt = SamplingMessage(role="user", content=TextContent(type="text", text="Which city?"))
    return Sample([prompt], max_tokens=10)


def roots() -> ListRoots:
    return ListRoots()


@server.tool()
def ask_name(answer: Annotated[Name, Resolve(name)]) -> str:
    """Ask the user for a name."""
    return f"Hello, {answer.name}!"


@server.tool()
def ask_model(answer: Annotated[CreateMessageResult, Resolve(city)]) -> str:
    """Ask the client's model for a city."""
    return f"The model says {answer.content.text}."


@server.tool()
def ask_roots(answer: Annotated[ListRootsResult, Resolve(roots)]) -> str:
    """Ask the client for its roots."""
    return " ".join(str(root.uri) for root in answer.roots)


@server.completion()
async def complete(ref: object, argument: object, context: object) -> Completion:
    return Completion(values=["Ada"])


if __name__ == "__main__":
    server.run("stdio")
