"""The reserved keys of `_meta`: which there are, and what survives a hop.

Source: 2026-07-28, basic/index, "_meta"; 2025-11-25 for the two older keys.
"""

import re

from gateway.protocol.jsonrpc import Fields, Json, Raw

PREFIX = "io.modelcontextprotocol/"
VERSION = PREFIX + "protocolVersion"
CAPABILITIES = PREFIX + "clientCapabilities"
CLIENT_INFO = PREFIX + "clientInfo"
SERVER_INFO = PREFIX + "serverInfo"
LOG_LEVEL = PREFIX + "logLevel"
SUBSCRIPTION = PREFIX + "subscriptionId"
RELATED_TASK = PREFIX + "related-task"
PROGRESS_TOKEN = "progressToken"

TASKS = PREFIX + "tasks"
"""The extension, among the capabilities of either side."""

_SURVIVES = frozenset({RELATED_TASK, PREFIX + "model-immediate-response"})

_TOKEN = re.compile(rb'".*"|-?[0-9]+', re.DOTALL)
"""How a progress token begins and ends: a string or an integer, and nothing else."""

_TRACEPARENT = re.compile(rb'"([0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})"')
"""W3C Trace Context, version 00, as a JSON string."""


def travelling(meta: Fields) -> Fields:
    """What of a client's `_meta` goes on to the server: all but what belongs to the hop
    (the envelope, a progress token of the client's own)."""
    return {
        key: held
        for key, held in meta.items()
        if key != PROGRESS_TOKEN and (not key.startswith(PREFIX) or key in _SURVIVES)
    }


def unsigned(meta: Fields) -> Fields:
    """What of a server's `_meta` goes on to the client: a server must not speak for us."""
    return {
        key: held for key, held in meta.items() if not key.startswith(PREFIX) or key in _SURVIVES
    }


def progress_token(meta: Fields) -> Json:
    """The client's progress token, still the bytes it came as; None if there is none, or
    none that a client may use: it would not know it again."""
    held = meta.get(PROGRESS_TOKEN)
    return held if isinstance(held, Raw) and _TOKEN.fullmatch(bytes(held)) else None


def trace_of(meta: Fields) -> str | None:
    """`traceparent`, if there is a valid one (W3C Trace Context)."""
    held = meta.get("traceparent")
    found = _TRACEPARENT.fullmatch(bytes(held)) if isinstance(held, Raw) else None
    return found[1].decode() if found else None
