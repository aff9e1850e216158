"""The stage that refuses what this caller may not use."""

from collections.abc import Awaitable

from gateway.calls.call import Call, Outcome
from gateway.calls.pipeline import Handler
from gateway.catalog.entries import Kind
from gateway.protocol.errors import Denied, UnknownEntry

_SHOWN = 200
"""Characters of a name that an error repeats."""
_WORDS = {Kind.TOOL: "tool", Kind.PROMPT: "prompt"}


def authorize(call: Call, proceed: Handler) -> Awaitable[Outcome]:
    """A denied entry and a missing one look the same from outside; the record knows better."""
    if call.entry is not None and call.verdict.allowed:
        return proceed(call)
    refusal = UnknownEntry if call.entry is None else Denied
    shown = call.name if len(call.name) <= _SHOWN else call.name[:_SHOWN] + "…"
    data = {"kind": UnknownEntry.kind}  # the one error whose kind on the wire is not its own
    if call.kind in _WORDS:
        raise refusal(f"Unknown {_WORDS[call.kind]}: {shown}", data=data)
    raise refusal(f"Resource not found: {shown}", data={**data, "uri": call.name})
