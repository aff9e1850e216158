"""The heads of answers that no response object makes."""

from collections.abc import Callable, Mapping
from email.utils import formatdate
from http import HTTPStatus

from gateway.edge.pulse import Pulse
from gateway.edge.refusals import JSON

HEAD_END = b"\r\n\r\n"
REASONS = {status.value: status.phrase for status in HTTPStatus}


class Heads:
    """Made once a tick, as far as they are the same for all."""

    def __init__(self, pulse: Pulse, wall: Callable[[], float]) -> None:
        """`wall` is seconds since 1970."""
        self._pulse = pulse
        self._wall = wall
        self._told_at = -1.0
        self._date = self._begins = b""

    def usual(self, size: int) -> bytes:
        """The head of an answer that is JSON and nothing special; `size` in bytes."""
        if self._told_at != self._pulse.now_s:
            self._tell_time()
        return self._begins + str(size).encode() + HEAD_END

    def of(self, status: int, headers: Mapping[str, str]) -> bytes:
        """Any other."""
        if self._told_at != self._pulse.now_s:
            self._tell_time()
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Unknown')}"]
        lines += [f"{name}: {held}" for name, held in headers.items()]
        return "\r\n".join(lines).encode() + b"\r\n" + self._date + HEAD_END

    def _tell_time(self) -> None:
        """Once a tick: RFC 9110 (6.6.1) asks for the time in each answer."""
        self._told_at = self._pulse.now_s
        self._date = b"Date: " + formatdate(self._wall(), usegmt=True).encode()
        lines = ["HTTP/1.1 200 OK", *(f"{name}: {held}" for name, held in JSON.items())]
        text = "\r\n".join(lines).encode()
        self._begins = text + b"\r\n" + self._date + b"\r\nContent-Length: "
