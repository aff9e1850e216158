"""Speak HTTP/1.1 to one gateway: as much of it as MCP needs, and nothing that takes long to load.

A client's HTTP library costs more to import than a bridge may take to start.
Source: RFC 9112; redirects, compression and pipelining are left out on purpose.
"""

import asyncio
import select
import ssl
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gateway.edge.stdio.place import Place

HEAD_BYTES = 64 * 2**10
PIECE_BYTES = 64 * 2**10
MOST_IDLE = 4
IDLE_S = 15.0
"""Kept connections are used again this long; listeners keep them longer."""
SILENCE_S = 40.0
"""A gateway that works on something says so every 15 s."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Gone(Exception):
    """There is no answer, or no whole one. `sent`: the request may have arrived."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent


class Http:
    """Connections to one place, used again where that is safe."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._idle: list[tuple[float, Streams]] = []
        self._tls: ssl.SSLContext | None = None

    async def ask(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes = b"",
        within_s: float = 5.0,
        head_s: float = SILENCE_S,
    ) -> "Response":
        """Send a request; returns when the head of its answer is there. Use it in `async with`.

        `within_s` bounds connecting, `head_s` all that comes after. Raises `Gone`.
        """
        streams = self._kept() or await self._connected(within_s)
        reader, writer = streams
        lines = {"Host": self.place.authority, **headers, "Content-Length": str(len(body))}
        told = "".join(f"{name}: {text}\r\n" for name, text in lines.items())
        request = f"{method} {self.place.target} HTTP/1.1\r\n{told}\r\n".encode("latin-1")
        complete = False
        try:
            async with asyncio.timeout(head_s):
                writer.write(request + body)
                with suppress(ConnectionError):  # it may have answered before it had read all
                    await writer.drain()
                response = await _head(reader)
            complete = True
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            raise Gone(_why(error), sent=True) from None
        finally:
            if not complete:
                writer.transport.abort()
        return Response(*response, streams, self)

    def keep(self, streams: Streams) -> None:
        """A connection whose answer was read to its end."""
        loop = asyncio.get_running_loop()
        if len(self._idle) < MOST_IDLE:
            self._idle.append((loop.time(), streams))
        else:
            streams[1].close()

    def close(self) -> None:
        for _, (_, writer) in self._idle:
            writer.close()
        self._idle.clear()

    def _kept(self) -> Streams | None:
        now = asyncio.get_running_loop().time()
        while self._idle:
            since, streams = self._idle.pop()
            if now - since < IDLE_S and _is_quiet(streams):
                return streams
            streams[1].close()
        return None

    async def _connected(self, within_s: float) -> Streams:
        place = self.place
        try:
            async with asyncio.timeout(within_s):
                if place.socket is not None:
                    return await asyncio.open_unix_connection(place.socket, limit=HEAD_BYTES)
                return await asyncio.open_connection(
                    place.host, place.port, ssl=self._context(), limit=HEAD_BYTES
                )
        except OSError as error:
            raise Gone(_why(error), sent=False) from None

    def _context(self) -> ssl.SSLContext | None:
        if self.place.is_tls and self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


@dataclass(slots=True)
class Response:
    """An answer whose body is still to be read. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    _streams: Streams
    _http: Http
    _is_read: bool = False

    async def __aenter__(self) -> "Response":
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leaving before the end closes the connection, which tells the gateway."""
        if self._is_read and self.headers.get("connection", "").lower() != "close":
            self._http.keep(self._streams)
        else:
            self._streams[1].transport.abort()

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").lower().startswith("text/event-stream")

    async def whole(self, limit: int) -> bytes:
        """The body. Raises `Gone`, also if it is longer than that."""
        body = bytearray()
        async for piece in self.pieces():
            body += piece
            if len(body) > limit:
                raise Gone(f"its answer is longer than {limit} bytes", sent=True)
        return bytes(body)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises `Gone` if it ends too early, or falls silent."""
        reader = self._streams[0]
        length = self.headers.get("content-length", "")
        try:
            if self.status in (204, 304):
                pass
            elif "chunked" in self.headers.get("transfer-encoding", "").lower():
                async for piece in _chunks(reader):
                    yield piece
            elif length:
                async for piece in _counted(reader, int(length)):
                    yield piece
            else:
                async for piece in _rest(reader):
                    yield piece
                return
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            raise Gone(_why(error), sent=True) from None
        self._is_read = True


def _is_quiet(streams: Streams) -> bool:
    """Neither closed by the other end nor spoken on. Asks the system: after a machine slept,
    the event loop may not have heard of it yet."""
    reader, writer = streams
    if reader.at_eof() or writer.is_closing():
        return False
    poll = select.poll()
    poll.register(writer.get_extra_info("socket").fileno(), select.POLLIN)
    return not poll.poll(0)


# --- the grammar -----------------------------------------------------------------------------


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Status and headers. An interim answer (1xx) is no answer."""
    status = 100
    lines: list[str] = []
    while 100 <= status < 200:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        if not version.startswith("HTTP/1."):
            raise ValueError
        status = int(rest[:3])
    pairs = (line.partition(":") for line in lines if line)
    return status, {name.strip().lower(): text.strip() for name, _, text in pairs}


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        line = await _in_time(reader.readuntil(b"\r\n"))
        left = int(line.partition(b";")[0], 16)
        if not left:
            break
        async for piece in _counted(reader, left):
            yield piece
        if await _in_time(reader.readexactly(2)) != b"\r\n":
            raise ValueError
    while await _in_time(reader.readuntil(b"\r\n")) != b"\r\n":
        pass  # trailers


async def _counted(reader: asyncio.StreamReader, left: int) -> AsyncIterator[bytes]:
    while left > 0:
        piece = await _in_time(reader.read(min(left, PIECE_BYTES)))
        if not piece:
            raise EOFError
        left -= len(piece)
        yield piece


async def _rest(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while piece := await _in_time(reader.read(PIECE_BYTES)):
        yield piece


async def _in_time(reading: Coroutine[Any, Any, bytes]) -> bytes:
    async with asyncio.timeout(SILENCE_S):
        return await reading


def _why(error: Exception) -> str:
    """In words, for a person."""
    match error:
        case ConnectionRefusedError():
            return "connection refused"
        case FileNotFoundError():
            return "there is no such socket"
        case ssl.SSLCertVerificationError():
            return f"its certificate cannot be trusted: {error.verify_message}"
        case ssl.SSLError():
            return f"TLS failed: {error.reason}"
        case TimeoutError():
            return "no answer in time"
        case ConnectionError() | EOFError():
            return "the connection broke"
        case OSError() if error.strerror:
            return error.strerror
        case OSError():  # several addresses were tried, each with an error of its own
            return "connection refused" if "refused" in str(error) else "no connection"
    return "what answers there does not speak HTTP"
