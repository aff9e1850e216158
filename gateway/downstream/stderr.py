"""What a server writes to stderr: kept as a short tail, logged at a limited rate, always read.

Lines are kept as they came and only cleaned when somebody looks: a server that floods
its stderr must not keep the gateway busy with text that nobody will see.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable

import structlog

log = structlog.get_logger()

TAIL_LINES = 200
TAIL_BYTES = 64 * 2**10
LINE_BYTES = 8 * 2**10
"""Of one line; the rest of it is dropped."""
SHOWN_CHARS = 2000

BURST_LINES = 50
LINES_PER_S = 10.0
"""Logged per server; a chatty start fits into the burst."""

_ESCAPES = re.compile(
    r"""
    \x1b \[ [0-?]* [ -/]* [@-~]                  # CSI: colours, cursor
    | (?: \x1b [\]PX^_] | [\x90\x98\x9d-\x9f] )  # OSC, DCS, SOS, PM, APC: text up to its end
      [^\x07\x1b\x9c]* (?: \x07 | \x1b\\ | \x9c )?
    | \x9b [0-?]* [ -/]* [@-~]
    | \x1b [ -/]* [0-~]?
    """,
    re.VERBOSE,
)
_INVISIBLE = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f"  # controls but the tab
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"  # tags: text that people cannot see and models can
)
_USERINFO = re.compile(r"(?<=://)[^\s/@:]*:[^\s/@]+(?=@)")
REDACTED = "[redacted]"


def cleaned(text: str) -> str:
    """Without escape sequences, controls, marks that reorder text, and invisible characters."""
    return _INVISIBLE.sub("", _ESCAPES.sub("", text))


class Redaction:
    """Takes given secrets, and passwords in URLs, out of texts."""

    def __init__(self, secrets: Iterable[str]) -> None:
        # A key in PEM form is written line by line; longest first, as one may hold another.
        parts = {part.strip() for secret in secrets for part in secret.splitlines()}
        longest_first = sorted((part for part in parts if len(part) > 3), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def __call__(self, text: str) -> str:
        return _USERINFO.sub(REDACTED, self._known.sub(REDACTED, text))


class Stderr:
    """The stderr of one process. Feeding it never waits and never raises."""

    def __init__(self, server: str, secrets: Iterable[str], clock: Callable[[], float]) -> None:
        self.dropped = 0
        """Lines that were not logged."""
        self._server, self._clock = server, clock
        self._redacted = Redaction(secrets)
        self._kept: deque[bytes] = deque(maxlen=TAIL_LINES)
        self._kept_bytes = 0
        self._partial = b""
        self._allowance, self._at = float(BURST_LINES), clock()
        self._unsaid = 0

    def feed(self, data: bytes) -> None:
        # Progress bars end their lines with a bare CR.
        lines = data.replace(b"\r", b"\n").split(b"\n")
        lines[0] = self._partial + lines[0]
        self._partial = lines.pop()[:LINE_BYTES]
        lines = [line for line in lines if line and not line.isspace()]
        allowed = self._allow(len(lines))
        for line in lines[:allowed]:
            log.info("stderr.written", server=self._server, line=self._shown(line))
        # Only the last can stay in the tail: the others need not pass through it.
        for line in lines[-TAIL_LINES:]:
            self._keep(line)

    def finish(self) -> None:
        """At the end of the stream: the last line may have no newline."""
        if self._partial:
            self.feed(b"\n")
        self._say_dropped()

    def tail(self, lines: int = TAIL_LINES) -> tuple[str, ...]:
        """The last lines, cleaned and redacted, oldest first."""
        shown = [self._shown(line) for line in self._kept]
        if self._partial and not self._partial.isspace():
            shown.append(self._shown(self._partial))
        return tuple(line for line in shown if line)[-lines:]

    def _keep(self, line: bytes) -> None:
        line = line[:LINE_BYTES]
        if len(self._kept) == TAIL_LINES:
            self._kept_bytes -= len(self._kept.popleft())
        self._kept.append(line)
        self._kept_bytes += len(line)
        while self._kept_bytes > TAIL_BYTES:
            self._kept_bytes -= len(self._kept.popleft())

    def _shown(self, line: bytes) -> str:
        # Redact before cutting: half a secret would not be recognised.
        text = self._redacted(cleaned(line[:LINE_BYTES].decode(errors="replace")))
        return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"

    def _allow(self, lines: int) -> int:
        """How many of `lines` may be logged now."""
        now = self._clock()
        refilled = self._allowance + (now - self._at) * LINES_PER_S
        self._allowance, self._at = min(refilled, float(BURST_LINES)), now
        if self._unsaid and self._allowance >= 1:
            self._say_dropped()
        allowed = min(lines, int(self._allowance))
        self._allowance -= allowed
        self.dropped += lines - allowed
        self._unsaid += lines - allowed
        return allowed

    def _say_dropped(self) -> None:
        if self._unsaid:
            log.info("stderr.dropped", server=self._server, lines=self._unsaid)
            self._unsaid = 0
