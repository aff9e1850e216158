"""What is said to the client: one message a line, bounded by what it is willing to read."""

from collections.abc import Callable
from typing import Protocol

from gateway.protocol.jsonrpc import one_line

MOST_BYTES = 16 * 2**20
"""What may wait of messages that cannot be held back; beyond it the client is no longer served."""


class Pipe(Protocol):
    """The writing end of a pipe (`downstream.transports.pipes.Outlet` fits)."""

    @property
    def waiting_bytes(self) -> int: ...
    def write(self, data: bytes) -> None: ...
    async def wait_writable(self) -> None: ...


class Mouth:
    """Standard output. Lines are never mixed, and come out in the order they were said."""

    def __init__(self, pipe: Pipe, broken: Callable[[str], None]) -> None:
        """`broken` is told why the conversation cannot go on."""
        self._pipe = pipe
        self._broken = broken

    async def say(self, message: bytes) -> None:
        """Say one message as soon as the client has room for it: whoever brings much waits."""
        await self._pipe.wait_writable()
        self._write(message)

    def push(self, message: bytes, *, may_drop: bool = False) -> None:
        """Say it now, whatever waits. What may be dropped is, if too much does already."""
        if self._pipe.waiting_bytes + len(message) <= MOST_BYTES or not self._pipe.waiting_bytes:
            self._write(message)
        elif not may_drop:
            self._broken("the client does not read what it is told")

    def _write(self, message: bytes) -> None:
        self._pipe.write(one_line(message))
        self._pipe.write(b"\n")
