"""A server elsewhere, small and obedient: what it speaks, and how each tool answers, is set.

It keeps all that it was sent, for tests to look at.
"""

import asyncio
import gzip
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Message = dict[str, Any]
PREFIX = "io.modelcontextprotocol/"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
EVENTS = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Seen:
    """One HTTP request as it came."""

    verb: str
    headers: Mapping[str, str]
    message: Message = field(default_factory=dict)
    path: str = "/mcp"

    @property
    def method(self) -> str:
        return str(self.message.get("method", ""))


@dataclass(slots=True)
class Told:
    """An event stream to a client, once it is open."""

    http: web.StreamResponse

    async def event(self, message: Message | None = None, **fields: object) -> None:
        """One event; without a message it has an empty `data`."""
        lines = [f"{name}: {value}" for name, value in fields.items()]
        lines.append(f"data: {json.dumps(message) if message is not None else ''}")
        await self.http.write(("\n".join(lines) + "\n\n").encode())

    async def tell(self, method: str, **params: Any) -> None:
        await self.event({"jsonrpc": "2.0", "method": method, "params": params})

    async def answer(self, id_: Any, result: Message) -> None:
        await self.event({"jsonrpc": "2.0", "id": id_, "result": result})

    def cut(self) -> None:
        """Break the connection, as a proxy would."""
        assert self.http._req is not None
        assert self.http._req.transport is not None
        self.http._req.transport.abort()


@dataclass(slots=True)
class Asked:
    """A `tools/call` to be answered in one way or another."""

    far: "Far"
    http: web.Request
    message: Message

    @property
    def id(self) -> Any:
        return self.message["id"]

    @property
    def arguments(self) -> Message:
        return dict(self.message["params"].get("arguments") or {})

    @property
    def token(self) -> Any:
        return self.message["params"].get("_meta", {}).get("progressToken")

    def json(self, result: Message, **more: Any) -> web.Response:
        body = {"jsonrpc": "2.0", "id": self.id, "result": self.far.finished(self.message, result)}
        return web.json_response(body, **more)

    def text(self, text: str) -> web.Response:
        return self.json(text_of(text))

    async def stream(self, headers: Mapping[str, str] | None = None) -> Told:
        http = web.StreamResponse(headers={"Content-Type": EVENTS, **(headers or {})})
        await http.prepare(self.http)
        return Told(http)

    async def answered(self, told: Told, text: str) -> web.StreamResponse:
        """Say the result on the stream, and end it."""
        await told.answer(self.id, self.far.finished(self.message, text_of(text)))
        return told.http


Tool = Callable[[Asked], Awaitable[web.StreamResponse]]


def text_of(text: str) -> Message:
    return {"content": [{"type": "text", "text": text}]}


async def echo(asked: Asked) -> web.StreamResponse:
    return asked.text(str(asked.arguments.get("text")))


@dataclass(slots=True, eq=False)
class Far:
    """`url` is known once it is `served`."""

    eras: tuple[str, ...] = ("modern",)
    sessions: bool = True
    """Of its legacy half."""
    has_stream: bool = True
    """Whether a GET is answered with a stream, or with 405."""
    tools: dict[str, Tool] = field(default_factory=lambda: {"echo": echo})
    extras: dict[str, Message] = field(default_factory=dict)
    """By tool: members of its definition beyond the usual."""
    before: Callable[[web.Request, Message], Awaitable[web.StreamResponse | None]] | None = None
    """Looks at each POST first, and may answer it."""
    capabilities: Message = field(default_factory=lambda: {"tools": {"listChanged": True}})
    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    """Sessions."""
    streams: list[Told] = field(default_factory=list)
    """Open GETs of a legacy client, and listens of a modern one, newest last."""
    resumed: Callable[[str, Told], Awaitable[None]] | None = None
    """Goes on with a stream after this event id."""
    _ids: int = 0

    def posts(self, method: str) -> list[Seen]:
        return [each for each in self.seen if each.method == method]

    def gets(self) -> list[Seen]:
        return [each for each in self.seen if each.verb == "GET"]

    def app(self) -> web.Application:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/mcp", self.post)
        app.router.add_get("/mcp", self.get)
        app.router.add_delete("/mcp", self.delete)
        return app

    async def post(self, request: web.Request) -> web.StreamResponse:
        message = await request.json()
        self.seen.append(Seen("POST", request.headers, message, request.path_qs))
        if self.before is not None and (early := await self.before(request, message)) is not None:
            return early
        meta = message.get("params", {}).get("_meta", {})
        if f"{PREFIX}protocolVersion" in meta:
            if "modern" not in self.eras:
                return refusal(message, -32600, "Bad Request: no session", 400)
            return await self._modern(request, message)
        if "legacy" not in self.eras:
            return refusal(message, -32022, "Unsupported", 400, {"supported": [MODERN]})
        return await self._legacy(request, message)

    async def get(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(Seen("GET", request.headers, path=request.path_qs))
        if not self.has_stream:
            return web.Response(status=405)
        if self.sessions and request.headers.get("Mcp-Session-Id") not in self.known:
            return web.Response(status=404)
        http = web.StreamResponse(headers={"Content-Type": EVENTS})
        await http.prepare(request)
        told = Told(http)
        last = request.headers.get("Last-Event-ID")
        if last is not None and self.resumed is not None:
            await self.resumed(last, told)
            return http
        return await self._hold(told)

    async def delete(self, request: web.Request) -> web.Response:
        self.seen.append(Seen("DELETE", request.headers))
        self.known.discard(request.headers.get("Mcp-Session-Id", ""))
        return web.Response(status=204)

    async def tell(self, method: str, **params: Any) -> None:
        """Say something to whoever has a stream open."""
        await self.streams[-1].tell(method, **params)

    # --- eras ---

    async def _modern(self, request: web.Request, message: Message) -> web.StreamResponse:
        match message["method"]:
            case "server/discover":
                return self._answer(
                    message, {"supportedVersions": [MODERN], "capabilities": self.capabilities}
                )
            case "subscriptions/listen":
                return await self._listen(request, message)
        return await self._serve(request, message)

    async def _legacy(self, request: web.Request, message: Message) -> web.StreamResponse:
        method = message.get("method")
        if method == "initialize":
            headers = {}
            if self.sessions:
                self._ids += 1
                self.known.add(session := f"s{self._ids}")
                headers = {"Mcp-Session-Id": session}
            answer = self._answer(
                message,
                {
                    "protocolVersion": LEGACY,
                    "capabilities": self.capabilities,
                    "serverInfo": {"name": "far", "version": "1"},
                },
            )
            answer.headers.update(headers)
            return answer
        if self.sessions and request.headers.get("Mcp-Session-Id") not in self.known:
            return refusal(message, -32600, "Session not found", 404)
        if "id" not in message or method is None:
            return web.Response(status=202)
        if method == "ping":
            return self._answer(message, {})
        return await self._serve(request, message)

    async def _serve(self, request: web.Request, message: Message) -> web.StreamResponse:
        match message["method"]:
            case "tools/list":
                return self._answer(message, {"tools": self._definitions()})
            case "tools/call" if (name := message["params"]["name"]) in self.tools:
                return await self.tools[name](Asked(self, request, message))
        return refusal(message, -32601, "Method not found", 200)

    def finished(self, message: Message, result: Message) -> Message:
        """A result, with what the era wants in it."""
        modern = f"{PREFIX}protocolVersion" in message.get("params", {}).get("_meta", {})
        more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if modern else {}
        return {**more, **result}

    def _answer(self, message: Message, result: Message) -> web.Response:
        body = {"jsonrpc": "2.0", "id": message["id"], "result": self.finished(message, result)}
        return web.json_response(body)

    def _definitions(self) -> list[Message]:
        plain = {"description": "A tool", "inputSchema": {"type": "object"}}
        return [{"name": name, **plain, **self.extras.get(name, {})} for name in self.tools]

    async def _listen(self, request: web.Request, message: Message) -> web.StreamResponse:
        http = web.StreamResponse(headers={"Content-Type": EVENTS})
        await http.prepare(request)
        told = Told(http)
        wanted = message["params"]["notifications"]
        meta = {f"{PREFIX}subscriptionId": message["id"]}
        await told.tell(
            "notifications/subscriptions/acknowledged", notifications=wanted, _meta=meta
        )
        return await self._hold(told)

    async def _hold(self, told: Told) -> web.StreamResponse:
        self.streams.append(told)
        try:
            await asyncio.Event().wait()
        finally:
            self.streams.remove(told)
        return told.http


def refusal(
    message: Message, code: int, text: str, status: int, data: Message | None = None
) -> web.Response:
    error = {"code": code, "message": text, **({"data": data} if data else {})}
    body = {"jsonrpc": "2.0", "id": message.get("id"), "error": error}
    return web.json_response(body, status=status)


def zipped(message: Message) -> web.Response:
    """An answer compressed whether or not anybody asked."""
    headers = {"Content-Type": "application/json; charset=utf-8", "Content-Encoding": "gzip"}
    return web.Response(body=gzip.compress(json.dumps(message).encode()), headers=headers)


@asynccontextmanager
async def listening(
    app: web.Application, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serve an application on loopback. Yields the port; ends at once, whatever is open."""
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls, reuse_address=True)
    await site.start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


@asynccontextmanager
async def served(far: Far, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[Far]:
    async with listening(far.app(), port, tls) as port_taken:
        far.url = f"{'https' if tls else 'http'}://127.0.0.1:{port_taken}/mcp"
        yield far
