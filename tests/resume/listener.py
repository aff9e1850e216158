"""A client of 2024-11-05 over HTTP: it listens on one address and posts to another."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.kit.http import PATIENCE, Message
from tests.kit.sse import Event, events

OLDEST = "2024-11-05"


@dataclass(slots=True)
class Listener:
    http: aiohttp.ClientSession
    origin: str
    path: str
    """Where to post, as the first event says."""
    incoming: AsyncIterator[Event]
    response: aiohttp.ClientResponse
    headers: Mapping[str, str]

    async def post(self, message: object, path: str | None = None) -> int:
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        told = {"Content-Type": "application/json", **self.headers}
        url = self.origin + (path or self.path)
        async with self.http.post(url, data=data, headers=told) as answer:
            return answer.status

    async def request(self, id_: Any, method: str, params: Message | None = None) -> None:
        message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}}
        assert await self.post(message) == 202

    async def notify(self, method: str, params: Message | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        assert await self.post(message) == 202

    async def event(self) -> Event:
        """The next event that is no comment."""
        async with asyncio.timeout(20):
            async for event in self.incoming:
                if event.comment is None:
                    return event
        raise AssertionError("the stream ended")

    async def message(self) -> Message:
        return dict(json.loads((await self.event()).data))

    async def initialize(self, capabilities: Message | None = None) -> Message:
        client = {"name": "kit-oldest", "version": "1"}
        params = {"protocolVersion": OLDEST, "capabilities": capabilities or {}}
        await self.request(0, "initialize", {**params, "clientInfo": client})
        answer = await self.message()
        await self.notify("notifications/initialized")
        result: Message = answer["result"]
        return result

    async def call(self, id_: Any, name: str, **arguments: Any) -> None:
        """Only sends it."""
        await self.request(id_, "tools/call", {"name": name, "arguments": arguments})


@asynccontextmanager
async def listening(
    endpoint: str, headers: Mapping[str, str] | None = None
) -> AsyncIterator[Listener]:
    """`endpoint`: the gateway's `/mcp`, beside which the pair lies."""
    origin, told = endpoint.removesuffix("/mcp"), dict(headers or {})
    async with (
        aiohttp.ClientSession(timeout=PATIENCE) as http,
        http.get(f"{origin}/sse", headers={"Accept": "text/event-stream", **told}) as response,
    ):
        assert response.status == 200, response.status
        incoming = events(response.content.iter_any())
        client = Listener(http, origin, "", incoming, response, told)
        first = await client.event()
        assert first.event == "endpoint", first
        client.path = first.data
        yield client
