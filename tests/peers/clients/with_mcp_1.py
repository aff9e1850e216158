"""The walk with Python `mcp` 1.x: PREFIX URL, or PREFIX and the command of a stdio server."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp import ClientSession, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

from tests.peers.clients.walk import Client, Message, plain, tell, walk


class Mcp1(Client):
    """A session of the SDK."""

    async def read(self, uri: str) -> Message:
        return plain(await self.api.read_resource(AnyUrl(uri)))

    async def cancel_call(
        self, name: str, arguments: Message, started: Callable[[], Awaitable[Any]]
    ) -> None:
        """This SDK tells the server nothing when a call's task ends: say it by hand."""
        request_id = self.api._request_id
        async with asyncio.TaskGroup() as tasks:
            calling = tasks.create_task(self.api.call_tool(name, arguments))
            await asyncio.sleep(0)  # it takes that number before anybody else asks for something
            await started()
            params = types.CancelledNotificationParams(requestId=request_id)
            cancelled = types.CancelledNotification(params=params)
            await self.api.send_notification(types.ClientNotification(cancelled))
            calling.cancel()


@asynccontextmanager
async def connected(target: list[str]) -> AsyncIterator[Mcp1]:
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ServerNotification):
            heard.put_nowait(message.root.method)

    if target[0].startswith("http"):
        transport: Any = streamable_http_client(target[0])
    else:
        transport = stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    async with (
        transport as streams,
        ClientSession(streams[0], streams[1], message_handler=hear) as session,
    ):
        version = str((await session.initialize()).protocolVersion)
        yield Mcp1(session, version, heard)


async def main() -> Message:
    prefix, *target = sys.argv[1:]
    async with connected(target) as client:
        return await walk(client, prefix)


if __name__ == "__main__":
    tell(main)
