"""The stage that sees to it that each call leaves exactly one record, whatever ended it.

It stands inside `Resolve`, so it knows where a name led and what the rules said of it
even if the call is then refused.
"""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass

from gateway.calls.call import Call, InputRequired, Outcome
from gateway.calls.pipeline import Handler
from gateway.observe.ledger import Ledger
from gateway.observe.redact import redact_text
from gateway.protocol.errors import GatewayError, ServerFailure
from gateway.protocol.jsonrpc import Raw

REASON_LONGEST = 300
RAW_TRUE = Raw(b"true")


@dataclass(frozen=True, slots=True)
class Audit:
    """`clock` is monotonic, `wall` seconds since 1970."""

    ledger: Ledger
    clock: Callable[[], float]
    wall: Callable[[], float]

    async def __call__(self, call: Call, proceed: Handler) -> Outcome:
        started = self.clock()
        size: int | None = None
        outcome, error = "crashed", None
        try:
            ended = await proceed(call)
            size, outcome = ended.size, _outcome_of(ended)
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
            self.ledger.enter((call, size, outcome, error, self.wall(), self.clock() - started))


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
