"""How much of broken streams is kept, and for how long; no network, no waiting."""

from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.eras.legacy.backlog import LARGE_BYTES, Backlog, Bounds, Track
from gateway.eras.legacy.streams import Streams


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(eq=False)
class Written:
    """A connection's stream that writes down what it is told."""

    said: list[tuple[str | None, bytes]] = field(default_factory=list)
    primed: list[tuple[str, int]] = field(default_factory=list)
    has_ended: bool = False

    def push(self, message: bytes, id_: str | None = None, *, may_drop: bool = False) -> None:
        self.said.append((id_, message))

    def prime(self, id_: str, retry_ms: int) -> None:
        self.primed.append((id_, retry_ms))

    def end(self, last: bytes | None = None, id_: str | None = None) -> None:
        if last is not None:
            self.said.append((id_, last))
        self.has_ended = True

    def leave(self) -> None:
        self.end()

    def when_old(self, aged: Callable[[], None]) -> None: ...

    def expect(self) -> None: ...

    def expect_no_more(self) -> None: ...

    async def wait_ended(self) -> None: ...

    @property
    def messages(self) -> list[bytes]:
        return [message for _, message in self.said]


def streams(clock: Callable[[], float] | None = None, **bounds: int) -> Streams:
    return Streams(Backlog(clock or Clock(), Bounds(**bounds)), primes=True)


def replayed(tracks: Streams, track: Track, after: int = 0) -> Written:
    stream = Written()
    tracks.resume(stream, track, after)
    return stream


def test_of_too_many_events_what_may_be_missed_goes_first() -> None:
    tracks = streams(events=3)
    track = tracks.begin(Written())
    track.push(b"question")
    for number in range(4):
        track.push(b"progress %d" % number, may_drop=True)

    assert replayed(tracks, track).messages == [b"question", b"progress 2", b"progress 3"]


def test_if_none_may_be_missed_the_oldest_goes() -> None:
    tracks = streams(events=2)
    track = tracks.begin(Written())
    for word in (b"one", b"two", b"three"):
        track.push(word)

    assert replayed(tracks, track).messages == [b"two", b"three"]


def test_events_are_bounded_in_bytes_but_the_answer_is_kept_whatever_its_size() -> None:
    tracks = streams(stream_bytes=100)
    track = tracks.begin(Written())
    track.push(b"x" * 60)
    track.push(b"y" * 60)
    track.finish(b"z" * 1000)

    stream = replayed(tracks, track)

    assert stream.messages == [b"z" * 1000]
    assert stream.has_ended
    assert tracks.backlog.size == 1000


def test_all_sessions_together_keep_no_more_than_their_budget() -> None:
    backlog = Backlog(Clock(), Bounds(all_bytes=1000))
    old, new = Streams(backlog, primes=True), Streams(backlog, primes=True)
    first = old.begin(Written())
    first.finish(b"a" * 600)
    second = new.begin(Written())
    second.finish(b"b" * 600)

    assert replayed(old, first).messages == []
    assert replayed(new, second).messages == [b"b" * 600]
    assert backlog.size == 600


def test_without_ended_streams_to_let_go_a_running_one_keeps_the_least() -> None:
    backlog = Backlog(Clock(), Bounds(all_bytes=100))
    tracks = Streams(backlog, primes=True)
    track = tracks.begin(Written())
    for number in range(50):
        track.push(b"%050d" % number)

    assert backlog.size <= 100
    assert replayed(tracks, track).messages[-1] == b"%050d" % 49


def test_a_session_lets_its_oldest_ended_streams_go_and_never_a_running_one() -> None:
    tracks = streams(streams=2)
    running = tracks.begin(Written())
    ended = [tracks.begin(Written()) for _ in range(4)]
    for track in ended:
        track.finish(b"done")
    tracks.begin(Written())

    assert [tracks.find(f"{track.id}-0") is not None for track in (running, *ended)] == [
        True,
        False,
        False,
        True,
        True,
    ]


def test_an_ended_stream_is_kept_for_a_while_and_a_running_one_as_long_as_it_runs() -> None:
    clock = Clock()
    tracks = streams(clock)
    running, ended = tracks.begin(Written()), tracks.begin(Written())
    running.push(b"still at it")
    ended.finish(b"done")

    clock.now = 299.0
    tracks.expire()
    assert tracks.find("2-1") is not None

    clock.now = 301.0
    tracks.expire()
    assert tracks.find("2-1") is None
    assert tracks.find("1-1") == (running, 1)
    assert tracks.backlog.size == len(b"still at it")


def test_nothing_is_kept_of_a_session_that_is_over() -> None:
    tracks = streams()
    own, running = Written(), tracks.begin(Written())
    tracks.open(own)
    tracks.standalone.push(b"news")
    running.push(b"some")
    tracks.end()
    running.finish(b"too late for anybody")

    assert tracks.backlog.size == 0
    assert own.has_ended
    assert tracks.find("1-0") is None


def test_a_large_answer_that_went_out_whole_is_not_kept() -> None:
    tracks = streams()
    lost, received = tracks.begin(Written()), tracks.begin(Written())
    for track in (lost, received):
        track.finish(b"x" * (LARGE_BYTES + 1))
    received.delivered()

    assert len(replayed(tracks, lost).messages) == 1
    assert replayed(tracks, received).messages == []
    assert tracks.backlog.size == LARGE_BYTES + 1


def test_who_asks_for_an_answer_that_is_not_kept_is_told_and_need_not_ask_for_ever() -> None:
    """A stream that ended at once, without the answer, would be gone on with again and again."""
    tracks = streams()
    track = tracks.begin(Written())
    track.push(b"one")
    track.finish(b"x" * (LARGE_BYTES + 1))
    assert tracks.find("1-1") == (track, 1)

    track.delivered()

    assert tracks.find("1-0") is tracks.find("1-1") is None
    assert tracks.find("1-2") == (track, 2), "nothing is missing after the last"


def test_resuming_says_again_how_long_to_wait_the_next_time() -> None:
    tracks = streams()
    track = tracks.begin(Written())
    track.push(b"one")
    track.push(b"two")

    stream = replayed(tracks, track, after=1)

    assert stream.primed == [("1-1", 1000)]
    assert stream.said == [("1-2", b"two")]


def test_an_ended_stream_holds_no_connection() -> None:
    tracks = streams()
    track = tracks.begin(Written())
    track.finish(b"done")

    assert track.stream is None
