"""What is sent, byte for byte, and how an answer is judged: two eras, five kinds of work."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.bench.answers import Answer

LEGACY, MODERN = "2025-06-18", "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
CLIENT = {"name": "bench", "version": "1.0"}
META = {
    f"{PREFIX}protocolVersion": MODERN,
    f"{PREFIX}clientInfo": CLIENT,
    f"{PREFIX}clientCapabilities": {},
}
ID_MARK, TOKEN_MARK = "99999999", "@TOKEN@@"
"""Places in a request made once where those of each call are put; both are eight bytes long."""
TRACEPARENT = f"00-0af7651916cd43dd8448eb21{ID_MARK}-b7ad6b7169203331-01"
"""Another trace with each request."""
SOMEBODYS_TOKEN = re.compile(rb"t\d{7}")
Json = dict[str, Any]


@dataclass(slots=True)
class Session:
    """One client: its id (None where there is none), and how many requests it has made.

    Request ids count in each session from the same number, as those of real clients do.
    """

    id: str | None = None
    requests: int = 0


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint, and the revision to speak with it."""

    url: str
    revision: str = LEGACY

    @property
    def is_modern(self) -> bool:
        return self.revision == MODERN

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "127.0.0.1", parts.port or 80

    def head(self, verb: str, *more: str, accept: str = "text/event-stream") -> bytes:
        _, host, path, query, _ = urlsplit(self.url)
        place = f"{path}?{query}" if query else path
        lines = [f"{verb} {place} HTTP/1.1", f"Host: {host}"]
        return "\r\n".join([*lines, f"Accept: {accept}", *more, "", ""]).encode()

    def message(self, method: str, params: Json | None, number: int | None) -> bytes:
        if self.is_modern:
            params = {**(params or {}), "_meta": META}
        message: Json = {"jsonrpc": "2.0", "method": method}
        if number is not None:
            message["id"] = number
        if params is not None:
            message["params"] = params
        return json.dumps(message, separators=(",", ":")).encode()

    def request(
        self,
        method: str,
        params: Json | None,
        number: int | None,
        session: Session,
        more: Sequence[str] = (),
    ) -> bytes:
        """A whole HTTP request; `more` are lines of its head."""
        body = self.message(method, params, number)
        lines = ["Content-Type: application/json", f"Content-Length: {len(body)}", *more]
        if method != "initialize":
            lines.append(f"MCP-Protocol-Version: {self.revision}")
        if session.id:
            lines.append(f"Mcp-Session-Id: {session.id}")
        if self.is_modern:
            lines.append(f"Mcp-Method: {method}")
            if params and "name" in params:
                lines.append(f"Mcp-Name: {params['name']}")
        return self.head("POST", *lines, accept="application/json, text/event-stream") + body


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of request, and what must be in its answer."""

    method: str
    params: Json
    must_hold: bytes = b""
    at_least_bytes: int = 0
    at_least_tools: int = 0
    is_checked: bool = True
    """Not where a constant answers."""
    is_traced: bool = False
    """No two heads are the same."""

    @property
    def has_token(self) -> bool:
        return TOKEN_MARK in str(self.params)


def echo(tool: str, *, is_traced: bool = False) -> Work:
    """A small call, with a token of its own that must come back."""
    call = {"name": tool, "arguments": {"text": TOKEN_MARK}}
    return Work("tools/call", call, is_traced=is_traced)


def blob(tool: str, kib: int = 1024) -> Work:
    call = {"name": tool, "arguments": {"kib": kib}}
    return Work("tools/call", call, at_least_bytes=kib * 1024)


def sleep(tool: str, ms: int) -> Work:
    call = {"name": tool, "arguments": {"ms": ms}}
    return Work("tools/call", call, must_hold=f"slept {ms}".encode())


def listing(tools: int) -> Work:
    return Work("tools/list", {}, at_least_tools=tools)


def constant() -> Work:
    return Work("tools/call", {"name": "s0__echo", "arguments": {"text": "x"}}, is_checked=False)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as sent, with what its answer is known by."""

    raw: bytes
    number: bytes
    token: bytes


@dataclass(slots=True)
class Asker:
    """Makes the requests of one session at one target; the costly part is done once.

    `tokens` is shared by all that run at the same time, so that every token is unique.
    """

    target: Target
    work: Work
    session: Session
    tokens: list[int]
    _head: tuple[bytes, ...] = field(init=False)
    """What comes before its trace, if it has one."""
    _pieces: list[bytes] = field(init=False)

    def __post_init__(self) -> None:
        more = [f"traceparent: {TRACEPARENT}"] if self.work.is_traced else []
        call = self.work.method, self.work.params
        raw = self.target.request(*call, int(ID_MARK), self.session, more)
        *head, before, after = raw.split(ID_MARK.encode())
        self._head = tuple(head)
        self._pieces = [before, *after.split(TOKEN_MARK.encode(), 1)]

    def next(self) -> Asked:
        self.session.requests += 1
        number = b"%08d" % (10_000_000 + self.session.requests)
        before, *rest = self._pieces
        for head in self._head:
            before = head + number + before
        if len(rest) == 1:
            return Asked(before + number + rest[0], number, b"")
        between, after = rest
        self.tokens[0] += 1
        token = b"t%07d" % self.tokens[0]
        return Asked(before + number + between + token + after, number, token)


def fault(work: Work, asked: Asked, status: int, body: bytes) -> str | None:
    """What is wrong with an answer, or None."""
    if status != 200:
        return f"HTTP {status}: {body[:160]!r}"
    if not work.is_checked:
        return None
    if asked.number not in body:
        return f"not the answer to {asked.number!r}: {body[:160]!r}"
    if asked.token not in body:
        mixed_up = b'isError":true' not in body and SOMEBODYS_TOKEN.search(body)
        what = "ANOTHER CALL'S ANSWER" if mixed_up else "no echo"
        return f"{what} instead of {asked.token!r}: {body[:160]!r}"
    if work.must_hold not in body or len(body) < work.at_least_bytes:
        return f"not all there, {len(body)} bytes: {body[:160]!r}"
    if work.at_least_tools and body.count(b'"inputSchema"') < work.at_least_tools:
        return f"{body.count(b'inputSchema')} tools: {body[:160]!r}"
    return None


class Refused(Exception):
    """An answer that is no result."""


def result(answer: Answer) -> Json:
    """The result in an answer, be it JSON or a stream of events."""
    if answer.status != 200:
        raise Refused(f"HTTP {answer.status}: {answer.body[:200]!r}")
    if "text/event-stream" not in (answer.header("content-type") or ""):
        return _result(answer.body)
    for event in re.split(rb"\r?\n\r?\n", answer.body):
        lines = event.splitlines()
        data = b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))
        if data and (b'"result"' in data or b'"error"' in data):
            return _result(data)
    raise Refused(f"a stream without an answer: {answer.body[:200]!r}")


def _result(message: bytes) -> Json:
    parsed = json.loads(message)
    if "result" not in parsed:
        raise Refused(str(parsed)[:300])
    found: Json = parsed["result"]
    return found


def exposed(names: list[str], server: int, tool: str) -> str:
    """How a gateway calls a tool of one of its servers, whatever it puts between the two."""
    pattern = re.compile(rf"(?:.*[^a-zA-Z0-9])?s{server}[^a-zA-Z0-9]+{tool}")
    return next((name for name in names if pattern.fullmatch(name)), tool)
