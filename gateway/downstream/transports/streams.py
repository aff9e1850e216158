"""Read what a server sends over HTTP, and take up streams that break.

Source: 2025-11-25, basic/transports, "Resumability and Redelivery": an event's id says where
to go on, `retry` when, and it is always a GET that does. 2026-07-28 has nothing of it.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp

from gateway.downstream.transports.failures import LONGEST_S, BrokenOff, NotTaken
from gateway.downstream.transports.remote import Remote, watch_over
from gateway.downstream.transports.replies import (
    EVENTS,
    events_of,
    has_lapsed,
    is_events,
    messages_in,
    said_by,
    whole_of,
)
from gateway.downstream.transports.transport import StreamSink
from gateway.eras.manner import TELLING, Manner
from gateway.protocol.errors import BadAnswer, GatewayError
from gateway.protocol.framing import Event, EventSplitter, Oversized
from gateway.protocol.headers import LAST_EVENT
from gateway.protocol.jsonrpc import Request, Result, decode

AFTERWARDS_S = 1.0
"""How long a stream that has brought its answer may take to end: the connection can then be
used again."""

SILENCE_S = 300.0
"""A stream that is held open and silent for so long is opened anew: most likely somebody on
the way has forgotten it. Servers that mean to be heard send comments much more often."""

STABLE_S = 30.0
"""A stream that held so long was no failure: its successor need not wait."""

LEAST_RETRY_MS = 500
"""Servers that close their streams to be polled name a time; a shorter one is none."""

PAGE = "text/html"

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
TRIES = 6
"""A stream is given up if it cannot be taken up again this many times in a row."""

Hear = Callable[[bytes, int | None], None]
"""`StreamSink.line`, or somebody before it."""


@dataclass(frozen=True, slots=True)
class Source:
    """A response that is read, and what for."""

    response: aiohttp.ClientResponse
    request: Request | None
    """None: it brings what belongs to no request."""
    hear: Hear

    @property
    def about(self) -> int | None:
        id_ = self.request.id if self.request is not None else None
        return id_ if isinstance(id_, int) else None


@dataclass(slots=True, eq=False)
class Streams:
    """The streams of one connection."""

    remote: Remote
    manner: Manner
    sink: StreamSink
    line_bytes: int
    lapsed: Callable[[], None]
    """Told when the server does not know our session."""

    async def answer(
        self, request: Request, response: aiohttp.ClientResponse, hear: Hear | None = None
    ) -> bool:
        """Read the answer to a request, in whichever form it comes.

        Returns when the answer is there, or will not be; True if the stream was given up for
        its silence. Raises `GatewayError`.
        """
        self.manner.begun(request, response.headers)
        source = Source(response, request, hear or self.sink.line)
        if is_events(response):
            splitter = EventSplitter(self.line_bytes)
            if hear is not None:
                watch_over(response)
            was_silent = await self._drink(source, splitter)
            if hear is None:
                await self._finish(request, splitter)
            return was_silent
        if response.content_type == PAGE:
            said = "a web page; is its `url` that of the MCP endpoint?"
            raise BadAnswer(f"The server {self.remote.server} answers with {said}")
        try:
            body = await whole_of(response, self.line_bytes)
        except (aiohttp.ClientError, OSError, TimeoutError):
            raise self.remote.broken("in the middle of it") from None
        if isinstance(body, Oversized):
            self._oversized(source, body)
            return False
        for message in messages_in(body):
            self._hear(source, message)
        return False

    async def hold(self, settled: Callable[[], object]) -> None:
        """Keep the stream open that brings what belongs to no request, where there is one;
        `settled` is told once that is known.

        Raises `NotTaken` if the server cannot be reached any more.
        """
        splitter, tries = EventSplitter(self.line_bytes), 0
        was_open = is_gap = False
        while True:
            try:
                response = await self._get(splitter, SILENCE_S)
            except BrokenOff:
                tries += 1
            else:
                settled()
                async with response:
                    if is_events(response):
                        if is_gap and splitter.last_id is None:
                            self.sink.missed()
                        was_open, splitter = True, _continued(splitter, self.line_bytes)
                        is_lasting, is_gap = await self._held(response, splitter)
                        tries = 0 if is_lasting else tries + 1
                    elif _is_final(response):
                        if was_open:  # else there is no such stream, whatever a 404 means
                            await self._look_for_session(response)
                        return
                    else:
                        tries += 1
            await asyncio.sleep(pause_s(splitter.retry_ms, tries))

    async def _held(
        self, response: aiohttp.ClientResponse, splitter: EventSplitter
    ) -> tuple[bool, bool]:
        """Read such a stream to its end. Whether the next is worth opening at once: not if it
        brought nothing and ended soon, and its server did not say when to come again, since
        that may go on for ever. And whether anything is missed till then."""
        loop, heard = asyncio.get_running_loop(), False

        def hear(line: bytes, about: int | None) -> None:
            nonlocal heard
            heard = True
            self.sink.line(line, about)

        watch_over(response)
        began = loop.time()
        was_silent = await self._drink(Source(response, None, hear), splitter)
        is_told = (splitter.retry_ms or 0) >= LEAST_RETRY_MS
        was_real = heard or loop.time() - began > STABLE_S
        return was_real or is_told, was_real and not was_silent

    # --- inside ---

    async def _drink(self, source: Source, splitter: EventSplitter) -> bool:
        """Read a stream to its end. One that has brought its answer may be left before, and
        one that is silent for too long: True."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as patience:
                async for event in events_of(source.response, splitter):
                    self._take(source, event)
                    if source.about is not None and not self.sink.awaits(source.about):
                        patience.reschedule(loop.time() + AFTERWARDS_S)
        except aiohttp.ServerTimeoutError:
            return True
        except TimeoutError:
            pass
        return False

    async def _finish(self, request: Request, splitter: EventSplitter) -> None:
        """The stream has ended: take it up again for as long as the answer is missing."""
        tries, loop = 0, asyncio.get_running_loop()
        while isinstance(request.id, int) and self.sink.awaits(request.id):
            if not self.manner.opens or _last_seen(splitter) is None:
                raise self.remote.broken("the stream ended")
            if tries == TRIES:
                raise self.remote.broken("the stream could not be taken up again")
            await asyncio.sleep(pause_s(splitter.retry_ms, tries))
            try:
                response = await self._get(splitter, None)
            except (NotTaken, BrokenOff):
                tries += 1
                continue
            async with response:
                if is_events(response):
                    before, began = splitter.last_id, loop.time()
                    splitter = _continued(splitter, self.line_bytes)
                    await self._drink(Source(response, request, self.sink.line), splitter)
                    is_new = splitter.last_id != before or loop.time() - began > STABLE_S
                    tries = 0 if is_new else min(tries + 1, TRIES - 1)
                elif _is_final(response):
                    await self._look_for_session(response)
                    raise self.remote.broken(f"taking it up again gets HTTP {response.status}")
                else:
                    tries += 1

    async def _get(
        self, splitter: EventSplitter, silence_s: float | None
    ) -> aiohttp.ClientResponse:
        seen = _last_seen(splitter)
        last = {} if seen is None else {LAST_EVENT: seen}
        headers = {"Accept": EVENTS, **self.manner.headers(None), **last}
        return await self.remote.request("GET", headers, silence_s=silence_s)

    async def _look_for_session(self, response: aiohttp.ClientResponse) -> None:
        if self.manner.session is not None and response.status in (400, 401, 404):
            said = (await said_by(response)).decode(errors="replace")
            if has_lapsed(response.status, said):
                self.lapsed()

    def _take(self, source: Source, event: Event | Oversized) -> None:
        if isinstance(event, Oversized):
            self._oversized(source, event)
        elif event.name == "message" and event.data:  # a priming event has none
            self._hear(source, event.data)

    def _hear(self, source: Source, line: bytes) -> None:
        if source.request is not None and source.request.method in TELLING:
            self._learn(source.request, line, source.response)
        source.hear(line, source.about)

    def _learn(self, request: Request, line: bytes, response: aiohttp.ClientResponse) -> None:
        try:
            message = decode(line)
        except GatewayError:
            return  # the sink says so
        if isinstance(message, Result):
            self.manner.answered(request, response.headers, message.result)

    def _oversized(self, source: Source, lost: Oversized) -> None:
        self.sink.oversized(lost.size, lost.head, lost.tail, source.about)


def _last_seen(splitter: EventSplitter) -> str | None:
    """The id to go on from, if there is one and a header can carry it."""
    seen = splitter.last_id
    return seen if seen is not None and seen.isprintable() else None


def _is_final(response: aiohttp.ClientResponse) -> bool:
    """Whether this answer to a GET says that there is no such stream, now and later.
    (409: the one before has not been seen to end yet.)"""
    status = response.status
    return status == 501 or (status < 500 and status not in (409, 429))


def pause_s(retry_ms: int | None, tries: int) -> float:
    """How long to wait before a stream is taken up again: what the server asked for, longer
    the more often it failed. Without a wish of the server's, many clients do not come at once.
    """
    if retry_ms is not None:
        asked_s = min(max(retry_ms / 1000, 0.02), LONGEST_S)
        return min(asked_s * 2.0**tries, max(LONGEST_PAUSE_S, asked_s))
    wait_s = min(FIRST_PAUSE_S * 2.0 ** min(tries, 10), LONGEST_PAUSE_S)
    return wait_s * (0.5 + random.random() / 2)


def _continued(splitter: EventSplitter, limit: int) -> EventSplitter:
    """For the next part of the same stream."""
    fresh = EventSplitter(limit)
    fresh.last_id, fresh.retry_ms = splitter.last_id, splitter.retry_ms
    return fresh
