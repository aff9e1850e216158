"""The gateway's own tool: it fetches the results of calls that went on in the background."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.calls.call import Call, Completed, Outcome
from gateway.catalog.entries import OWN, Listing
from gateway.policy.background import Background, handed
from gateway.protocol.errors import Cancelled
from gateway.protocol.jsonrpc import Fields, Json, raw, value

LONGEST_WAIT_S = 50.0
"""Less than what clients commonly wait for a tool."""

UNKNOWN = (
    "There is no call with this handle: it was never given out, belongs to another client, or "
    "its result was kept as long as could be."
)
CANCELLED = "It was cancelled; nothing more will come of it."

DEFINITION: Fields = {
    "name": raw("result"),
    "title": raw("Result of a running call"),
    "description": raw(
        "Waits for the result of a tool call that was still running when it was answered, and "
        "returns it. If it is not there yet, says how far it is: call again. "
        "With `cancel` the call is ended instead."
    ),
    "inputSchema": raw(
        {
            "type": "object",
            "properties": {
                "handle": {"type": "string", "description": "As given in place of the result"},
                "cancel": {"type": "boolean", "description": "End the call instead"},
            },
            "required": ["handle"],
        }
    ),
    "annotations": raw({"idempotentHint": True, "openWorldHint": False}),
}
LISTING = Listing(OWN, tools=(DEFINITION,), capabilities=frozenset({"tools"}))


@dataclass(frozen=True, slots=True)
class Companion:
    """Implements `calls.routing.Backend`."""

    background: Background
    wall: Callable[[], float]

    async def call(self, call: Call) -> Outcome:
        given = value(call.params, "arguments")
        arguments = given if isinstance(given, dict) else {}
        going = self.background.find(arguments.get("handle"), call.caller)
        if going is None:
            return _said(UNKNOWN, failed=True)
        if arguments.get("cancel") is True and not going.is_over:
            self.background.give_up(going)
            return _said(CANCELLED)
        going.listener = call
        try:
            has_ended = await going.wait(min(going.after_s, LONGEST_WAIT_S))
        finally:
            if going.listener is call:
                going.listener = None
        if isinstance(going.end, Cancelled):
            return _said(CANCELLED, failed=True)
        return going.outcome() if has_ended else Completed(handed(going, self.wall()))


def _said(text: str, *, failed: bool = False) -> Completed:
    result: dict[str, Json] = {"content": [{"type": "text", "text": text}]}
    return Completed({**result, "isError": True} if failed else result)
