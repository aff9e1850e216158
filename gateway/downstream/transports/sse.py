"""Talk to a server over HTTP+SSE, the transport of 2024-11-05.

One stream, opened by GET, carries everything the server says. Its first event names the
address that messages are posted to.
Source: 2024-11-05, basic/transports, "HTTP with SSE".
"""

import asyncio
from functools import partial

import aiohttp
import structlog
from yarl import URL

from gateway.downstream.transports.failures import BrokenOff, NotTaken, WrongTransport
from gateway.downstream.transports.remote import TOLD_WITHIN_S, Remote, watch_over
from gateway.downstream.transports.replies import (
    EVENTS,
    JSON,
    events_of,
    is_events,
    refused,
)
from gateway.downstream.transports.transport import Departure, NotReading, StreamSink
from gateway.downstream.transports.under_way import UnderWay
from gateway.eras.manner import Manner
from gateway.protocol import methods
from gateway.protocol.errors import BadAnswer, GatewayError, ServerFailure
from gateway.protocol.framing import Event, EventSplitter, Oversized
from gateway.protocol.jsonrpc import Message, Notification, Request, Result, decode, value

log = structlog.get_logger()

NO_STREAM = frozenset({400, 404, 405, 406, 501})
"""Answers to the GET of a server that does not have this transport."""

STOPPED = Departure(None, None, (), "was stopped")


class _Forgotten(NotTaken):
    """The server does not know the session that the address stands for."""


class SseTransport:
    """Implements `Transport`. The stream is opened with the first message."""

    pid = None
    way = "sse"

    def __init__(self, remote: Remote, manner: Manner, sink: StreamSink, line_bytes: int) -> None:
        self._remote, self._manner, self._sink = remote, manner, sink
        self._splitter = EventSplitter(line_bytes)
        begin = partial(remote.web.start, server=remote.server)
        self._under_way = UnderWay(begin, lambda _: None)
        self._departure: Departure | None = None
        self._closed, self._opened = asyncio.Event(), asyncio.Event()
        self._known: asyncio.Future[URL] = asyncio.get_running_loop().create_future()
        self._opening: Request | None = None

    @property
    def writable(self) -> bool:
        return self._under_way.has_room

    async def wait_writable(self) -> None:
        await self._under_way.wait_room()

    async def wait_closed(self) -> Departure:
        await self._closed.wait()
        assert self._departure is not None
        return self._departure

    def send(self, line: bytes) -> None:
        if self._departure is not None:
            raise NotReading(self._departure.reason)
        message = decode(line)
        if isinstance(message, Request):
            assert isinstance(message.id, int), "ids of a link are its own"
            if self._opening is None:
                self._opening = message
                self._under_way.run(self._listen(message.id))
            self._under_way.serve(message.id, self._ask(message, message.id, line))
        else:
            if isinstance(message, Notification) and message.method == methods.CANCELLED:
                self._under_way.cancel(value(message.params, "requestId"))
            self._under_way.tell(self._tell(message, line))

    async def stop(self, grace_s: float) -> None:
        self._depart(STOPPED)
        await self._under_way.cancel_all()

    # --- the stream ---

    async def _listen(self, first: int) -> None:
        """Read the stream to its end, which is the end of the conversation."""
        headers = {"Accept": EVENTS}
        try:
            response = await self._remote.request("GET", headers)
            async with response:
                if response.status != 200 or not is_events(response):
                    raise await self._no_stream(response)
                watch_over(response)
                async for event in events_of(response, self._splitter):
                    self._take(event)
        except GatewayError as error:
            self._sink.failed(first, error)
            self._depart(_departure(self._remote, error))
        else:
            self._depart(Departure(None, None, (), "closed its stream"))

    async def _no_stream(self, response: aiohttp.ClientResponse) -> GatewayError:
        server = self._remote.server
        if response.status in NO_STREAM or response.status == 200:
            said = f"does not speak HTTP+SSE (HTTP {response.status})"
            return WrongTransport(f"The server {server} {said}", server=server)
        return (await refused(self._remote, response, has_session=False))[0]

    def _take(self, event: Event | Oversized) -> None:
        if isinstance(event, Oversized):
            head = event.head.partition(b"data:")[2].lstrip()  # lines of the event run together
            self._sink.oversized(event.size, head, event.tail)
        elif event.name == "endpoint":
            self._found(event.data.decode(errors="replace").strip())
        elif event.name == "message":
            self._learn(event.data)
            self._sink.line(event.data)

    def _found(self, text: str) -> None:
        """Where to post to. Another origin would be given our credentials: refused."""
        if self._known.done():
            return
        try:
            where = self._remote.url.join(URL(text))
            if where.origin() != self._remote.url.origin():
                raise ValueError("another origin")
        except ValueError:
            said = f"The server {self._remote.server} names an address elsewhere to post to"
            self._known.set_exception(BadAnswer(said))
        else:
            self._known.set_result(where)

    def _learn(self, line: bytes) -> None:
        """The first answer is that of the handshake."""
        if self._opened.is_set() or self._opening is None:
            return
        try:
            message = decode(line)
        except GatewayError:
            return  # the sink says so
        if isinstance(message, Result):
            self._manner.answered(self._opening, {}, message.result)

    # --- messages ---

    async def _ask(self, request: Request, about: int, line: bytes) -> None:
        if request.method != methods.INITIALIZE:
            await self._opened.wait()
        try:
            await self._post(request, line)
        except NotTaken as error:
            self._sink.failed(about, error)
            self._depart(_departure(self._remote, error))
        except GatewayError as error:
            self._sink.failed(about, error)

    async def _tell(self, message: Message, line: bytes) -> None:
        opening = isinstance(message, Notification) and message.method == methods.INITIALIZED
        try:
            async with self._under_way.turns:
                await self._post(message, line, TOLD_WITHIN_S)
        except _Forgotten as error:
            self._depart(_departure(self._remote, error))
        except (NotTaken, BrokenOff, ServerFailure, BadAnswer) as error:
            log.info("message.lost", server=self._remote.server, why=error.message)
        finally:
            if opening:
                self._opened.set()

    async def _post(self, message: Message, line: bytes, silence_s: float | None = None) -> None:
        url = await asyncio.shield(self._known)
        headers = {"Accept": JSON, "Content-Type": JSON, **self._manner.headers(message)}
        asked = self._remote.request("POST", headers, line, url=url, silence_s=silence_s)
        async with await asked as response:
            if not 200 <= response.status < 300:
                error, lapsed = await refused(self._remote, response, has_session=True)
                if lapsed:
                    raise _Forgotten(error.message, server=self._remote.server, retryable=True)
                raise error

    def _depart(self, departure: Departure) -> None:
        """The stream is gone, and every answer with it."""
        if self._departure is not None:
            return
        self._departure = departure
        if not self._known.done():
            self._known.cancel()
        self._closed.set()
        self._opened.set()
        log.info("connection.ended", server=self._remote.server, reason=departure.reason)
        self._sink.closed(departure)


def _departure(remote: Remote, error: GatewayError) -> Departure:
    reason = error.message.removeprefix(f"The server {remote.server} ")
    return Departure(None, None, (), reason, lapsed=isinstance(error, _Forgotten))
