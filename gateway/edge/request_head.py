"""The heads of requests: a client's next is mostly the same again, byte for byte.

What was read of a head holds for its repetition, whose `Content-Length` alone may differ: it is
neither parsed nor judged anew.
"""

import re
from typing import Self

from gateway.edge.guard import Admission
from gateway.eras.sides import Headers

LONGEST = 4096
"""Bytes of a head that is remembered, one for each connection."""

PATIENCE, SELDOM = 4, 32
"""After so many heads in a row that were unlike the one before, one in so many is remembered."""

DIGITS = 5
"""Of the length of a body that is small."""

_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]{1,%d})\r\n" % DIGITS, re.IGNORECASE)


class RequestHead:
    """A head that was parsed; `admission` is what was found out about it, by whoever asked."""

    __slots__ = ("_after", "_before", "admission", "headers")

    def __init__(self, headers: Headers) -> None:
        self.headers = headers
        self.admission: Admission | None = None
        self._before = self._after = b""

    def remember(self, head: bytes) -> Self | None:
        """Know it again. `head` is all of it, the empty line included, and a parser has agreed
        that its body is as long as its one `Content-Length` says. None if it can't be."""
        found = _LENGTH.search(head) if len(head) <= LONGEST else None
        if found is None:
            return None
        start, end = found.span(1)
        self._before, self._after = head[:start], head[end:]
        return None if _LENGTH.search(self._after) else self

    @staticmethod
    def is_worth_it(unlike: int) -> bool:
        """Whether to remember a head after so many in a row that were unlike the one before:
        those of some clients always are."""
        return unlike < PATIENCE or unlike % SELDOM == 0

    def body_of(self, request: bytes) -> bytes | None:
        """The body, if `request` is a whole one with this head; else None."""
        before, after = self._before, self._after
        if not request.startswith(before):
            return None
        end = request.find(b"\r", len(before), len(before) + DIGITS + 1)
        length, start = request[len(before) : end], end + len(after)
        if not (length.isdigit() and request.startswith(after, end)):
            return None
        return request[start:] if int(length) == len(request) - start else None
