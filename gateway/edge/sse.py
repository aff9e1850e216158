"""Event streams: answers that begin before they are complete, and streams clients hold open.

Pushing is synchronous and bounded; one task for each stream (none for JSON answers) writes.
Source: WHATWG HTML, server-sent events; 2026-07-28 basic/transports.
"""

import asyncio
import math
import random
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import structlog

from gateway.edge.accepting import STREAM, Accepts
from gateway.edge.pulse import Pulse
from gateway.edge.refusals import SERVER
from gateway.edge.wire import Wire
from gateway.eras.sides import Answer, Track, Tracks
from gateway.protocol.jsonrpc import Notification, Request, encode_line, one_line

log = structlog.get_logger()

MOST_EVENTS = 1024
MOST_BYTES = 4 * 2**20
BATCH_BYTES = 64 * 2**10
COMMENT = b": keep-alive\n\n"
HEAD = {
    "Content-Type": STREAM,
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
    **SERVER,
}
MAY_DROP = frozenset({"notifications/progress", "notifications/message"})

Spawn = Callable[[Coroutine[Any, Any, None]], None]
"""Run this until it ends, in a task somebody owns."""

OLD = (0.9, 1.0)
"""At which share of their bound streams count as old: not all at once that began at once."""

SOON_S = 1.0
"""Silence before an answer that could be resumed becomes a stream: a client that loses the
connection before has nothing to resume with."""


def event(message: bytes, id_: str | None = None) -> bytes:
    """One JSON message on one line as one event."""
    named = b"" if id_ is None else b"id: " + id_.encode() + b"\n"
    return named + b"event: message\ndata: " + message + b"\n\n"


class EventStream:
    """One `text/event-stream` answer: a bounded queue, and the task that writes it out.

    Implements `eras.sides.Stream`.
    """

    def __init__(self, wire: Wire, head: Mapping[str, str], pulse: Pulse, spawn: Spawn) -> None:
        self._wire = wire
        self._head = {**HEAD, **head}
        self._pulse = pulse
        self._events: deque[tuple[bytes, bool]] = deque()
        self._waiting_bytes = 0
        self._wake = asyncio.Event()
        self._over = asyncio.Event()
        self._is_ending = False
        self._is_gone = self._was_lost = wire.is_gone
        self._began_s = self._wrote_s = pulse.now_s
        self._share = random.uniform(*OLD)
        self._aged: Callable[[], None] | None = None
        self._leaves = False
        wire.tell(self)
        spawn(self._write())

    def push(self, message: bytes, id_: str | None = None, *, may_drop: bool = False) -> None:
        self.queue(event(one_line(message), id_), may_drop=may_drop)

    def prime(self, id_: str, retry_ms: int) -> None:
        self.queue(b"id: %s\nretry: %d\ndata: \n\n" % (id_.encode(), retry_ms))

    def end(self, last: bytes | None = None, id_: str | None = None) -> None:
        """Queue the last event, if any, whatever its size, and close after it."""
        if self._is_ending or self._is_gone:
            return
        if last is not None:
            self._append(event(one_line(last), id_), False)
        self._is_ending = True
        self._wake.set()

    def leave(self) -> None:
        """The request goes on, and keeps its connection busy for that long: close it too, so
        that its client sends nothing more over it."""
        self._leaves = True
        self.end()

    def when_old(self, aged: Callable[[], None]) -> None:
        self._aged = aged

    def expect(self) -> None:
        """An answer that is a stream ends with the answer."""

    def expect_no_more(self) -> None:
        """The same."""

    async def wait_ended(self) -> None:
        """Return when everything is out, or the client has gone."""
        await self._over.wait()

    @property
    def is_out(self) -> bool:
        """It ended with everything said, and the client was there to the end."""
        return self._over.is_set() and not self._was_lost and not self._leaves

    def queue(self, data: bytes, *, may_drop: bool = False) -> None:
        """Queue it and return. If there is no room, the oldest event that may be dropped is, or
        one that says the very same; if there is none, the client reads too slowly to be served
        and is cut off."""
        if self._is_ending or self._is_gone:
            return
        while not self._has_room(len(data)):
            if self._drop_oldest() or self._drop_same(data):
                continue
            if not may_drop:
                self.abort("too much waits for a client that does not read")
            return
        self._append(data, may_drop)

    def comment(self) -> None:
        """A sign of life, unless there is something better to send."""
        if not self._events:
            self.queue(COMMENT, may_drop=True)

    def beat(self, now_s: float) -> None:
        if (
            self._aged is not None
            and now_s - self._began_s >= self._pulse.stream_age_s * self._share
        ):
            aged, self._aged = self._aged, None
            aged()
        elif now_s - self._wrote_s >= self._pulse.keep_alive_s:
            self.comment()

    def abort(self, reason: str) -> None:
        log.warning("stream.cut", reason=reason, waiting=len(self._events))
        self.lost()
        self._wire.abort()

    def lost(self) -> None:
        """The client has gone; nobody reads any more."""
        self._is_gone = self._was_lost = True
        self._events.clear()
        self._wake.set()

    def _append(self, data: bytes, may_drop: bool) -> None:
        self._events.append((data, may_drop))
        self._waiting_bytes += len(data)
        self._wake.set()

    def _has_room(self, more: int) -> bool:
        events = self._events
        return not events or (
            len(events) < MOST_EVENTS and self._waiting_bytes + more <= MOST_BYTES
        )

    def _drop_oldest(self) -> bool:
        for index, (data, may_drop) in enumerate(self._events):
            if may_drop:
                del self._events[index]
                self._waiting_bytes -= len(data)
                return True
        return False

    def _drop_same(self, data: bytes) -> bool:
        """A resource that changed twice before its reader was told has changed."""
        same = (data, False)
        if same not in self._events:
            return False
        self._events.remove(same)
        self._waiting_bytes -= len(data)
        return True

    async def _write(self) -> None:
        try:
            if self._aged is not None and self._pulse.stream_age_s < math.inf:
                # Said now: a client that found out later may just have sent something over it.
                self._wire.be_last()
            await self._wire.begin(self._head)
            await self._write_events()
        except ConnectionError:
            self._was_lost = True  # gone in the middle of a write
        finally:
            self._is_gone = True
            self._events.clear()
            self._over.set()

    async def _write_events(self) -> None:
        while not self._is_gone:
            if self._events:
                await self._wire.write(self._next_batch())
                self._wrote_s = self._pulse.now_s
            elif self._is_ending:
                await self._wire.end()
                if self._leaves:
                    self._wire.close()
                return
            else:
                self._wake.clear()
                await self._wake.wait()

    def _next_batch(self) -> bytes:
        """Several small events in one write, or one large one as it is."""
        events = self._events
        data, _ = events.popleft()
        if events:
            parts, size = [data], len(data)
            while events and size + len(events[0][0]) <= BATCH_BYTES:
                parts.append(events.popleft()[0])
                size += len(parts[-1])
            data = b"".join(parts)
        self._waiting_bytes -= len(data)
        return data


class StreamingReply:
    """What an inbound request may say ahead of its answer (`eras.sides.Reply`).

    JSON until something has to be said earlier; then, or after long silence, a stream.
    """

    __slots__ = (
        "_accepts",
        "_head",
        "_pulse",
        "_since_s",
        "_spawn",
        "_stream",
        "_track",
        "_tracks",
        "_wire",
        "was_cut",
    )

    def __init__(
        self,
        wire: Wire,
        accepts: Accepts,
        head: Mapping[str, str],
        pulse: Pulse,
        spawn: Spawn,
    ) -> None:
        """`head`: headers a stream starts with."""
        self._wire = wire
        self._accepts = accepts
        self._head = head
        self._pulse = pulse
        self._spawn = spawn
        self._since_s = pulse.now_s
        self._stream: EventStream | None = None
        self._tracks: Tracks | None = None
        self._track: Track | None = None
        self.was_cut = False

    @property
    def streaming(self) -> bool:
        return self._stream is not None

    def push(self, message: Notification | Request) -> None:
        may_drop = isinstance(message, Notification) and message.method in MAY_DROP
        self._say(encode_line(message), may_drop)

    def say(self, message: bytes) -> None:
        self._say(one_line(message), False)

    def keep(self, tracks: Tracks) -> None:
        self._tracks = tracks

    def _say(self, line: bytes, may_drop: bool) -> None:
        stream = self._opened()
        if self._track is not None:
            self._track.push(line, may_drop=may_drop)
        elif stream is not None:
            stream.push(line, may_drop=may_drop)

    def stream(self) -> None:
        if self._stream is None and (stream := self._opened()) is not None:
            stream.comment()

    def when_old(self, aged: Callable[[], None]) -> None:
        if (stream := self._opened()) is not None:
            stream.when_old(aged)

    def end_with_client(self) -> None:
        self._wire.end_with_client()

    def closed(self) -> None:
        """The request is over, however it ended."""
        self._wire.release()
        if self._track is not None:
            self._track.finish(None)
        if self._stream is not None:
            self._stream.end()

    async def finish(self, answer: Answer) -> None:
        """End the stream with the answer's body as its last event."""
        if self._stream is None:
            self._head = {**answer.headers, **self._head}
        stream = self._opened()
        assert stream is not None, "a client that takes no stream has no stream to finish"
        if self._track is None:
            stream.end(answer.body)
            await stream.wait_ended()
        else:
            self._track.finish(None if answer.body is None else one_line(answer.body))
            await stream.wait_ended()
            if stream.is_out:
                self._track.delivered()

    def beat(self, now_s: float) -> None:
        if self._stream is not None:
            self._stream.beat(now_s)
        elif self._accepts.names_stream and now_s - self._since_s >= self._patience_s:
            self.stream()

    @property
    def _patience_s(self) -> float:
        keep_alive_s = self._pulse.keep_alive_s
        soon = self._tracks is not None and self._tracks.primes
        return min(SOON_S, keep_alive_s) if soon else keep_alive_s

    def wind_up(self) -> None:
        """An answer may still come: let it."""

    def cut(self) -> None:
        self.was_cut = True
        if self._wire.task is not None:
            self._wire.task.cancel()

    def _opened(self) -> EventStream | None:
        if self._stream is None and self._accepts.stream:
            self._stream = EventStream(self._wire, self._head, self._pulse, self._spawn)
            if self._tracks is not None:
                self._track = self._tracks.begin(self._stream)
        return self._stream


class HeldStream(EventStream):
    """A stream a client opened by GET. Its first bytes go at once: proxies hold a head back
    until something follows it."""

    def __init__(self, wire: Wire, head: Mapping[str, str], pulse: Pulse, spawn: Spawn) -> None:
        super().__init__(wire, head, pulse, spawn)
        self._has_more_to_say = self._winds_up = False
        self.comment()

    def leave(self) -> None:
        self.end()  # and with it the request

    def expect(self) -> None:
        self._has_more_to_say = True

    def expect_no_more(self) -> None:
        self._has_more_to_say = False
        if self._winds_up:
            self.end()

    def wind_up(self) -> None:
        self._winds_up = True
        if not self._has_more_to_say:
            self.end()

    def cut(self) -> None:
        self.abort("the gateway stops")
