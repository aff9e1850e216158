"""One fact, told to the record, the metrics and the log in the same words."""

from collections.abc import Sequence

import structlog

from gateway.observe.metrics import Metrics
from gateway.observe.record import CallRecord, encode
from gateway.observe.sinks import RecordSink, Ring


class Ledger:
    """Where a call is entered when it has ended. Costs some µs, never waits, never raises."""

    def __init__(self, sinks: Sequence[RecordSink], ring: Ring, metrics: Metrics) -> None:
        self._sinks = (*sinks, ring)
        self._metrics = metrics
        # Bound once: a debug line nobody wants then costs one empty call.
        self._log = structlog.get_logger().bind()

    def write(self, record: CallRecord, method: str, waited_s: float = 0.0) -> None:
        """`waited_s`: how long the call waited for its turn, which is nobody's slowness."""
        line = encode(record)
        for sink in self._sinks:
            sink.write(record, line)
        self._metrics.ended(record, method, waited_s)
        self._log.debug(
            "call.ended",
            call=record.call,
            server=record.server,
            tool=record.tool,
            outcome=record.outcome,
        )
