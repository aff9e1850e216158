"""The steps with the client of `fastmcp` 4.x: URL MODE, where MODE is one of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from fastmcp import Client
from mcp import types
from mcp.client.subscriptions import Subscription, listen

from tests.peers.clients.steps import Connected, Updated, main


class FastMcp:
    """The client under the names that the SDK's own has. It has none for subscriptions: they are
    asked of the SDK's session inside it."""

    def __init__(self, client: Client[Any]):
        self._client = client
        self.list_tools = client.list_tools_mcp
        self.get_prompt = client.get_prompt_mcp
        self.complete = client.complete_mcp
        self.read_resource = client.read_resource_mcp
        self.subscribe_resource = client.session.subscribe_resource

    async def call_tool(
        self, name: str, arguments: Any, progress_callback: Any = None
    ) -> types.CallToolResult:
        return await self._client.call_tool_mcp(name, arguments, progress_callback)

    def listen(
        self, *, resource_subscriptions: list[str]
    ) -> AbstractAsyncContextManager[Subscription]:
        return listen(self._client.session, resource_subscriptions=resource_subscriptions)


async def name(_message: str, _shape: Any, _params: Any, _context: Any) -> dict[str, str]:
    return {"name": "Ada"}


async def city(_messages: Any, _params: Any, _context: Any) -> str:
    return "Bern"


@asynccontextmanager
async def connected(url: str, mode: str) -> AsyncIterator[Connected]:
    updated = Updated()
    handlers: dict[str, Any] = {"elicitation_handler": name, "sampling_handler": city}
    handlers["message_handler"] = updated.hear
    async with Client(url, mode=mode, roots=["file:///home/ada"], **handlers) as client:
        yield Connected(FastMcp(client), str(client.protocol_version), updated)


if __name__ == "__main__":
    asyncio.run(main(connected))
