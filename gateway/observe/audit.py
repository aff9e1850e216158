"""The stage that sees to it that each call leaves exactly one record, whatever ended it.

It stands inside `Resolve`, so it knows where a name led and what the rules said of it
even if the call is then refused.
"""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import UNSET

from gateway.calls.call import Call, InputRequired, Outcome
from gateway.calls.pipeline import Handler
from gateway.observe.ledger import Ledger
from gateway.observe.record import CallRecord, Timestamps
from gateway.observe.redact import redact, redact_raw, redact_text
from gateway.protocol.errors import GatewayError, ServerFailure
from gateway.protocol.jsonrpc import Raw

REASON_LONGEST = 300
RAW_TRUE = Raw(b"true")
RAW_TRUE = Raw(b"true")


@dataclass(frozen=True, slots=True)
class Audit:
    """`clock` is monotonic, `wall` seconds since 1970."""

    ledger: Ledger
    clock: Callable[[], float]
    wall: Callable[[], float]
    with_arguments: bool = False
    _timestamp: Timestamps = field(default_factory=Timestamps)

    async def __call__(self, call: Call, proceed: Handler) -> Outcome:
        started = self.clock()
        ended: Outcome | None = None
        outcome, error = "crashed", None
        try:
            ended = await proceed(call)
            outcome = _outcome_of(ended)
            return ended
        except GatewayError as cause:
            outcome, error = cause.kind, _reason(cause)
            raise
        except (asyncio.CancelledError, GeneratorExit):
            outcome = "cancelled"
            raise
        finally:
            if outcome == "crashed" and error is None:
                error = getattr(sys.exc_info()[0], "__name__", None)
            self.ledger.write(
                self._record(call, ended, outcome, error, self.clock() - started),
                call.method,
                call.spent.waited_s,
            )

    def _record(
        self, call: Call, ended: Outcome | None, outcome: str, error: str | None, duration_s: float
    ) -> CallRecord:
        entry, verdict, caller = call.entry, call.verdict, call.caller
        server_s = call.spent.server_s
        return CallRecord(
            ts=self._timestamp(self.wall()),
            call=call.id,
            trace=_trace_id(call.trace) if call.trace else None,
            principal=caller.principal,
            client=caller.client,
            revision=caller.revision.name,
            server=entry.route.server if entry else None,
            tool=entry.route.name if entry else None,
            name=call.name,
            decision=("allow" if verdict.allowed else "deny") if entry else None,
            rule=verdict.rule,
            outcome=outcome,
            duration_s=round(duration_s, 6),
            server_s=round(server_s, 6) if server_s else None,
            request_bytes=call.request_bytes,
            result_bytes=ended.size if ended else None,
            error=error,
            arguments=_arguments(call) if self.with_arguments else UNSET,
        )


def _outcome_of(ended: Outcome) -> str:
    if isinstance(ended, InputRequired):
        return "input_required"
    is_error = ended.result.get("isError")
    # Bytes as a server sent them, or a plain value where the result was made here.
    return "tool_error" if is_error is True or is_error == RAW_TRUE else "ok"


def _reason(error: GatewayError) -> str:
    if isinstance(error, ServerFailure):
        return f"code {error.own_code}"
    return redact_text(error.message, REASON_LONGEST)


def _trace_id(traceparent: str) -> str:
    """The second field of a W3C `traceparent`: VERSION-TRACEID-PARENT-FLAGS."""
    return traceparent[3:35]


def _arguments(call: Call) -> object:
    held = call.params.get("arguments", UNSET)
    if held is UNSET:
        return UNSET
    return redact_raw(held) if isinstance(held, Raw) else redact(held)
