"""The walk with Python `mcp` 1.x: PREFIX URL, or PREFIX and the command of a stdio server."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp import ClientSession, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

from tests.peers.clients.walk import Message, tell, walk


class Mcp1:
    """A session of the SDK; what it is told, apart from answers, goes to `heard`."""

    def __init__(self, session: ClientSession, version: str, heard: "asyncio.Queue[str]"):
        self.version = version
        self._session = session
        self._heard = heard

    async def listed(self, kind: str) -> list[Message]:
        listing = {
            "tools": self._session.list_tools,
            "prompts": self._session.list_prompts,
            "resources": self._session.list_resources,
            "resourceTemplates": self._session.list_resource_templates,
        }[kind]
        found: list[Message] = _plain(await listing())[kind]
        return found

    async def call(
        self, name: str, arguments: Message, progress: list[float] | None = None
    ) -> Message:
        async def report(done: float, total: float | None, message: str | None) -> None:
            if progress is not None:
                progress.append(done)

        listen = None if progress is None else report
        return _plain(await self._session.call_tool(name, arguments, progress_callback=listen))

    async def read(self, uri: str) -> Message:
        return _plain(await self._session.read_resource(AnyUrl(uri)))

    async def prompt(self, name: str, arguments: dict[str, str]) -> Message:
        return _plain(await self._session.get_prompt(name, arguments))

    async def told_of_tools(self, cause: Callable[[], Awaitable[Any]]) -> None:
        await cause()
        while await self._heard.get() != "notifications/tools/list_changed":
            pass

    async def cancel_call(
        self, name: str, arguments: Message, started: Callable[[], Awaitable[Any]]
    ) -> None:
        """This SDK tells the server nothing when a call's task ends: say it by hand."""
        request_id = self._session._request_id
        async with asyncio.TaskGroup() as tasks:
            calling = tasks.create_task(self._session.call_tool(name, arguments))
            await asyncio.sleep(0)  # it takes that number before anybody else asks for something
            await started()
            params = types.CancelledNotificationParams(requestId=request_id)
            cancelled = types.CancelledNotification(params=params)
            await self._session.send_notification(types.ClientNotification(cancelled))
            calling.cancel()


def _plain(result: Any) -> Message:
    plain: Message = result.model_dump(mode="json", by_alias=True)
    return plain


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
