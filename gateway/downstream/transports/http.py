"""Talk to a server over Streamable HTTP, in either era.

Each request is a POST of its own; its answer is one JSON body or a stream of events, which
tells what belongs to the request. What the era makes of headers, sessions and broken
streams is its `Manner`.
Source: 2026-07-28 and 2025-11-25, basic/transports.
"""

import asyncio
from contextlib import suppress
from functools import partial

import aiohttp
import structlog

from gateway.downstream.transports.failures import BrokenOff, NotTaken, WrongTransport
from gateway.downstream.transports.listening import Listening
from gateway.downstream.transports.mending import list_again
from gateway.downstream.transports.remote import TOLD_WITHIN_S, Remote
from gateway.downstream.transports.replies import BOTH, JSON, refused
from gateway.downstream.transports.streams import SILENCE_S, Hear, Streams
from gateway.downstream.transports.transport import Departure, NotReading, StreamSink
from gateway.downstream.transports.under_way import UnderWay
from gateway.eras.manner import Manner
from gateway.protocol import methods
from gateway.protocol.errors import BadAnswer, GatewayError, HeaderMismatch, ServerFailure
from gateway.protocol.jsonrpc import Message, Notification, Request, decode, value

log = structlog.get_logger()

POSTED = {"Accept": BOTH, "Content-Type": JSON}

OTHER_TRANSPORT = frozenset({400, 404, 405})
"""Answers to `initialize` after which the older transport may be tried (2025-11-25,
basic/transports, "Backwards Compatibility")."""

HELD_WITHIN_S = 0.5
"""How long the first requests wait for that stream: what stands between may hold its head
back until there is something to say."""

GOODBYE_S = 2.0
"""How long a server may take to hear that its session is over."""

STOPPED = Departure(None, None, (), "was stopped")


class HttpTransport:
    """Implements `Transport`. Nothing is sent before the first message is."""

    pid = None
    way = "http"

    def __init__(self, remote: Remote, manner: Manner, sink: StreamSink, line_bytes: int) -> None:
        self._remote, self._manner, self._sink = remote, manner, sink
        self._streams = Streams(remote, manner, sink, line_bytes, self._lapse)
        begin = partial(remote.web.start, server=remote.server)
        self._under_way = UnderWay(begin, self._served)
        self._departure: Departure | None = None
        self._closed, self._opened = asyncio.Event(), asyncio.Event()
        self._holding: asyncio.Task[None] | None = None
        self._listens: set[int] = set()
        self._mending, self._lists_mended = asyncio.Lock(), 0
        if not manner.opens:
            self._opened.set()

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
        message = decode(line)
        if isinstance(message, Notification) and message.method == methods.CANCELLED:
            self._cancel(message, line)  # also of what goes on after a departure
        elif self._departure is not None:
            raise NotReading(self._departure.reason)
        elif isinstance(message, Request):
            assert isinstance(message.id, int), "ids of a link are its own"
            self._under_way.serve(message.id, self._ask(message, message.id, line))
        else:
            self._under_way.tell(self._tell(message, line))

    async def stop(self, grace_s: float) -> None:
        """End the conversation, unless it has ended: then what is under way may go on."""
        if self._departure is not None:
            return
        self._depart(STOPPED)
        await self._under_way.wind_up(self._sink.awaits, min(grace_s, GOODBYE_S))
        if self._manner.session is not None:
            with suppress(TimeoutError, GatewayError):
                async with asyncio.timeout(min(grace_s, GOODBYE_S)):
                    headers = self._manner.headers(None)
                    (await self._remote.request("DELETE", headers)).release()

    # --- requests ---

    async def _ask(self, request: Request, about: int, line: bytes) -> None:
        """See to one request until it is answered or cannot be."""
        try:
            if request.method != methods.INITIALIZE:
                await self._opened.wait()
            if request.method == methods.LISTEN:
                await self._listen(request, about, line)
            else:
                await self._exchange(request, line)
        except GatewayError as error:
            if isinstance(error, NotTaken):
                self._lose(error)
            self._sink.failed(about, error)

    async def _exchange(self, request: Request, line: bytes) -> None:
        try:
            await self._attempt(request, line)
        except BrokenOff:
            if not self._manner.learnt.may_repeat(request):
                raise
            log.info("request.repeated", server=self._remote.server, method=request.method)
            await self._attempt(request, line)
        except ServerFailure as failure:
            if failure.own_code != HeaderMismatch.code or request.method != methods.CALL_TOOL:
                raise
            before, seen = self._manner.headers(request), self._lists_mended
            async with self._mending:
                if self._lists_mended == seen:  # else somebody has read it meanwhile
                    await list_again(self._remote, self._manner, self._streams, request)
                    self._lists_mended += 1
            if self._manner.headers(request) == before:
                raise
            await self._attempt(request, line)

    async def _attempt(
        self,
        request: Request,
        line: bytes,
        hear: Hear | None = None,
        silence_s: float | None = None,
    ) -> bool:
        """Whether its stream was given up for its silence."""
        headers = {**POSTED, **self._manner.headers(request)}
        response = await self._remote.request("POST", headers, line, silence_s=silence_s)
        async with response:
            if not 200 <= response.status < 300:
                raise await self._refused(request, response)
            return await self._streams.answer(request, response, hear)

    async def _listen(self, request: Request, about: int, line: bytes) -> None:
        self._listens.add(about)
        try:
            await Listening(self._remote.server, self._sink.line, self._sink.missed).keep(
                lambda hear: self._attempt(request, line, hear, SILENCE_S),
                lambda: self._sink.awaits(about),
            )
        finally:
            self._listens.discard(about)

    async def _refused(self, request: Request, response: aiohttp.ClientResponse) -> GatewayError:
        error, lapsed = await refused(
            self._remote, response, has_session=self._manner.session is not None
        )
        if lapsed:
            self._lapse()
        elif (
            request.method == methods.INITIALIZE
            and response.status in OTHER_TRANSPORT
            and not isinstance(error, ServerFailure)
        ):
            said = f"does not speak Streamable HTTP (HTTP {response.status})"
            return WrongTransport(
                f"The server {self._remote.server} {said}", server=self._remote.server
            )
        return error

    def _served(self, about: int) -> None:
        if self._sink.awaits(about):
            if self._departure is STOPPED:
                pass  # said when the sink is closed
            else:
                said = f"{self._remote.server} ended its reply without an answer in it"
                self._sink.failed(about, BadAnswer(said))
        self._settle()

    # --- what needs no answer ---

    async def _tell(self, message: Message, line: bytes) -> None:
        async with self._under_way.turns:
            await self._told(message, line)
        if isinstance(message, Notification) and message.method == methods.INITIALIZED:
            await self._open()

    async def _told(self, message: Message, line: bytes) -> None:
        headers = {**POSTED, **self._manner.headers(message)}
        try:
            async with await self._remote.request(
                "POST", headers, line, silence_s=TOLD_WITHIN_S
            ) as response:
                if not 200 <= response.status < 300:
                    error, lapsed = await refused(
                        self._remote, response, has_session=self._manner.session is not None
                    )
                    log.info("message.refused", server=self._remote.server, why=error.message)
                    if lapsed:
                        self._lapse()
        except NotTaken as error:
            self._lose(error)
        except BrokenOff as error:
            log.info("message.lost", server=self._remote.server, why=error.message)

    async def _open(self) -> None:
        """The handshake is over: hold a stream open, then let the other requests go. A server
        that asks on that stream, before it is there, would ask nobody."""
        held = asyncio.Event()
        if self._departure is None:
            self._holding = self._under_way.run(self._hold(held))
            with suppress(TimeoutError):
                async with asyncio.timeout(HELD_WITHIN_S):
                    await held.wait()
        self._opened.set()

    def _cancel(self, message: Notification, line: bytes) -> None:
        self._under_way.cancel(value(message.params, "requestId"))
        if not self._manner.leaving_cancels and self._departure is None:
            self._under_way.tell(self._tell(message, line))

    async def _hold(self, held: asyncio.Event) -> None:
        try:
            await self._streams.hold(held.set)
        except NotTaken as error:
            self._lose(error)

    # --- the end ---

    def _lapse(self) -> None:
        self._depart(Departure(None, None, (), "has forgotten our session", lapsed=True))

    def _lose(self, error: NotTaken) -> None:
        reason = error.message.removeprefix(f"The server {self._remote.server} ")
        self._depart(Departure(None, None, (), reason))

    def _depart(self, departure: Departure) -> None:
        """Take nothing new. What is under way may still be answered; it fails by itself."""
        if self._departure is not None:
            return
        self._departure = departure
        self._closed.set()
        self._opened.set()
        self._sink.ending(departure)
        if self._holding is not None:
            self._holding.cancel()
        for about in self._listens:
            self._under_way.cancel(about)
        log.info("connection.ended", server=self._remote.server, reason=departure.reason)
        self._settle()

    def _settle(self) -> None:
        if self._departure is not None and not len(self._under_way):
            self._sink.closed(self._departure)
