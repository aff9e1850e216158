"""What is written down about one call: one JSON line, always the same keys in the same order."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from gateway.observe.visible import visible

_encode = msgspec.json.Encoder().encode

SHORT_BYTES = 2048
"""A line below this holds no value that needs cutting (`visible.LONGEST`)."""


class CallRecord(msgspec.Struct, frozen=True):
    """One call, whatever ended it. Times in seconds, sizes in bytes of JSON text."""

    ts: str
    """When the call ended: RFC 3339, UTC, milliseconds."""
    call: str
    """Our id of it, also in the log."""
    trace: str | None
    """The trace id of the client's `traceparent` (32 hex digits), if it sent a valid one."""
    principal: str | None
    """Name of the token; null where no authentication is configured."""
    client: str | None
    revision: str | None
    server: str | None
    """The configured server it led to; null if the name is nothing we offer."""
    tool: str | None
    """What that server calls it."""
    name: str
    """What the client called it, as written: unbounded, so never a metric label."""
    decision: str | None
    """`allow` or `deny`; null if there was nothing to decide about."""
    rule: str
    """The pattern that decided, `default`, or `unknown`."""
    outcome: str
    duration_s: float
    server_s: float | None
    """The server's share; null if it was never asked."""
    request_bytes: int
    result_bytes: int | None
    """As it came from the server; null without a result."""
    error: str | None
    """Why it failed, in our words. What a server says of a failure may repeat arguments,
    so of that only the code is kept."""
    arguments: Any | UnsetType = UNSET
    """Redacted; the key is there only where `calls.arguments` asks for it."""


class Timestamps:
    """Tells times as RFC 3339 in UTC with milliseconds: `2026-07-28T09:30:00.123Z`.

    Keeps the text of the last second, for a call's time is told more often than it changes.
    """

    def __init__(self) -> None:
        self._second = -1
        self._text = ""

    def __call__(self, wall_s: float) -> str:
        """`wall_s`: seconds since 1970."""
        second, millis = divmod(int(wall_s * 1000), 1000)
        if second != self._second:
            self._text = datetime.fromtimestamp(second, UTC).isoformat()[:19]
            self._second = second
        return f"{self._text}.{millis:03d}Z"


def encode(record: CallRecord) -> bytes:
    """The record as one line of JSON, newline included. Never raises, forges nothing."""
    try:
        line = _encode(record)
    except UnicodeEncodeError:  # half of a surrogate pair
        return _encode(_cleaned(record)) + b"\n"
    # JSON escapes what is hostile in ASCII, except DEL; so a short line without a backslash,
    # without DEL and without anything beyond ASCII is clean as it is.
    if len(line) < SHORT_BYTES and line.isascii() and b"\\" not in line and b"\x7f" not in line:
        return line + b"\n"
    return _encode(_cleaned(record)) + b"\n"


def _cleaned(record: CallRecord) -> CallRecord:
    # `arguments` were cleaned when they were redacted.
    texts = ((key, getattr(record, key)) for key in record.__struct_fields__ if key != "arguments")
    return replace(record, **{key: visible(text) for key, text in texts if isinstance(text, str)})
