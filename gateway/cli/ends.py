"""Take stdin and stdout for one conversation alone, whatever they are: pipes, files, terminals.

Descriptor 1 becomes another name of stderr, so that what is printed by mistake (by a
library, by a child) never gets between two messages; descriptor 0 becomes empty.
"""

import asyncio
import os
import select
import stat
import threading
from collections.abc import Callable
from contextlib import suppress

from gateway.downstream.transports.pipes import Inlet, Outlet, open_pipe

HIGH_BYTES = 2**20
"""Not writable while more than this waits for the client."""
PIECE_BYTES = 64 * 2**10
FLUSH_S = 1.0


class StandardEnds:
    """Implements `edge.stdio.holding.Ends`. Descriptors are taken when it is made."""

    def __init__(self) -> None:
        _open_all()
        self._reading, self._writing = os.dup(0), os.dup(1)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        os.dup2(2, 1)
        self._inlet: Inlet | None = None
        self._outlet: Outlet | None = None
        self._pump: threading.Thread | None = None
        self._watched = -1

    def open(
        self,
        feed: Callable[[bytes], None],
        ended: Callable[[], None],
        broken: Callable[[], None],
    ) -> Outlet:
        loop = asyncio.get_running_loop()
        reading, writing = self._reading, self._writing
        same = os.path.sameopenfile(reading, writing)
        if not _is_pipe(reading):
            piped, into = open_pipe()
            _pump(reading, into)
            reading = piped
        if _is_pipe(writing):
            if not same:
                self._watch(loop, writing, broken)
        else:
            from_, piped = open_pipe()
            self._pump = _pump(from_, writing)
            writing = piped
        self._outlet = Outlet(loop, writing, HIGH_BYTES, broken)
        self._inlet = Inlet(loop, reading, feed, ended)
        return self._outlet

    async def close(self) -> None:
        """Write what waits, for as long as somebody reads it."""
        if self._inlet is not None:
            self._inlet.close()
        self._unwatch()
        if self._outlet is not None:
            self._outlet.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_S):
                    while self._outlet.waiting_bytes:  # noqa: ASYNC110 - a pipe tells no event
                        await asyncio.sleep(0.01)
            self._outlet.abort()
        if self._pump is not None:
            await asyncio.to_thread(self._pump.join, FLUSH_S)

    def _watch(self, loop: asyncio.AbstractEventLoop, fd: int, broken: Callable[[], None]) -> None:
        """Notice that nobody reads any more, even while there is nothing to be said."""

        def stirred() -> None:
            poll = select.poll()
            poll.register(fd, 0)
            gone = any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
            self._unwatch()  # else: one direction of a socket was closed, which says nothing
            if gone:
                broken()

        self._watched = fd
        loop.add_reader(fd, stirred)

    def _unwatch(self) -> None:
        if self._watched >= 0:
            asyncio.get_running_loop().remove_reader(self._watched)
            self._watched = -1


def _open_all() -> None:
    """A program may be started without one of the three; the next file would take its number."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _is_pipe(fd: int) -> bool:
    """What the event loop can wait for without changing it for others who use it, as it would
    a terminal."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _pump(reading: int, writing: int) -> threading.Thread:
    """Copy all there is from one to the other, and close both."""

    def copy() -> None:
        with suppress(OSError):
            while data := os.read(reading, PIECE_BYTES):
                while data:
                    data = data[os.write(writing, data) :]
        os.close(reading)
        os.close(writing)

    thread = threading.Thread(target=copy, name="pump", daemon=True)
    thread.start()
    return thread
