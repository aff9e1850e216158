"""A record to start from, and what the tests read back."""

import json
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gateway.observe.record import CallRecord

ORDINARY = CallRecord(
    ts="2026-07-28T09:30:00.123Z",
    call="01J8ZK3V5Y",
    trace=None,
    principal="claude",
    client="claude-code/2.0.1",
    revision="2026-07-28",
    server="dice",
    tool="roll_dice",
    name="dice__roll_dice",
    decision="allow",
    rule="default",
    outcome="ok",
    duration_s=0.0125,
    server_s=0.012,
    request_bytes=312,
    result_bytes=188,
    error=None,
)


def record(**changes: Any) -> CallRecord:
    return replace(ORDINARY, **changes)


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Every line of a file as JSON; fails on a torn one."""
    text = path.read_text() if path.exists() else ""
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]
