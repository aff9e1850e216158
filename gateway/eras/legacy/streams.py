"""The event streams of one session: which there are, which is meant, which are let go."""

from dataclasses import dataclass, field
from functools import partial

from gateway.eras.legacy.backlog import Backlog, Track
from gateway.eras.sides import Stream

RETRY_MS = 1000
"""How long clients should wait before they reconnect: a blip is over by then."""


@dataclass(slots=True, eq=False)
class Streams:
    """Implements `eras.sides.Tracks`. Number 0 is the stream that belongs to no request;
    each request that is answered as a stream gets the next number."""

    backlog: Backlog
    primes: bool
    """The client's revision knows events without data: the first one tells it an id, so that
    it can resume even if nothing else arrived."""
    standalone: Track = field(init=False)
    _requests: dict[int, Track] = field(default_factory=dict)
    _next: int = 1

    def __post_init__(self) -> None:
        self.standalone = Track(0, self.backlog)

    def begin(self, stream: Stream) -> Track:
        """The answer to a request has become a stream."""
        track = Track(self._next, self.backlog, stream)
        self._next += 1
        self._requests[track.id] = track
        self._make_room()
        self._prime(stream, track, 0)
        return track

    def find(self, event_id: str) -> tuple[Track, int] | None:
        """The stream and number that an event id stands for; None if it is not one of ours,
        or its stream is no longer kept."""
        stream, dash, number = event_id.partition("-")
        if not (dash and _is_number(stream) and _is_number(number)):
            return None
        track = self.standalone if stream == "0" else self._requests.get(int(stream))
        return (track, int(number)) if track is not None and track.has(int(number)) else None

    def resume(self, stream: Stream, track: Track, after: int) -> None:
        """Go on with a stream that broke, after the event its client saw last."""
        self._prime(stream, track, after)
        track.attach(stream, after)

    def open(self, stream: Stream) -> None:
        """The stream of the session itself, from now on; one before it ends, so that a client
        that reconnects is never turned away and no message goes out twice."""
        self._prime(stream, self.standalone, self.standalone.newest)
        self.standalone.attach(stream)

    def detach(self, stream: Stream) -> None:
        """It has ended; what is said from now on waits for another."""
        for track in (self.standalone, *self._requests.values()):
            track.detach(stream)

    def expire(self) -> None:
        """Let go what ended long ago. Called now and then."""
        oldest = self.backlog.clock() - self.backlog.bounds.kept_s
        for track in [t for t in self._requests.values() if t.is_over and t.ended_at <= oldest]:
            self._drop(track)

    def end(self) -> None:
        """The session is over: nothing can be resumed any more. Requests that still run say
        so on their own streams."""
        for track in (self.standalone, *self._requests.values()):
            track.forget()
            track.is_kept = False
        self._requests.clear()
        self.standalone.finish(None)

    def _prime(self, stream: Stream, track: Track, number: int) -> None:
        name = track.name_of(number)
        if self.primes and name is not None:
            stream.prime(name, RETRY_MS)
            stream.when_old(partial(self._change, stream, track))

    def _change(self, stream: Stream, track: Track) -> None:
        """Its connection is as old as it should get: its client goes on over another, from
        what it has seen last (2025-11-25: "closing the connection ... to avoid holding a
        long-lived connection")."""
        if track.stream is stream:
            track.detach(stream)
            stream.prime(track.name_of(track.newest) or "", RETRY_MS)
            stream.leave()

    def _make_room(self) -> None:
        """Bounded in number and in bytes; what runs is never let go."""
        bounds = self.backlog.bounds
        ended = [track for track in self._requests.values() if track.is_over]
        size = sum(track.size for track in self._requests.values())
        while ended and (len(ended) > bounds.streams or size > bounds.session_bytes):
            size -= ended[0].size
            self._drop(ended.pop(0))

    def _drop(self, track: Track) -> None:
        track.forget()
        del self._requests[track.id]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16
