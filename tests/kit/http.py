"""Plain clients of `/mcp`, one for each era, and a socket for what no client would send."""

import base64
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import aiohttp

from tests.kit.sse import Event, events

Message = dict[str, Any]
PREFIX = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
ACCEPT = "application/json, text/event-stream"
NAMED = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}
PATIENCE = aiohttp.ClientTimeout(total=60)


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP response, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    messages: tuple[Message, ...]
    """The JSON body, or every message of the stream in order."""

    @property
    def final(self) -> Message:
        """The response among the messages."""
        return next(each for each in self.messages if "result" in each or "error" in each)

    @property
    def result(self) -> Message:
        assert "result" in self.final, self.final
        result: Message = self.final["result"]
        return result

    @property
    def error(self) -> Message:
        assert "error" in self.final, self.final
        error: Message = self.final["error"]
        return error

    @property
    def notices(self) -> list[Message]:
        return [each for each in self.messages if "method" in each]

    @property
    def text(self) -> str:
        """The first text of a tool's result."""
        return str(self.result["content"][0]["text"])


@dataclass(slots=True)
class Stream:
    """A response still being read. Leaving its `async with` closes the connection."""

    response: aiohttp.ClientResponse
    events: AsyncIterator[Event]

    async def message(self) -> Message:
        """The next message; comments and empty events are passed over."""
        async for event in self.events:
            if event.data:
                return dict(json.loads(event.data))
        raise AssertionError("the stream ended")


class Wire:
    """Posts messages to one URL. The base of both clients; also for what they would not send."""

    def __init__(
        self, http: aiohttp.ClientSession, url: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.http = http
        self.url = url
        self.headers = {"Accept": ACCEPT, "Content-Type": "application/json", **(headers or {})}
        self._next_id = 0

    @classmethod
    @asynccontextmanager
    async def to(cls, url: str, headers: Mapping[str, str] | None = None) -> AsyncIterator[Self]:
        """A client with connections of its own, to a URL, or through a socket: `unix:PATH|URL`."""
        path, _, rest = url.removeprefix("unix:").partition("|")
        unix = aiohttp.UnixConnector(path) if url.startswith("unix:") else None
        async with aiohttp.ClientSession(connector=unix, timeout=PATIENCE) as http:
            client = cls(http, rest if unix else url, headers)
            yield client

    def next_id(self) -> int:
        self._next_id += 1
        return self._next_id

    async def post(self, body: object, headers: Mapping[str, str] | None = None) -> Answer:
        """Post JSON (or bytes as they are) and read the whole response."""
        async with self.opened(body, headers) as stream:
            return await read(stream.response)

    @asynccontextmanager
    async def opened(
        self, body: object, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[Stream]:
        """Post, and leave the response to be read while it comes."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        told = {**self.headers, **(headers or {})}
        async with self.http.post(self.url, data=data, headers=told) as response:
            yield Stream(response, events(response.content.iter_any()))


class Legacy(Wire):
    """A client that holds a session, of any revision up to 2025-11-25."""

    def __init__(
        self, http: aiohttp.ClientSession, url: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(http, url, headers)
        self.session: str | None = None
        self.initialized: Message = {}

    async def initialize(
        self, version: str = "2025-11-25", capabilities: Message | None = None
    ) -> Message:
        """Open the session. Returns the result of `initialize`."""
        params = {
            "protocolVersion": version,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "kit-legacy", "version": "1"},
        }
        answer = await self.request("initialize", params)
        self.initialized = answer.result
        self.session = answer.headers.get("Mcp-Session-Id")
        if self.session:
            self.headers["Mcp-Session-Id"] = self.session
        self.headers["MCP-Protocol-Version"] = self.initialized["protocolVersion"]
        told = await self.notify("notifications/initialized")
        assert told.status == 202, told
        return self.initialized

    def message(self, method: str, params: Message | None = None, *, id_: Any = None) -> Message:
        number = self.next_id() if id_ is None else id_
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}

    async def request(
        self, method: str, params: Message | None = None, *, id_: Any = None
    ) -> Answer:
        return await self.post(self.message(method, params, id_=id_))

    async def call(self, name: str, arguments: Message | None = None, **params: Any) -> Answer:
        return await self.request(
            "tools/call", {"name": name, "arguments": arguments or {}, **params}
        )

    async def notify(self, method: str, params: Message | None = None) -> Answer:
        return await self.post({"jsonrpc": "2.0", "method": method, "params": params or {}})

    async def respond(self, id_: Any, result: Message) -> Answer:
        """Answer a question the server asked."""
        return await self.post({"jsonrpc": "2.0", "id": id_, "result": result})

    @asynccontextmanager
    async def listening(self, last_event_id: str | None = None) -> AsyncIterator[Stream]:
        """The GET stream of the session."""
        told = {**self.headers, "Accept": "text/event-stream"}
        if last_event_id is not None:
            told["Last-Event-ID"] = last_event_id
        async with self.http.get(self.url, headers=told) as response:
            assert response.status == 200, response.status
            yield Stream(response, events(response.content.iter_any()))

    async def delete(self) -> int:
        """End the session. Returns the HTTP status."""
        async with self.http.delete(self.url, headers=self.headers) as response:
            return response.status


@dataclass(slots=True)
class Envelope:
    """What a modern client says of itself in each request."""

    version: str = MODERN
    capabilities: Message = field(default_factory=dict)
    client: Message | None = field(default_factory=lambda: {"name": "kit-modern", "version": "1"})
    log_level: str | None = None

    def meta(self) -> Message:
        told = {
            "protocolVersion": self.version,
            "clientCapabilities": self.capabilities,
            "clientInfo": self.client,
            "logLevel": self.log_level,
        }
        return {f"{PREFIX}{key}": value for key, value in told.items() if value is not None}


class Modern(Wire):
    """A client that holds nothing: each request carries its envelope and its headers."""

    def __init__(
        self, http: aiohttp.ClientSession, url: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(http, url, headers)
        self.envelope = Envelope()

    def message(self, method: str, params: Message | None = None, *, id_: Any = None) -> Message:
        """A request with its envelope; `_meta` of `params` is added to it and wins."""
        told = dict(params or {})
        told["_meta"] = {**self.envelope.meta(), **told.get("_meta", {})}
        number = self.next_id() if id_ is None else id_
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": told}

    def routing(self, message: Message) -> dict[str, str]:
        """The headers that must agree with the message."""
        params = message["params"]
        told = {
            "MCP-Protocol-Version": params["_meta"].get(f"{PREFIX}protocolVersion", MODERN),
            "Mcp-Method": message["method"],
        }
        key = NAMED.get(message["method"])
        if key in params:
            told["Mcp-Name"] = header_value(str(params[key]))
        return told

    async def request(
        self, method: str, params: Message | None = None, *, id_: Any = None
    ) -> Answer:
        message = self.message(method, params, id_=id_)
        return await self.post(message, self.routing(message))

    async def call(self, name: str, arguments: Message | None = None, **params: Any) -> Answer:
        return await self.request(
            "tools/call", {"name": name, "arguments": arguments or {}, **params}
        )

    @asynccontextmanager
    async def streaming(
        self,
        method: str,
        params: Message | None = None,
        *,
        id_: Any = None,
    ) -> AsyncIterator[Stream]:
        """A request whose answer is read while it comes; leaving early cancels it."""
        message = self.message(method, params, id_=id_)
        async with self.opened(message, self.routing(message)) as stream:
            yield stream

    @asynccontextmanager
    async def listening(self, **wanted: Any) -> AsyncIterator[Stream]:
        """A `subscriptions/listen` stream, acknowledged. `toolsListChanged=True` and the like."""
        async with self.streaming("subscriptions/listen", {"notifications": wanted}) as stream:
            first = await stream.message()
            assert first["method"] == "notifications/subscriptions/acknowledged", first
            yield stream


def header_value(text: str) -> str:
    """A name as a header carries it: plain if it is visible ASCII, else marked base64."""
    marked = text.startswith("=?base64?") and text.endswith("?=")
    plain = text.isascii() and text.isprintable() and text == text.strip() and not marked
    return text if plain else f"=?base64?{base64.b64encode(text.encode()).decode()}?="


async def read(response: aiohttp.ClientResponse) -> Answer:
    """Read a response to its end, JSON or stream."""
    body = await response.read()
    kind = response.headers.get("Content-Type", "")
    found: list[Message] = []
    if kind.startswith("application/json"):
        found = [json.loads(body)]
    elif kind.startswith("text/event-stream"):
        found = [json.loads(each.data) async for each in events(_once(body)) if each.data]
    return Answer(response.status, response.headers, body, tuple(found))


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


def raw_http(host: str, port: int, data: bytes, within_s: float = 5.0) -> bytes:
    """Send bytes as they are; all that comes back until the other end closes or falls silent."""
    received = bytearray()
    with socket.create_connection((host, port), timeout=within_s) as connection:
        connection.sendall(data)
        while True:
            try:
                piece = connection.recv(1 << 16)
            except (TimeoutError, ConnectionResetError):
                break
            if not piece:
                break
            received += piece
    return bytes(received)
