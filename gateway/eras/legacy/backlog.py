"""What the event streams of all sessions remember, so that they can be resumed; bounded.

A *track* is one stream's events under their numbers, whatever connection they went out on:
a client that lost it names the last event it saw, and gets the rest.
Source: 2025-11-25, basic/transports, "Resumability and Redelivery".
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from gateway.eras.sides import Stream

LARGE_BYTES = 256 * 2**10
"""An answer beyond this is not kept once it went out whole: it was nearly surely received."""


class Bounds(msgspec.Struct, frozen=True):
    """How much is kept, and for how long."""

    events: int = 256
    """Of one stream. Its last event, the answer, is kept whatever its size."""
    stream_bytes: int = 2**20
    session_bytes: int = 4 * 2**20
    all_bytes: int = 64 * 2**20
    streams: int = 64
    """Ended ones of a session."""
    kept_s: float = 300.0
    """How long an ended stream can still be resumed."""


class Event(msgspec.Struct, frozen=True):
    number: int
    message: bytes
    may_drop: bool


@dataclass(slots=True)
class Backlog:
    """The budget that all sessions share."""

    clock: Callable[[], float]
    bounds: Bounds = field(default_factory=Bounds)
    size: int = 0
    """Bytes kept now."""
    _ended: "OrderedDict[Track, None]" = field(default_factory=OrderedDict)
    """The first to go when room is needed, the oldest first."""

    def added(self, size: int) -> None:
        self.size += size
        while self.size > self.bounds.all_bytes and self._ended:
            self._ended.popitem(last=False)[0].forget()

    def dropped(self, size: int) -> None:
        self.size -= size

    @property
    def is_full(self) -> bool:
        """Even without anything that has ended: whoever goes on keeps no more than it must."""
        return self.size > self.bounds.all_bytes

    def ended(self, track: "Track") -> None:
        self._ended[track] = None

    def forgotten(self, track: "Track") -> None:
        self._ended.pop(track, None)


@dataclass(slots=True, eq=False)
class Track:
    """One stream of a session. Implements `eras.sides.Track`."""

    id: int
    """Unique in its session."""
    backlog: Backlog
    stream: Stream | None = None
    """Where its events go out now. It may have broken without our knowing."""
    is_over: bool = False
    is_kept: bool = True
    """Not once its session is over."""
    ended_at: float = 0.0
    size: int = 0
    _number: int = 0
    _events: deque[Event] = field(default_factory=deque)

    def push(self, message: bytes, *, may_drop: bool = False) -> None:
        """Number it, keep it, and send it if anybody listens. Never blocks, never raises."""
        self._keep(message, may_drop)
        if self.stream is not None:
            self.stream.push(message, self.name_of(self._number), may_drop=may_drop)

    def finish(self, last: bytes | None) -> None:
        """Say the last thing, if any; whoever resumes from now on gets it and then the end."""
        if self.is_over:
            return
        name = None
        if last is not None:
            self._keep(last, may_drop=False)
            name = self.name_of(self._number)
        self.is_over, self.ended_at = True, self.backlog.clock()
        if self.is_kept:
            self.backlog.ended(self)
        stream, self.stream = self.stream, None
        if stream is not None:
            stream.end(last, name)

    def delivered(self) -> None:
        """All of it went out over a connection that held to the end."""
        if self.is_over and self.size > LARGE_BYTES:
            self.forget()

    def attach(self, stream: Stream, after: int | None = None) -> None:
        """Go on over this stream, first with what came after event number `after`."""
        before, self.stream = self.stream, stream
        if before is not None and before is not stream:
            before.leave()
        if after is not None:
            for event in self._events:
                if event.number > after:
                    stream.push(event.message, self.name_of(event.number), may_drop=event.may_drop)
        if self.is_over:
            stream.end()
            self.stream = None
        elif after is not None:
            stream.expect()

    def detach(self, stream: Stream) -> None:
        if self.stream is stream:
            self.stream = None

    @property
    def newest(self) -> int:
        """The number of its last event so far."""
        return self._number

    def has(self, number: int) -> bool:
        """Whether it can be gone on with after this event; 0 stands for the beginning. Not if it
        is over and its last event, the answer, is not kept any more."""
        is_lost = self.is_over and not self._events
        return 0 <= number <= self._number and not (is_lost and number < self._number)

    def name_of(self, number: int) -> str | None:
        """The event's id on the wire: unique in the session, and telling the stream. None
        where there is nothing to resume."""
        return f"{self.id}-{number}" if self.is_kept else None

    def forget(self) -> None:
        """Keep nothing of it any longer."""
        self.backlog.dropped(self.size)
        self.backlog.forgotten(self)
        self.size = 0
        self._events.clear()

    def _keep(self, message: bytes, may_drop: bool) -> None:
        self._number += 1
        if not self.is_kept:
            return
        self._events.append(Event(self._number, message, may_drop))
        self.size += len(message)
        self.backlog.added(len(message))
        while len(self._events) > 1 and self._is_too_much():
            self._drop_one()

    def _is_too_much(self) -> bool:
        bounds, backlog = self.backlog.bounds, self.backlog
        return (
            len(self._events) > bounds.events or self.size > bounds.stream_bytes or backlog.is_full
        )

    def _drop_one(self) -> None:
        """The oldest that may be missed; if there is none, the oldest. Never the newest."""
        events = self._events
        index = next((i for i in range(len(events) - 1) if events[i].may_drop), 0)
        size = len(events[index].message)
        del events[index]
        self.size -= size
        self.backlog.dropped(size)
