"""Say what comes ahead of answers where everything goes out on one stream anyway."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.eras.sides import Stream, Tracks
from gateway.protocol import methods
from gateway.protocol.jsonrpc import Notification, Request, encode_line

MAY_DROP = frozenset({methods.PROGRESS, methods.MESSAGE})


@dataclass(frozen=True, slots=True)
class Aloud:
    """Implements `eras.sides.Reply`."""

    to: Stream

    def push(self, message: Notification | Request) -> None:
        may_drop = isinstance(message, Notification) and message.method in MAY_DROP
        self.to.push(encode_line(message), may_drop=may_drop)

    def say(self, message: bytes) -> None:
        self.to.push(message)

    def keep(self, tracks: Tracks) -> None:
        """Nothing is resumed: a stream that breaks is the end."""

    @property
    def streaming(self) -> bool:
        return True

    def stream(self) -> None:
        """It is one."""

    def when_old(self, aged: Callable[[], None]) -> None:
        """It is as old as what it speaks to, and ends with that alone."""

    def end_with_client(self) -> None:
        """Requests end when the stream does."""
