"""Records reach a file soon, whatever the disk does; or they are counted, never lost in silence."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.observe.record import encode
from gateway.observe.sinks import LogSink, Ring, Spool, log_sink
from gateway.observe.stream import LineStream
from gateway.observe.targets import FileTarget, Target
from tests.kit.waiting import eventually
from tests.observe.records import ORDINARY, lines_of, record

NewSpool = Callable[..., Spool]


@pytest.fixture
def new_spool() -> Iterator[NewSpool]:
    made: list[Spool] = []

    def new(target: Target, clock: Callable[[], float] = time.monotonic, **bounds: float) -> Spool:
        made.append(Spool(target, "file", clock, retry_s=0.01, **bounds))  # type: ignore[arg-type]
        return made[-1]

    yield new
    for spool in made:
        spool.close(5)


class Disk:
    """A target in memory that can be full, held, or broken."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.error: Exception | None = None
        self.free = threading.Event()
        self.free.set()
        self.tries = 0
        self.most = 1000

    def append(self, lines: Sequence[bytes]) -> int:
        self.tries += 1
        self.free.wait(5)
        if self.error:
            raise self.error
        self.lines.extend(lines[: self.most])
        return min(self.most, len(lines))

    def close(self) -> None:
        self.free.set()


def put(spool: Spool, *names: str) -> None:
    for name in names:
        told = record(name=name)
        spool.write(told, encode(told))


def test_a_record_is_in_the_file_without_anybody_flushing(
    tmp_path: Path, new_spool: NewSpool
) -> None:
    path = tmp_path / "calls.jsonl"
    put(new_spool(FileTarget(path)), "a", "b")

    eventually(lambda: [line["name"] for line in lines_of(path)] == ["a", "b"])


def test_closing_writes_out_what_is_left(tmp_path: Path, new_spool: NewSpool) -> None:
    path = tmp_path / "calls.jsonl"
    spool = new_spool(FileTarget(path))
    put(spool, *map(str, range(5000)))

    assert spool.close(5) is True
    assert [line["name"] for line in lines_of(path)] == [str(n) for n in range(5000)]


def test_a_flush_waits_for_what_was_written_before_it(new_spool: NewSpool) -> None:
    disk = Disk()
    spool = new_spool(disk)
    put(spool, "a")

    assert spool.flush(5) is True
    assert disk.lines == [encode(record(name="a"))]


def test_a_disk_that_is_slow_makes_no_call_wait(new_spool: NewSpool) -> None:
    disk = Disk()
    disk.free.clear()
    spool = new_spool(disk)
    put(spool, "a")
    eventually(lambda: disk.tries)

    put(spool, *map(str, range(1000)))  # would hang here
    assert spool.flush(0.01) is False
    disk.free.set()
    assert spool.flush(5) is True
    assert len(disk.lines) == 1001


def test_a_disk_that_takes_a_few_lines_at_a_time_gets_each_once(new_spool: NewSpool) -> None:
    disk = Disk()
    disk.most = 3
    spool = new_spool(disk)
    put(spool, *map(str, range(100)))

    assert spool.flush(5) is True
    assert disk.lines == [encode(record(name=str(n))) for n in range(100)]


def test_a_full_disk_loses_nothing_while_memory_has_room(new_spool: NewSpool) -> None:
    disk = Disk()
    disk.error = OSError(28, "No space left on device")
    spool = new_spool(disk)
    with capture_logs() as logs:
        put(spool, "a", "b", "c")
        eventually(lambda: disk.tries > 3)
        disk.error = None
        assert spool.flush(5) is True

    assert len(disk.lines) == 3
    assert spool.dropped == 0
    assert [line["event"] for line in logs] == ["record.blocked", "record.resumed"]
    assert "No space left" in logs[0]["error"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_really_full_device_is_survived_and_its_successor_gets_everything(
    tmp_path: Path, new_spool: NewSpool
) -> None:
    path = tmp_path / "calls.jsonl"
    path.symlink_to("/dev/full")
    spool = new_spool(FileTarget(path))
    put(spool, "a", "b")
    assert spool.flush(0.3) is False

    path.unlink()  # the operator makes room: a new file

    eventually(lambda: [line["name"] for line in lines_of(path)] == ["a", "b"])


def test_beyond_the_bound_records_are_dropped_counted_and_told_once_a_minute(
    new_spool: NewSpool,
) -> None:
    now = [1000.0]
    disk = Disk()
    disk.error = OSError(28, "No space left on device")
    line = encode(ORDINARY)
    spool = new_spool(disk, lambda: now[0], bound_bytes=10 * len(line))
    with capture_logs() as logs:
        for _ in range(50):
            spool.write(ORDINARY, line)
        eventually(lambda: disk.tries > 5)
        assert spool.dropped == 40
        assert len(logs) == 1

        now[0] += 61
        tried = disk.tries
        eventually(lambda: disk.tries > tried + 5)
        assert [line["event"] for line in logs] == ["record.blocked"] * 2
        assert sum(line["dropped"] for line in logs) == 40

        disk.error = None
        assert spool.flush(5)
    assert len(disk.lines) == 10
    assert logs[-1]["event"] == "record.resumed"


def test_a_bug_in_a_target_does_not_end_the_record(new_spool: NewSpool) -> None:
    disk = Disk()
    disk.error = ZeroDivisionError("a bug")
    spool = new_spool(disk)
    with capture_logs() as logs:
        put(spool, "a")
        eventually(lambda: disk.tries > 1)
        disk.error = None
        assert spool.flush(5)

    assert len(disk.lines) == 1
    assert logs[0]["event"] == "record.crashed"


def test_what_cannot_be_written_before_the_end_is_told_and_bounded(new_spool: NewSpool) -> None:
    disk = Disk()
    disk.error = OSError(28, "No space left on device")
    spool = new_spool(disk)
    put(spool, "a", "b")
    with capture_logs() as logs:
        assert spool.close(0.2) is False
        put(spool, "c")

    assert logs[-1]["event"] == "record.lost"
    assert logs[-1]["lines"] == 2
    assert spool.dropped == 1


def test_no_record_is_left_lying_by_a_carrier_that_just_fell_asleep(new_spool: NewSpool) -> None:
    disk = Disk()
    spool = new_spool(disk)
    for n in range(300):
        put(spool, str(n))
        spool._hurry.set()  # no gathering: as many falls into sleep as possible
        if n % 3 == 0:
            eventually(lambda seen=n: len(disk.lines) > seen)  # type: ignore[misc]
    eventually(lambda: len(disk.lines) == 300)


def test_the_ring_keeps_the_last_records_and_tells_what_is_new() -> None:
    ring = Ring(size=3)
    for n in range(5):
        ring.write(ORDINARY, b"%d\n" % n)

    assert ring.written == 5
    assert ring.since(0) == (b"2\n", b"3\n", b"4\n")
    assert ring.since(4) == (b"4\n",)
    assert ring.since(5) == ring.since(9) == ()


def test_on_a_terminal_a_record_is_a_line_of_the_log_without_its_empty_fields() -> None:
    with capture_logs() as logs:
        LogSink().write(record(trace=None, error=None), b"")

    (line,) = logs
    assert (line["event"], line["outcome"], line["logger"]) == ("call.recorded", "ok", "calls")
    assert not {"trace", "error", "ts", "arguments"} & set(line)


def test_for_programs_the_record_itself_is_a_line_of_the_stream() -> None:
    reading, writing = os.pipe()
    sink = log_sink(LineStream(writing), time.monotonic)
    assert isinstance(sink, Spool)
    put(sink, "a", "b")

    assert sink.close(5) is True
    assert os.read(reading, 1 << 16) == encode(record(name="a")) + encode(record(name="b"))
    os.close(reading)
    os.close(writing)


def test_for_people_it_is_told_by_the_log() -> None:
    assert isinstance(log_sink(LineStream(2, for_people=True), time.monotonic), LogSink)
