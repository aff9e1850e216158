"""The last hour of calls by tool, for the dashboard: counts and latencies of each minute.

Prometheus keeps history; this is for whoever looks at one gateway now. Bounded in time
and in tools, and told what the record is told. The sum of the hour is kept beside its minutes:
a page that asks for all tools every second must not take the event loop from calls.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import msgspec

from gateway.observe.record import CallRecord

MINUTE_S = 60
MINUTES = 60
MOST_TOOLS = 500
OTHER, UNKNOWN = "_other", "_unknown"

EDGES_S = (
    *(0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075),
    *(0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 60, 120, 300, 600),
)
"""Upper edges of latency buckets: fine enough that a quantile is off by a quarter at most."""

FAILED = frozenset({"tool_error", "timeout", "unavailable", "server_error", "crashed"})
REFUSED = frozenset({"denied", "refused", "invalid", "throttled"})


class Slot:
    """One tool in one minute, or in all of them."""

    __slots__ = ("buckets", "calls", "failed", "refused")

    def __init__(self) -> None:
        self.calls = self.failed = self.refused = 0
        self.buckets: dict[int, int] = {}

    def add(self, outcome: str, duration_s: float) -> None:
        self.calls += 1
        if outcome in REFUSED:
            self.refused += 1
            return  # never ran: its latency says nothing
        if outcome in FAILED:
            self.failed += 1
        bucket = bisect_left(EDGES_S, duration_s)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    def count(self, other: "Slot", sign: int = 1) -> None:
        """Add another, or with -1 take it away again."""
        self.calls += sign * other.calls
        self.failed += sign * other.failed
        self.refused += sign * other.refused
        for bucket, count in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + sign * count


class ToolTotals(msgspec.Struct, frozen=True):
    """One tool over the last hour. Quantiles in seconds; None if it never ran."""

    name: str
    calls: int
    failed: int
    refused: int
    p50: float | None
    p95: float | None
    p99: float | None
    recent: tuple[int, ...]
    """Calls in each of the last 60 minutes, oldest first."""


class ToolSeries(msgspec.Struct, frozen=True):
    """One tool over time, a value for each minute, oldest first, the last one unfinished."""

    name: str
    minutes: int
    calls: tuple[int, ...]
    failed: tuple[int, ...]
    p50: tuple[float | None, ...]
    p95: tuple[float | None, ...]
    p99: tuple[float | None, ...]


class Series:
    """Implements `sinks.RecordSink`. `clock` is monotonic."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._minute = -1
        self._now: dict[str, Slot] = {}
        """The minute that runs."""
        self._past: deque[tuple[int, dict[str, Slot]]] = deque()
        """Those before it, oldest first; where nothing was called there is none."""
        self._sum: dict[str, Slot] = {}
        """Of the past ones."""

    def write(self, record: CallRecord, _line: bytes) -> None:
        minute = int(self._clock()) // MINUTE_S
        if minute != self._minute:
            self._turn(minute)
        name = UNKNOWN if record.server is None else record.name
        slot = self._now.get(name)
        if slot is None:
            slot = self._slot(name)
        slot.add(record.outcome, record.duration_s)

    def totals(self) -> list[ToolTotals]:
        """Every tool that was called, most called first."""
        kept = self._kept()
        found = (self._totals(name, kept) for name in {*self._sum, *self._now})
        return sorted(found, key=lambda totals: (-totals.calls, totals.name))

    def of(self, name: str, minutes: int = MINUTES) -> ToolSeries:
        """One tool over the last minutes; zeros where it was not called, or is unknown."""
        empty = Slot()
        slots = [held.get(name, empty) for held in self._kept()[-minutes:]]
        return ToolSeries(
            name,
            minutes,
            tuple(slot.calls for slot in slots),
            tuple(slot.failed for slot in slots),
            *(tuple(_edge(slot.buckets, q) for slot in slots) for q in (0.5, 0.95, 0.99)),
        )

    # --- inside ---

    def _turn(self, minute: int) -> None:
        """A minute is over: it joins the past, and what is an hour old leaves."""
        if self._now:
            self._past.append((self._minute, self._now))
            for name, slot in self._now.items():
                self._sum.setdefault(name, Slot()).count(slot)
        self._minute, self._now = minute, {}
        while self._past and self._past[0][0] <= minute - MINUTES:
            for name, slot in self._past.popleft()[1].items():
                total = self._sum[name]
                total.count(slot, -1)
                if not total.calls:
                    del self._sum[name]

    def _slot(self, name: str) -> Slot:
        if name not in self._sum and len({*self._sum, *self._now}) >= MOST_TOOLS:
            name = OTHER
        return self._now.setdefault(name, Slot())

    def _kept(self) -> Sequence[Mapping[str, Slot]]:
        """Each minute of the hour, oldest first, the last one unfinished."""
        minute = int(self._clock()) // MINUTE_S
        if minute != self._minute:
            self._turn(minute)
        kept: list[Mapping[str, Slot]] = [{}] * MINUTES
        for at, slots in (*self._past, (minute, self._now)):
            kept[at - minute - 1] = slots
        return kept

    def _totals(self, name: str, kept: Sequence[Mapping[str, Slot]]) -> ToolTotals:
        total = Slot()
        for held in (self._sum, self._now):
            if name in held:
                total.count(held[name])
        return ToolTotals(
            name,
            total.calls,
            total.failed,
            total.refused,
            _edge(total.buckets, 0.5),
            _edge(total.buckets, 0.95),
            _edge(total.buckets, 0.99),
            tuple([slots[name].calls if name in slots else 0 for slots in kept]),
        )


def _edge(counts: Mapping[int, int], q: float) -> float | None:
    """The upper edge of the bucket in which the quantile lies."""
    total, seen = sum(counts.values()), 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if total and seen >= q * total:
            return EDGES_S[min(bucket, len(EDGES_S) - 1)]
    return None
