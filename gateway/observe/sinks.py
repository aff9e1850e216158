"""Where records go when a call ends. None of these ever makes a call wait or fail."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Protocol

import structlog
from msgspec import UNSET
from msgspec.structs import asdict

from gateway.observe.record import CallRecord
from gateway.observe.stream import LineStream
from gateway.observe.targets import StreamTarget, Target

log = structlog.get_logger()

WAIT_S = 0.1
"""A record is out this long after its call at the latest: one write serves many calls."""
BATCH_BYTES = 64 * 1024
"""This much is written at once, without waiting for more."""
BATCH_LINES = 512
BOUND_BYTES = 16 * 1024 * 1024
"""Kept in memory while the disk is full or slow: some 40,000 records."""
RETRY_S = 1.0
TELL_EVERY_S = 60.0


class RecordSink(Protocol):
    """Takes one record. Returns at once, never raises."""

    def write(self, record: CallRecord, line: bytes) -> None:
        """`line` is `record` as JSON, newline included, made once for all sinks."""


class Ring:
    """The last records, for `onegate calls` and the admin address."""

    def __init__(self, size: int = 1000) -> None:
        self.written = 0
        """How many there have been in all: a reader asks for what came after the last it saw."""
        self._lines: deque[bytes] = deque(maxlen=size)

    def write(self, _record: CallRecord, line: bytes) -> None:
        self.written += 1
        self._lines.append(line)

    def since(self, seen: int) -> Sequence[bytes]:
        """The lines written after the first `seen`, oldest first, as far as they are kept."""
        fresh = max(0, min(self.written - seen, len(self._lines)))
        return tuple(islice(self._lines, len(self._lines) - fresh, None))


class LogSink:
    """For people who watch a terminal: each record as a line of the log."""

    def __init__(self) -> None:
        self._log = structlog.get_logger()

    def write(self, record: CallRecord, _line: bytes) -> None:
        told = {key: held for key, held in asdict(record).items() if held not in (None, UNSET)}
        del told["ts"]  # the log has its own
        self._log.info("call.recorded", logger="calls", **told)


class Spool:
    """Lines in memory on their way to a slow target, carried by one thread of its own.

    `write` belongs to one thread, the event loop's. Where the target fails, lines are
    kept and tried again; beyond `bound_bytes` new ones are dropped, counted, and told
    of once a minute.
    """

    def __init__(
        self,
        target: Target,
        name: str,
        clock: Callable[[], float],
        *,
        bound_bytes: int = BOUND_BYTES,
        retry_s: float = RETRY_S,
    ) -> None:
        self.dropped = 0
        self._target = target
        self._name = name
        self._clock = clock
        self._bound_bytes = bound_bytes
        self._retry_s = retry_s
        self._lines: deque[bytes | threading.Event] = deque()
        # Each is counted by one thread alone, so neither needs a lock.
        self._bytes_in = self._bytes_out = 0
        self._is_asleep = False
        self._wake, self._hurry, self._closing = (threading.Event() for _ in range(3))
        self._batch: list[bytes] = []
        self._failing = False
        self._tell_at, self._told_dropped = clock(), 0
        self._thread = threading.Thread(target=self._carry, name=f"record-{name}", daemon=True)
        self._thread.start()

    @property
    def is_blocked(self) -> bool:
        """What was tried last could not be written; it is kept, and tried again."""
        return self._failing

    def write(self, _record: CallRecord, line: bytes) -> None:
        waiting = self._bytes_in - self._bytes_out
        if waiting + len(line) > self._bound_bytes:
            self.dropped += 1
            return
        self._bytes_in += len(line)
        self._lines.append(line)
        # The carrier says it sleeps before it looks for lines; we add one before we look whether
        # it sleeps: so one of the two always sees the other.
        if self._is_asleep:
            self._wake.set()
        if waiting > BATCH_BYTES and not self._hurry.is_set():
            self._hurry.set()

    def flush(self, within_s: float) -> bool:
        """Wait until what has been written so far is out. False if that took too long."""
        passed = threading.Event()
        self._lines.append(passed)
        self._hurry.set()
        self._wake.set()
        return passed.wait(within_s)

    def close(self, within_s: float) -> bool:
        """Write out what is left, then stop. False if something had to be left behind."""
        if self._closing.is_set():
            return not self._batch
        is_out = self.flush(within_s)
        self._bound_bytes = 0  # whatever comes now is counted as dropped
        self._closing.set()
        self._hurry.set()
        self._wake.set()
        self._thread.join(within_s)
        if not is_out:
            left = sum(isinstance(line, bytes) for line in (*self._batch, *self._lines))
            log.error("record.lost", to=self._name, lines=left, dropped=self.dropped)
        return is_out

    def _carry(self) -> None:
        while not self._closing.is_set():
            self._is_asleep = True
            if not self._lines:
                self._wake.wait()
            self._is_asleep = False
            self._wake.clear()
            self._hurry.wait(WAIT_S)
            self._hurry.clear()
            self._empty()
        self._target.close()

    def _empty(self) -> None:
        while batch := self._next():
            out = self._append(batch)
            if out is None:
                if self._closing.wait(self._retry_s):
                    return
                continue
            self._bytes_out += sum(map(len, batch[:out]))
            del batch[:out]
            self._tell(None)

    def _append(self, batch: list[bytes]) -> int | None:
        try:
            return self._target.append(batch)
        except OSError as error:
            self._tell(error)
        except Exception as error:  # a bug here must not end the record for good
            log.exception("record.crashed", to=self._name)
            self._tell(error)
        return None

    def _next(self) -> list[bytes]:
        """Up to `BATCH_LINES` lines, those that failed before first; no further than a flush."""
        while self._lines and len(self._batch) < BATCH_LINES:
            line = self._lines.popleft()
            if isinstance(line, bytes):
                self._batch.append(line)
            elif self._batch:
                self._lines.appendleft(line)
                break
            else:
                line.set()
        return self._batch

    def _tell(self, error: Exception | None) -> None:
        """At once when it begins or ends, and once a minute in between."""
        changed = self._failing != (error is not None)
        self._failing = error is not None
        lost = self.dropped - self._told_dropped
        is_due = (error is not None or lost > 0) and self._clock() >= self._tell_at
        if not (changed or is_due):
            return
        self._tell_at = self._clock() + TELL_EVERY_S
        self._told_dropped += lost
        told = {"to": self._name, "dropped": lost, "waiting": self._bytes_in - self._bytes_out}
        if error is not None:
            log.error("record.blocked", error=f"{type(error).__name__}: {error}", **told)
        elif changed:
            log.warning("record.resumed", **told)
        else:
            log.error("record.dropped", **told)


def log_sink(stream: LineStream, clock: Callable[[], float]) -> LogSink | Spool:
    """The record on the log's stream: for people a line like any other, for programs the
    record itself, between the lines of the log and at a fiftieth of their cost."""
    return LogSink() if stream.for_people else Spool(StreamTarget(stream), "stderr", clock)
