"""Read what a server sends over HTTP, and take up streams that break.

Source: 2025-11-25, basic/transports, "Resumability and Redelivery": an event's id says where
to go on, `retry` when, and it is always a GET that does. 2026-07-28 has nothing of it.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp

from gateway.downstream.transports.failures import BrokenOff, NotTaken
from gateway.downstream.transports.remote import Remote
from gateway.downstream.transports.replies import (
    EVENTS,
    events_of,
    is_events,
    messages_in,
    whole_of,
)
from gateway.downstream.transports.transport import StreamSink
from gateway.eras.manner import TELLING, Manner
from gateway.protocol.errors import GatewayError
from gateway.protocol.framing import Event, EventSplitter, Oversized
from gateway.protocol.headers import LAST_EVENT
from gateway.protocol.jsonrpc import Request, Result, decode

AFTERWARDS_S = 1.0
"""How long a stream that has brought its answer may take to end: the connection can then be
used again."""

SILENCE_S = 300.0
"""A stream that is held open and silent for so long is opened anew: most likely somebody on
the way has forgotten it. Servers that mean to be heard send comments much more often."""

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
    ) -> None:
        """Read the answer to a request, in whichever form it comes.

        Returns when the answer is there, or will not be. Raises `GatewayError`.
        """
        source = Source(response, request, hear or self.sink.line)
        if is_events(response):
            splitter = EventSplitter(self.line_bytes)
            await self._drink(source, splitter)
            if hear is None:
                await self._finish(request, splitter)
            return
        try:
            body = await whole_of(response, self.line_bytes)
        except (aiohttp.ClientError, OSError, TimeoutError):
            raise self.remote.broken("in the middle of it") from None
        if isinstance(body, Oversized):
            self._oversized(source, body)
            return
        for message in messages_in(body):
            self._hear(source, message)

    async def hold(self, settled: Callable[[], object]) -> None:
        """Keep the stream open that brings what belongs to no request, where there is one;
        `settled` is told once that is known.

        Raises `NotTaken` if the server cannot be reached any more.
        """
        splitter, tries = EventSplitter(self.line_bytes), 0
        while True:
            try:
                response = await self._get(splitter, SILENCE_S)
            except BrokenOff:
                tries += 1
            else:
                settled()
                async with response:
                    if is_events(response):
                        tries = 0
                        splitter = _continued(splitter, self.line_bytes)
                        await self._drink(Source(response, None, self.sink.line), splitter)
                    elif _is_final(response):
                        self._look_for_session(response)
                        return
                    else:
                        tries += 1
            await asyncio.sleep(pause_s(splitter.retry_ms, tries))

    # --- inside ---

    async def _drink(self, source: Source, splitter: EventSplitter) -> None:
        """Read a stream to its end. One that has brought its answer may be left before."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as patience:
                async for event in events_of(source.response, splitter):
                    self._take(source, event)
                    if source.about is not None and not self.sink.awaits(source.about):
                        patience.reschedule(loop.time() + AFTERWARDS_S)
        except TimeoutError:
            return

    async def _finish(self, request: Request, splitter: EventSplitter) -> None:
        """The stream has ended: take it up again for as long as the answer is missing."""
        tries = 0
        while isinstance(request.id, int) and self.sink.awaits(request.id):
            if not self.manner.opens or splitter.last_id is None:
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
                    tries = 0
                    splitter = _continued(splitter, self.line_bytes)
                    await self._drink(Source(response, request, self.sink.line), splitter)
                elif _is_final(response):
                    self._look_for_session(response)
                    raise self.remote.broken(f"taking it up again gets HTTP {response.status}")
                else:
                    tries += 1

    async def _get(
        self, splitter: EventSplitter, silence_s: float | None
    ) -> aiohttp.ClientResponse:
        last = {} if splitter.last_id is None else {LAST_EVENT: splitter.last_id}
        headers = {"Accept": EVENTS, **self.manner.headers(None), **last}
        return await self.remote.request("GET", headers, silence_s=silence_s)

    def _look_for_session(self, response: aiohttp.ClientResponse) -> None:
        if response.status == 404 and self.manner.session is not None:
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
        return min(max(retry_ms / 1000, 0.02) * 2.0**tries, max(LONGEST_PAUSE_S, retry_ms / 1000))
    wait_s = min(FIRST_PAUSE_S * 2.0 ** min(tries, 10), LONGEST_PAUSE_S)
    return wait_s * (0.5 + random.random() / 2)


def _continued(splitter: EventSplitter, limit: int) -> EventSplitter:
    """For the next part of the same stream."""
    fresh = EventSplitter(limit)
    fresh.last_id, fresh.retry_ms = splitter.last_id, splitter.retry_ms
    return fresh
