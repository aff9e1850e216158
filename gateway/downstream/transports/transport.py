"""What a transport is to those above it, and what they are to a transport.

A transport carries whole JSON messages to one server and back. The first one is a pair
of pipes; over HTTP each request has a stream of its own, which tells what belongs to it.
"""

from dataclasses import dataclass
from typing import Protocol

from gateway.protocol.errors import GatewayError


class NotReading(Exception):
    """The server does not take what it is sent: too much is waiting already, or it is gone."""


@dataclass(frozen=True, slots=True)
class Departure:
    """How a conversation ended. `code` is None unless a process exited; `stderr` is what it
    said last."""

    code: int | None
    signal: str | None
    stderr: tuple[str, ...]
    reason: str
    """In words that follow the server's name: "exited with code 1", "was killed by SIGSEGV"."""
    lapsed: bool = False
    """The server is well and has only forgotten us: begin anew at once."""


class LineSink(Protocol):
    """Who hears what the server says. Called on the event loop; must neither wait nor raise."""

    def line(self, line: bytes) -> None:
        """One framed line, without its end."""

    def oversized(self, size: int, head: bytes, tail: bytes) -> None:
        """A line beyond the bound was dropped; `framing.answered_id` may tell whose it was."""

    def closed(self, cause: Departure) -> None:
        """Once: nothing more will come, and nothing can be sent."""


class StreamSink(LineSink, Protocol):
    """The same where messages come on streams. `about`: our id of the request on whose
    stream it came; None where a stream belongs to no request."""

    def line(self, line: bytes, about: int | None = None) -> None: ...
    def oversized(self, size: int, head: bytes, tail: bytes, about: int | None = None) -> None: ...

    def awaits(self, about: int) -> bool:
        """Whether this request still has no answer."""

    def failed(self, about: int, error: GatewayError) -> None:
        """There will be no answer to this request."""

    def missed(self) -> None:
        """Changes may have been told while the stream for them was not open."""

    def ending(self, cause: Departure) -> None:
        """Nothing more can be sent, but what is under way may still be answered."""


class Transport(Protocol):
    """One conversation with one server, from its opening to `stop`."""

    @property
    def pid(self) -> int | None:
        """Of the process, where there is one."""

    @property
    def way(self) -> str:
        """`stdio`, `http` or `sse`."""

    @property
    def writable(self) -> bool:
        """Whether little is waiting to be taken by the server."""

    def send(self, line: bytes) -> None:
        """Send one message, without newlines, or begin to. Raises `NotReading`."""

    async def wait_writable(self) -> None:
        """Return when `writable`, or when there is no more point. Callers bound it."""

    async def wait_closed(self) -> Departure:
        """Return once nothing can be sent any more. It may still have to be stopped."""

    async def stop(self, grace_s: float) -> None:
        """End it. Bounded; may be called again."""
