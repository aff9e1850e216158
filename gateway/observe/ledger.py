"""One fact, told to the record, the metrics and the log in the same words."""

import asyncio
import logging
from collections.abc import Sequence

import structlog
from msgspec import UNSET

from gateway.calls.call import Call
from gateway.observe.metrics import Metrics
from gateway.observe.record import CallRecord, Timestamps, encode
from gateway.observe.redact import redact, redact_raw
from gateway.observe.sinks import RecordSink, Ring
from gateway.protocol.jsonrpc import Raw

TOGETHER = 64
"""So many calls are written down in one go: it costs half of one by one, and 0.5 ms at most."""
TOGETHER_BYTES = 256 * 1024
"""Of requests, which are held for so long."""
SOON_S = 0.005
"""Fewer are, so soon after the first."""

Ended = tuple[Call, int | None, str, str | None, float, float]
"""A call, the bytes of its result if there is one, its outcome and the reason, when it ended
(seconds since 1970), and the seconds it took."""


class Ledger:
    """Where a call is entered when it has ended. Costs some µs, never waits, never raises."""

    def __init__(
        self,
        sinks: Sequence[RecordSink],
        ring: Ring,
        metrics: Metrics,
        *,
        with_arguments: bool = False,
    ) -> None:
        self._sinks = (*sinks, ring)
        self._metrics = metrics
        self._with_arguments = with_arguments
        self._timestamp = Timestamps()
        self._entered: list[Ended] = []
        self._bytes = 0
        self._later: asyncio.TimerHandle | None = None
        self._log = structlog.get_logger().bind()

    def enter(self, ended: Ended) -> None:
        """Write it down, soon. Whoever reads what was written calls `flush` before."""
        self._entered.append(ended)
        self._bytes += ended[0].request_bytes
        if len(self._entered) >= TOGETHER or self._bytes > TOGETHER_BYTES:
            self.flush()
        elif self._later is None:
            self._later = asyncio.get_running_loop().call_later(SOON_S, self.flush)

    def flush(self) -> None:
        """Write down what has been entered."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        entered, self._entered, self._bytes = self._entered, [], 0
        for ended in entered:
            self._write(ended)

    def _write(self, ended: Ended) -> None:
        call = ended[0]
        record = self._record(ended)
        line = encode(record)
        for sink in self._sinks:
            sink.write(record, line)
        # What it waited for its turn is nobody's slowness.
        self._metrics.ended(record, call.method, call.spent.waited_s)
        if self._log.is_enabled_for(logging.DEBUG):
            self._log.debug(
                "call.ended",
                call=record.call,
                server=record.server,
                tool=record.tool,
                outcome=record.outcome,
            )

    def _record(self, ended: Ended) -> CallRecord:
        call, size, outcome, error, at_s, duration_s = ended
        entry, verdict, caller = call.entry, call.verdict, call.caller
        server_s = call.spent.server_s
        route = entry.route if entry else None
        return CallRecord(  # in the order of its fields: by name it takes 2 µs more
            self._timestamp(at_s),
            call.id,
            _trace_id(call.trace) if call.trace else None,
            caller.principal,
            caller.client,
            caller.revision.name,
            route.server if route else None,
            route.name if route else None,
            call.name,
            ("allow" if verdict.allowed else "deny") if entry else None,
            verdict.rule,
            outcome,
            round(duration_s, 6),
            round(server_s, 6) if server_s else None,
            call.request_bytes,
            size,
            error,
            _arguments(call) if self._with_arguments else UNSET,
        )


def _trace_id(traceparent: str) -> str:
    """The second field of a W3C `traceparent`: VERSION-TRACEID-PARENT-FLAGS."""
    return traceparent[3:35]


def _arguments(call: Call) -> object:
    held = call.params.get("arguments", UNSET)
    if held is UNSET:
        return UNSET
    return redact_raw(held) if isinstance(held, Raw) else redact(held)
