"""Calls as they reach the policy stages."""

from gateway.calls.call import NOTHING_KNOWN, Call, Caller, Completed, Emit, Spent, Verdict, silent
from gateway.catalog.entries import Entry, Kind, Route
from gateway.protocol.revisions import BY_NAME

ALLOWED = Verdict(allowed=True, rule="default")
DONE = Completed({})
METHODS = {
    Kind.TOOL: "tools/call",
    Kind.PROMPT: "prompts/get",
    Kind.RESOURCE: "resources/read",
    Kind.TEMPLATE: "completion/complete",
}


def entry(
    name: str, kind: Kind = Kind.TOOL, *, own: str = "", template: str | None = None
) -> Entry:
    server, _, rest = name.partition("__")
    return Entry(name, Route(server, kind, own or rest or name), {}, template)


def caller(principal: str | None = None) -> Caller:
    return Caller(BY_NAME["2026-07-28"], principal)


def call(
    name: str = "time__now",
    verdict: Verdict = ALLOWED,
    *,
    principal: str | None = None,
    emit: Emit = silent,
    waited_s: float = 0.0,
) -> Call:
    """A call of a tool that is known."""
    return Call(
        "call-1", "tools/call", Kind.TOOL, name, {}, caller(principal), Spent(waited_s=waited_s),
        entry=entry(name), verdict=verdict, emit=emit,
    )  # fmt: skip


def unknown(name: str, kind: Kind = Kind.TOOL) -> Call:
    """A call of something nobody offers."""
    return Call("call-2", METHODS[kind], kind, name, {}, caller(), Spent(), verdict=NOTHING_KNOWN)
