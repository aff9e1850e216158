"""Read HTTP/1.1 responses from bytes as they arrive, at little cost."""

import re
from typing import NamedTuple


class Answer(NamedTuple):
    """One whole response; `head` is its status line and headers, as they came."""

    status: int
    head: bytes
    body: bytes

    def header(self, name: str) -> str | None:
        pattern = rb"(?i)(?:^|\r\n)" + name.encode() + rb":[ \t]*([^\r\n]*)"
        found = re.search(pattern, self.head)
        return found[1].decode() if found else None

    @property
    def is_last(self) -> bool:
        """Whether the server closes the connection after it."""
        return b"connection: close" in self.head.lower()


LENGTH = re.compile(rb"(?i)\r\ncontent-length:[ \t]*(\d+)")
CHUNKED = re.compile(rb"(?i)\r\ntransfer-encoding:[ \t]*chunked")


class Answers:
    """Bytes in, answers out. Big bodies are gathered in pieces and joined once."""

    __slots__ = ("_have", "_parts", "_wanted")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._have = 0
        self._wanted = 0
        """No use looking before this many bytes are there."""

    def feed(self, data: bytes) -> list[Answer]:
        self._parts.append(data)
        self._have += len(data)
        if self._have < self._wanted:
            return []
        buffer = data if len(self._parts) == 1 else b"".join(self._parts)
        found: list[Answer] = []
        at = 0
        while at < len(buffer):
            taken = self._take(buffer, at)
            if taken is None:
                break
            answer, at = taken
            if answer.status >= 200:
                found.append(answer)
        rest = buffer[at:]
        self._parts = [rest] if rest else []
        self._have = len(rest)
        self._wanted = self._wanted - at if rest else 0
        return found

    def _take(self, buffer: bytes, at: int) -> tuple[Answer, int] | None:
        """The answer that starts here and where it ends, or None if it is not all there."""
        body_at = buffer.find(b"\r\n\r\n", at) + 4
        if body_at < 4:
            self._wanted = 0
            return None
        head = buffer[at : body_at - 2]
        status = int(head[9:12])
        if found := LENGTH.search(head):
            end = body_at + int(found[1])
            if end > len(buffer):
                self._wanted = end
                return None
            return Answer(status, head, buffer[body_at:end]), end
        if CHUNKED.search(head):
            return self._take_chunks(buffer, body_at, Answer(status, head, b""))
        return Answer(status, head, b""), body_at

    def _take_chunks(self, buffer: bytes, at: int, answer: Answer) -> tuple[Answer, int] | None:
        self._wanted = 0
        pieces: list[bytes] = []
        while (line_end := buffer.find(b"\r\n", at)) >= 0:
            size = int(buffer[at:line_end].split(b";")[0], 16)
            end = line_end + 2 + size + 2
            if end > len(buffer):
                self._wanted = end
                return None
            if not size:
                return answer._replace(body=b"".join(pieces)), end
            pieces.append(buffer[line_end + 2 : end - 2])
            at = end
        return None
