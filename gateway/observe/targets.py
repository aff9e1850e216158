"""Where lines of the record end up: a file that may be rotated, or the log's own stream."""

import os
import selectors
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from gateway.observe.stream import LineStream

ROOM_WITHIN_S = 1.0
"""A pipe that is full may take so long to take more before that is an error."""


class Target(Protocol):
    """Takes lines, in order. Used by one thread, which may wait; nobody else does."""

    def append(self, lines: Sequence[bytes]) -> int:
        """Write lines; returns how many are out, whole. Raises OSError if the first cannot be."""

    def close(self) -> None: ...


class FileTarget:
    """Appends to a file, readable by its owner alone.

    Renamed or removed under us (logrotate), it is opened anew: nothing to signal.
    `copytruncate` works as well, because each write goes to the end (O_APPEND).
    """

    def __init__(self, path: Path) -> None:
        """Opens the file now (OSError): a path that cannot work is to be heard of at start."""
        self._path = path
        self._begun, self._size = b"", 0
        """What is out of a line whose rest found no room, as on a full disk; and the size of
        the file after that."""
        self._fd = self._open()
        self._is_new = True
        """Nothing of ours is in the file yet."""

    def append(self, lines: Sequence[bytes]) -> int:
        if self._was_rotated():
            fresh = self._open()
            self.close()
            self._fd, self._begun, self._is_new = fresh, b"", True
        elif self._begun and os.fstat(self._fd).st_size < self._size:
            self._begun = b""  # emptied, to make room on the disk: its beginning is gone
        if self._is_new and _ends_in_mid_line(self._path, self._fd):
            self._write(b"\n")  # torn by a crash or a full disk: it must not swallow the next
        self._is_new = False
        text = b"".join(lines)[len(self._begun) :]
        out = len(self._begun) + self._write(text)
        for at, line in enumerate(lines):
            if out < len(line):
                self._begun, self._size = line[:out], os.fstat(self._fd).st_size
                return at
            out -= len(line)
        self._begun = b""
        return len(lines)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> int:
        # O_NONBLOCK: a named pipe without a reader is an error to retry, not a place to hang.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
        return os.open(self._path, flags | getattr(os, "O_CLOEXEC", 0), 0o600)

    def _write(self, text: bytes) -> int:
        try:
            return os.write(self._fd, text)
        except BlockingIOError:  # a pipe: its reader may only be slower than we are
            with selectors.DefaultSelector() as room:
                room.register(self._fd, selectors.EVENT_WRITE)
                room.select(ROOM_WITHIN_S)
            return os.write(self._fd, text)

    def _was_rotated(self) -> bool:
        if self._fd < 0:
            return True
        try:
            there, ours = os.stat(self._path), os.fstat(self._fd)
        except FileNotFoundError:
            return True
        return (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino)


class StreamTarget:
    """Hands lines to the log's stream one by one, so that they never mix with the log's."""

    def __init__(self, stream: LineStream) -> None:
        self._stream = stream

    def append(self, lines: Sequence[bytes]) -> int:
        for at, line in enumerate(lines):
            if not self._stream.write(line):
                if at == 0:
                    raise BlockingIOError("nobody reads the stream")
                return at
        return len(lines)

    def close(self) -> None:
        """The stream is the log's; it stays open."""


def _ends_in_mid_line(path: Path, fd: int) -> bool:
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_size == 0:
        return False
    try:
        with path.open("rb") as reader:
            reader.seek(-1, os.SEEK_END)
            return reader.read(1) != b"\n"
    except OSError:  # may be written but not read: then nothing is known of its end
        return False
