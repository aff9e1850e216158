"""Write lines to a stream whose reader may be slow or gone, without ever waiting for it.

Standard error is often a pipe. If whoever reads it stops reading, a plain write
blocks the event loop and with it every call; if it leaves, a write raises. So
each piece is written only when the stream says it has room, and a line that
finds none is dropped and counted. Nothing else is held in memory: a line is out
when `write` returns, also if the process dies next.
"""

import os
import select
import sys
import threading

PIECE = 512 if sys.platform == "darwin" else 4096
"""PIPE_BUF: a pipe that polls writable takes at least this much at once (POSIX, write)."""


class LineStream:
    """One file descriptor, shared by every thread that has a line for it."""

    def __init__(self, fd: int, *, for_people: bool = False) -> None:
        self.for_people = for_people
        """Its lines are text to read, not JSON."""
        self.dropped = 0
        """Lines that found no room, or no reader, since the start."""
        self._fd = fd
        self._rest = b""
        self._lock = threading.Lock()
        self._tells = _tells_room(fd)

    def write(self, line: bytes) -> bool:
        """Write a whole line, newline included, or drop it. False if it was dropped."""
        with self._lock:
            if self._has_room():
                self._rest = line
                if self._has_room() or self._rest:
                    return True  # out, or begun: the rest goes before anything else
            self.dropped += 1
            return False

    def _has_room(self) -> bool:
        """Write on with the line begun. True once all of it is out."""
        while self._rest:
            if self._tells and not select.select((), (self._fd,), (), 0)[1]:
                return False
            try:
                written = os.write(self._fd, self._rest[:PIECE] if self._tells else self._rest)
            except BlockingIOError:
                return False
            except OSError:  # the reader left, the terminal closed, the disk is full
                self._rest = b""
                return False
            self._rest = self._rest[written:]
        return True


def _tells_room(fd: int) -> bool:
    try:
        select.select((), (fd,), (), 0)
    except (OSError, ValueError):  # Windows; closed; a number beyond what select looks at
        return False
    return True
