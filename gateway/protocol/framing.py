"""Cut a stream of bytes into messages: lines as stdio has them, events as SSE has them.

Incremental and bounded. Any chunking gives the same messages, and what is too long
costs no memory: it is dropped up to its end and reported with its first and last bytes.
"""

import re

import msgspec

HEAD_BYTES = TAIL_BYTES = 512
"""Enough of an oversized message to find its id, which servers write first or last."""

BOM = b"\xef\xbb\xbf"

_SLACK_BYTES = len(BOM) + 1
"""A byte order mark and the CR of a CRLF are not counted as part of a line."""

_ID_FIRST = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*"?(\d{1,18})"?\s*,\s*'
    rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"(?:result|error)"\s*:'
)
_ANSWER = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"(?:result|error)"\s*:')
_ID_LAST = re.compile(rb',\s*"id"\s*:\s*"?(\d{1,18})"?\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


class Oversized(msgspec.Struct, frozen=True):
    """What is left of a message beyond the bound: how long it was, how it began and ended."""

    size: int
    head: bytes
    tail: bytes


def answered_id(head: bytes, tail: bytes) -> int | None:
    """The id of the request that an oversized message answers, or None if that can't be told.

    Only an id beside `result` or `error` counts: one inside the result, or the id of a
    request the server makes, would fail somebody else's call. Python, Go and Rust servers
    write it before the result, those made with the TypeScript SDK at the very end, where
    the last brace can close nothing but the message itself.
    """
    found = _ID_FIRST.match(head)
    if found is None and _ANSWER.match(head):
        found = _ID_LAST.search(tail)
    return int(found[1]) if found else None


class LineSplitter:
    """Newline framing, as MCP has it on stdio. Bytes only: U+2028 and friends end no line.

    Accepts CRLF, drops blank lines, and a byte order mark at the start. `limit` counts
    the bytes of a line without its end.
    """

    __slots__ = ("_first", "_head", "_held", "_limit", "_lost", "_tail")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()  # the beginning of a line whose end is still to come
        self._lost = 0  # bytes of the current line dropped so far; 0 if none are
        self._head = self._tail = b""
        self._first = True

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """The lines that `data` completes, in order, without their ends."""
        if not (self._first or self._held or self._lost):
            return self._split(data)
        cut = data.find(b"\n")
        if cut < 0:
            self._hold(data)
            return []
        self._hold(data[:cut])
        line = self._take()
        rest = self._split(data[cut + 1 :])
        return rest if line is None else [line, *rest]

    def finish(self) -> list[bytes | Oversized]:
        """At the end of the stream: what stands there without a newline."""
        line = self._take()
        return [] if line is None else [line]

    def _split(self, data: bytes) -> list[bytes | Oversized]:
        """The common case: `data` begins where a line begins."""
        lines = data.split(b"\n")
        rest = lines.pop()
        if rest:
            self._hold(rest)
        if b"\r" in data:
            lines = [line.removesuffix(b"\r") for line in lines]
        whole = [line for line in lines if line and not line.isspace()]
        if len(data) > self._limit:
            return [self._bounded(line) for line in whole]
        return [*whole]

    def _hold(self, data: bytes) -> None:
        if self._lost:
            self._lost += len(data)
            if len(self._head) < HEAD_BYTES:  # the bound may be shorter than that
                self._head += data[: HEAD_BYTES - len(self._head)]
            self._tail = (self._tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]
            return
        self._held += data
        if len(self._held) > self._limit + _SLACK_BYTES:
            self._lost = len(self._held)
            self._head = bytes(self._held[:HEAD_BYTES])
            self._tail = bytes(self._held[-TAIL_BYTES:])
            self._held = bytearray()

    def _take(self) -> bytes | Oversized | None:
        """The line held so far, which ends here. None if there is nothing in it."""
        line, lost = bytes(self._held), self._lost
        self._held, self._lost = bytearray(), 0
        first, self._first = self._first, False
        if lost:
            return Oversized(lost, self._head, self._tail)
        if first:
            line = line.removeprefix(BOM)
        line = line.removesuffix(b"\r")
        return self._bounded(line) if line and not line.isspace() else None

    def _bounded(self, line: bytes) -> bytes | Oversized:
        if len(line) <= self._limit:
            return line
        return Oversized(len(line), line[:HEAD_BYTES], line[-TAIL_BYTES:])


class Event(msgspec.Struct, frozen=True):
    """One server-sent event. `id` is the last one seen on the stream, as the standard has it."""

    data: bytes
    name: str = "message"
    id: str | None = None


_LINE_END = re.compile(rb"\r\n|\n|\r")


class EventSplitter:
    """Server-sent events (WHATWG HTML 9.2.6). `limit` bounds the bytes of one event.

    An event without a data field is not delivered, but its `id` and `retry` are kept:
    read `last_id` and `retry_ms`.
    """

    def __init__(self, limit: int) -> None:
        self.last_id: str | None = None
        self.retry_ms: int | None = None
        self._limit = limit
        self._line = bytearray()
        self._data: list[bytes] = []
        self._name = "message"
        self._size = 0  # of the event under way, lines' ends not counted
        self._head = self._tail = b""
        self._first = True
        self._after_cr = False

    def feed(self, data: bytes) -> list[Event | Oversized]:
        """The events that `data` completes, in order."""
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]  # the other half of a CRLF that was cut in two
        self._after_cr = data.endswith(b"\r")
        events: list[Event | Oversized] = []
        start = 0
        for end in _LINE_END.finditer(data):
            self._hold(data[start : end.start()])
            start = end.end()
            event = self._end_line()
            if event is not None:
                events.append(event)
        self._hold(data[start:])
        return events

    def _hold(self, data: bytes) -> None:
        if not data:
            return
        before, self._size = self._size, self._size + len(data)
        if before < HEAD_BYTES:
            self._head += data[: HEAD_BYTES - before]
        if self._size > self._limit:
            self._tail = (self._tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]
            self._data.clear()
            self._line[:] = b"~"  # not blank is all that matters from here on
        else:
            self._line += data

    def _end_line(self) -> Event | Oversized | None:
        line = bytes(self._line)
        self._line.clear()
        if self._first:
            self._first = False
            line = line.removeprefix(BOM)
        if not line:
            return self._end_event()
        if self._size <= self._limit:
            name, _, value = line.partition(b":")
            self._field(name, value.removeprefix(b" "))
        return None

    def _field(self, name: bytes, value: bytes) -> None:
        match name:
            case b"data":
                self._data.append(value)
            case b"event":
                self._name = value.decode(errors="replace") or "message"
            case b"id" if b"\0" not in value:
                self.last_id = value.decode(errors="replace") or None
            case b"retry" if value.isdigit():
                self.retry_ms = int(value[:9])

    def _end_event(self) -> Event | Oversized | None:
        size, data, name = self._size, self._data, self._name
        head, tail = self._head, self._tail
        self._size, self._data, self._name = 0, [], "message"
        self._head = self._tail = b""
        if size > self._limit:
            return Oversized(size, head, tail)
        return Event(b"\n".join(data), name, self.last_id) if data else None
