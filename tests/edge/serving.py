"""A real listener on loopback with an entrance that does what a test says, and raw clients."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from gateway.config.units import Address
from gateway.edge.endpoint import Endpoint
from gateway.edge.guard import Guard, own_names
from gateway.edge.listener import Listener
from gateway.edge.pulse import Pulse
from gateway.edge.sockets import Bound, bind
from gateway.eras.sides import Answer, Headers, Posted, Reply, Stream
from gateway.identity.tokens import Tokens
from gateway.protocol.jsonrpc import Notification

WITHIN_S = 10.0
OK = Answer(200, b'{"jsonrpc":"2.0","id":1,"result":{}}')
BOTH = "application/json, text/event-stream"


@dataclass
class FakeEntrance:
    """An entrance whose `post` is the test's; keeps what it was given."""

    on_post: Callable[[Posted, Reply], Awaitable[Answer]] | None = None
    on_get: Callable[[Callable[[], Stream]], Awaitable[Answer | Stream]] | None = None
    posted: list[Posted] = field(default_factory=list)
    deleted: list[str | None] = field(default_factory=list)
    ended: list[Stream] = field(default_factory=list)

    async def post(self, posted: Posted, reply: Reply) -> Answer:
        self.posted.append(posted)
        return OK if self.on_post is None else await self.on_post(posted, reply)

    async def get(
        self, headers: Headers, principal: str | None, open_stream: Callable[[], Stream]
    ) -> Answer | Stream:
        return open_stream() if self.on_get is None else await self.on_get(open_stream)

    def left(self, headers: Headers, principal: str | None, stream: Stream) -> None:
        self.ended.append(stream)

    async def delete(self, headers: Headers, principal: str | None) -> Answer:
        self.deleted.append(principal)
        return Answer(204)


@dataclass(frozen=True)
class Secret:
    """A configured token, as the configuration holds it."""

    name: str
    text: str

    @property
    def sha256(self) -> str:
        return sha256(self.text.encode()).hexdigest()


@dataclass
class Served:
    """A running listener."""

    port: int
    pulse: Pulse
    listener: Listener
    endpoint: Endpoint | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@dataclass(frozen=True)
class Setting:
    """How a listener is set up, where not as usual."""

    hosts: Sequence[str] = ()
    origins: Sequence[str] = ()
    tokens: Sequence[Secret] | None = None
    body_bytes: int = 4 * 2**20
    header_bytes: int = 64 * 2**10
    request_s: float = 30.0
    address: str = "127.0.0.1:0"
    pulse: Mapping[str, Any] = field(default_factory=dict)
    direct: bool = True
    """Small POSTs are served without aiohttp's handler, as in the gateway."""

    def guard(self, bound: Sequence[Bound]) -> Guard:
        names = own_names([one.address for one in bound], self.hosts, self.origins)
        return Guard(names, None if self.tokens is None else Tokens(self.tokens))


@asynccontextmanager
async def serving(entrance: FakeEntrance, **changes: Any) -> AsyncIterator[Served]:
    """The endpoint on a port of its own; keywords are `Setting`'s."""
    setting = Setting(**changes)
    async with asyncio.TaskGroup() as tasks:
        bound = await bind([Address.parse(setting.address)], "listen")
        pulse = Pulse(**{"head_s": setting.request_s, **setting.pulse})
        endpoint = Endpoint(
            entrance,
            setting.guard(bound),
            pulse,
            tasks,
            body_bytes=setting.body_bytes,
            request_s=setting.request_s,
        )
        listener = Listener(
            endpoint.serve,
            pulse,
            tasks,
            header_bytes=setting.header_bytes,
            post=endpoint.post if setting.direct else None,
        )
        await listener.start(bound)
        try:
            yield Served(bound[0].address.port, pulse, listener, endpoint)
        finally:
            await listener.drain(0.05)


@dataclass
class Response:
    """An HTTP answer as read off a socket."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The message of the JSON-RPC error that every refusal is."""
        message = self.json
        assert message["jsonrpc"] == "2.0"
        assert message["id"] is None
        return str(message["error"]["message"])


class Raw:
    """A client that writes the bytes it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def post(self, body: bytes = b"{}", *, path: str = "/mcp", **headers: str | None) -> None:
        """A proper POST; `Name=value` changes a header (underscores are hyphens), None omits it."""
        self.request("POST", path, body, **headers)

    def request(self, method: str, path: str, body: bytes = b"", **headers: str | None) -> None:
        port = self.writer.get_extra_info("peername")[1]
        usual: dict[str, str | None] = {"Host": f"127.0.0.1:{port}", "Accept": BOTH}
        if method == "POST":
            usual |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        self.send(head(method, path, usual | {k.replace("_", "-"): v for k, v in headers.items()}))
        self.send(body)

    async def head(self) -> Response:
        """Status and headers; the body is left to be read."""
        async with asyncio.timeout(WITHIN_S):
            raw = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = raw.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines if line)
        return Response(int(first.split()[1]), headers, b"")

    async def response(self) -> Response:
        """A whole answer, chunked or not."""
        answer = await self.head()
        async with asyncio.timeout(WITHIN_S):
            if "chunked" in answer.headers.get("transfer-encoding", ""):
                while chunk := await self.chunk():
                    answer.body += chunk
            else:
                size = int(answer.headers.get("content-length", "0"))
                answer.body = await self.reader.readexactly(size)
        return answer

    async def chunk(self) -> bytes:
        """One chunk of a chunked body; empty at its end."""
        async with asyncio.timeout(WITHIN_S):
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            return (await self.reader.readexactly(size + 2))[:-2]

    async def wait_closed_by_server(self) -> bytes:
        """What still comes until the server closes."""
        async with asyncio.timeout(WITHIN_S):
            with suppress(ConnectionResetError):
                return await self.reader.read()
        return b""

    def vanish(self) -> None:
        self.writer.transport.abort()


def head(method: str, path: str, headers: Mapping[str, str | None]) -> bytes:
    lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode()


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[Raw]:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    try:
        yield Raw(reader, writer)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def asked(served: Served, body: bytes = b"{}", **headers: Any) -> Response:
    """One POST on a connection of its own."""
    async with connected(served) as client:
        client.post(body, **headers)
        return await client.response()


def events(body: bytes) -> list[Any]:
    """The JSON messages of an event stream; comments left out."""
    found = []
    for block in body.split(b"\n\n"):
        lines = block.split(b"\n")
        if lines[0] == b"event: message":
            assert len(lines) == 2
            found.append(json.loads(lines[1].removeprefix(b"data: ")))
    return found


def progress(number: int, padding: str = "") -> Notification:
    return Notification("notifications/progress", {"progress": number, "message": padding})


def log_line(padding: str) -> Notification:
    return Notification("notifications/message", {"level": "info", "data": padding})
