"""Read and write pipes without waiting, straight from the event loop.

No stream, queue or task stands between a pipe and whoever uses it. asyncio's own pipe
transports cost more for each message and behave differently under uvloop;
`add_reader` and `add_writer` are the same everywhere.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]  # there is no such module on Windows

READ_BYTES = 64 * 2**10
"""For one read. More is slower: from 128 KiB on, malloc maps fresh pages for every read,
which triples the cost of a short message."""

PIPE_BYTES = 256 * 2**10
"""Asked of Linux in place of 64 KiB, so that a large message takes fewer turns. Not its
maximum of 1 MiB: a user has 64 MiB for all pipes together, and beyond it gets tiny ones."""

DRAIN_BYTES = 16 * 2**20
"""Read at most this much of what a process left in its pipe: its children may write on."""


def open_pipe(*, roomy: bool = False) -> tuple[int, int]:
    """A pipe, (reading end, writing end). Neither end is inherited."""
    reading, writing = os.pipe()
    if roomy and hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):  # the user's share is used up: the usual size will do
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return reading, writing


class Inlet:
    """The reading end: `feed` gets bytes as they come, `ended` is told once when there are no more.

    Both are called by the event loop and must not wait.
    """

    __slots__ = ("_ended", "_fd", "_feed", "_loop")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        feed: Callable[[bytes], object],
        ended: Callable[[], object],
    ) -> None:
        self._loop, self._fd, self._feed, self._ended = loop, fd, feed, ended
        os.set_blocking(fd, False)
        loop.add_reader(fd, self._ready)

    def drain(self) -> None:
        """Feed what is in the pipe already, and close it. `ended` is not called any more."""
        self._ended = _nothing
        total = 0
        while self._fd >= 0 and total < DRAIN_BYTES:
            read = self._ready()
            if not read:
                break
            total += read
        self.close()

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _ready(self) -> int:
        """Read once. Returns how many bytes came; 0 if none are there, or none will be."""
        try:
            data = os.read(self._fd, READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            data = b""
        if data:
            self._feed(data)
            return len(data)
        self.close()
        self._ended()
        return 0


class Outlet:
    """The writing end. What the pipe does not take at once waits here, up to the caller's bound.

    While several come in one turn of the event loop, they go out together: a write costs more
    than all else that a short message costs, and wakes the reader each time. One that comes
    alone does not wait for the turn to end. `broken` is told once, when nobody reads any more.
    """

    __slots__ = (
        "_are_many",
        "_below",
        "_broken",
        "_closing",
        "_fd",
        "_high",
        "_loop",
        "_messages",
        "_turn",
        "_turn_bytes",
        "_waiting",
        "writable",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        high_bytes: int,
        broken: Callable[[], object],
    ) -> None:
        """Not `writable` while more than `high_bytes` wait."""
        self._loop, self._fd, self._high, self._broken = loop, fd, high_bytes, broken
        self._waiting = bytearray()
        self._turn: list[bytes] = []
        self._turn_bytes = 0
        self._messages = 0
        """Of this turn."""
        self._are_many = False
        """There were several in the turn before."""
        self._closing = False
        self._below = asyncio.Event()
        self._below.set()
        self.writable = True
        os.set_blocking(fd, False)

    @property
    def waiting_bytes(self) -> int:
        return len(self._waiting) + self._turn_bytes

    def write(self, data: bytes) -> None:
        """Write in this turn; keep what does not fit. Nothing happens once the pipe is broken
        or closed."""
        if self._fd < 0 or self._closing:
            return
        self._messages += 1
        if self._messages == 1:
            self._loop.call_soon(self._end_turn)
            if not (self._are_many or self._waiting):
                self._put(data)
                return
        self._turn.append(data)
        self._turn_bytes += len(data)
        if self._turn_bytes > self._high:
            self._tell()

    def _end_turn(self) -> None:
        self._are_many, self._messages = self._messages > 1, 0
        self._flush()

    def _flush(self) -> None:
        turn = self._turn
        if self._fd < 0 or not turn:
            return
        data = turn[0] if len(turn) == 1 else b"".join(turn)
        self._turn, self._turn_bytes = [], 0
        self._put(data)

    def _put(self, data: bytes) -> None:
        if self._waiting:
            self._waiting += data
        else:
            written = self._write(data)
            if self._fd >= 0 and written < len(data):
                self._waiting += memoryview(data)[written:]
                self._loop.add_writer(self._fd, self._ready)
            elif self.writable:
                return
        self._tell()

    async def wait_writable(self) -> None:
        """Return when little waits, or when there is no more point in waiting."""
        await self._below.wait()

    def close(self) -> None:
        """Close as soon as what waits is written: at once, as a rule."""
        self._flush()
        self._closing = True
        if not self._waiting:
            self.abort()

    def abort(self) -> None:
        """Close now; what waits is lost."""
        if self._fd >= 0:
            self._loop.remove_writer(self._fd)
            os.close(self._fd)
            self._fd = -1
        self._waiting.clear()
        self._turn, self._turn_bytes = [], 0
        self._tell()

    def _ready(self) -> None:
        written = self._write(self._waiting[: 2 * PIPE_BYTES])
        del self._waiting[:written]
        if self._fd >= 0 and not self._waiting:
            self._loop.remove_writer(self._fd)
            if self._closing:
                self.abort()
        self._tell()

    def _write(self, data: bytes | bytearray) -> int:
        try:
            return os.write(self._fd, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            self.abort()
            self._loop.call_soon(self._broken)  # not now: somebody is in the middle of a call
            return 0

    def _tell(self) -> None:
        self.writable = self.waiting_bytes <= self._high
        if self.writable:
            self._below.set()
        else:
            self._below.clear()


def _nothing() -> None:
    """Nobody needs to know."""
