"""The steps with Python `mcp` 1.0.0, the first of all: URL MODE; it knows HTTP+SSE alone.

What its methods lack and its types can say is said with these: that the client samples, the token
for progress. It has no callbacks either; who reads `incoming_messages` answers.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import anyio
from mcp import ClientSession, types
from mcp.client.sse import sse_client
from pydantic import AnyUrl

from tests.peers.clients.steps import ByHand, Connected, Updated, city, main, roots

Hear = Callable[[float, float | None, str | None], Awaitable[None]]


class First:
    """Its session under the names that newer ones have."""

    def __init__(self, session: Any):
        self._session = session
        self.updated = Updated()
        self._tokens = count(1)
        self._hearing: dict[Any, Hear] = {}
        self.list_tools = session.list_tools
        self.get_prompt = session.get_prompt
        self.complete = session.complete

    async def read_resource(self, uri: str) -> types.ReadResourceResult:
        result: types.ReadResourceResult = await self._session.read_resource(AnyUrl(uri))
        return result

    async def subscribe_resource(self, uri: str) -> None:
        await self._session.subscribe_resource(AnyUrl(uri))

    async def call_tool(self, name: str, arguments: Any, progress_callback: Any = None) -> Any:
        words = {"name": name, "arguments": arguments}
        if progress_callback is not None:
            token = next(self._tokens)
            self._hearing[token] = progress_callback
            words["_meta"] = {"progressToken": token}
        return await self._request("tools/call", words, types.CallToolResult)

    async def initialize(self) -> str:
        """Its own `initialize` always says that the client does not sample."""
        words = {
            "protocolVersion": types.LATEST_PROTOCOL_VERSION,
            "capabilities": {"sampling": {}, "roots": {}},
            "clientInfo": {"name": "first", "version": "1"},
        }
        welcome = await self._request("initialize", words, types.InitializeResult)
        initialized = types.InitializedNotification(method="notifications/initialized")
        await self._session.send_notification(types.ClientNotification(initialized))
        return str(welcome.protocolVersion)

    async def _request(self, method: str, params: Any, result: type) -> Any:
        request = types.ClientRequest.model_validate({"method": method, "params": params})
        return await self._session.send_request(request, result)

    async def hear(self, message: Any) -> None:
        """Pass progress and news on."""
        match getattr(message, "root", message):
            case types.ProgressNotification(params=told):
                await self._hearing[told.progressToken](told.progress, told.total, None)
            case types.ResourceUpdatedNotification():
                await self.updated.hear(message)
            case Exception() as error:
                raise error

    async def answer(self) -> None:
        """Answer what the server asks, and hear all else."""
        async for message in self._session.incoming_messages:
            if hasattr(message, "request"):
                await message.respond(await _answered(message.request.root))
            else:
                await self.hear(message)


async def _answered(request: Any) -> Any:
    match request:
        case types.CreateMessageRequest():
            return types.ClientResult(await city(None, request.params))
        case types.ListRootsRequest():
            return types.ClientResult(await roots(None))
    return types.ClientResult(types.EmptyResult())


@asynccontextmanager
async def connected(url: str, _mode: str) -> AsyncIterator[Connected]:
    known, read = anyio.create_memory_object_stream[Any](0)
    async with (
        sse_client(url) as (everything, write),
        ClientSession(read, write) as session,
        asyncio.TaskGroup() as tasks,
    ):

        async def tell(params: dict[str, Any]) -> None:
            words = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            await write.send(types.JSONRPCMessage.model_validate(words))

        client = First(session)
        working = [tasks.create_task(work) for work in (_hear(everything, known), client.answer())]
        version = await client.initialize()
        yield Connected(client, version, client.updated, ByHand(session, tell))
        for task in working:
            task.cancel()


async def _hear(everything: Any, known: Any) -> None:
    """It stops hearing at a notification that it does not know, as it does not know that what it
    was asked is moot, though its revision has it: leave that out."""
    async for message in everything:
        if getattr(getattr(message, "root", None), "method", "") != "notifications/cancelled":
            await known.send(message)


if __name__ == "__main__":
    asyncio.run(main(connected))
