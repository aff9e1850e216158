"""The last hour of calls by tool, for the dashboard: counts and latencies every ten seconds.

Prometheus keeps history; this is for whoever looks at one gateway now. Bounded in time
and in tools, and told what the record is told.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from gateway.observe.record import CallRecord

STEP_S = 10
STEPS = 360
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
    """One tool in one step of time."""

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
        self._steps: deque[tuple[int, dict[str, Slot]]] = deque(maxlen=STEPS)
        self._now: dict[str, Slot] = {}
        self._step = -1
        self._names: set[str] = set()

    def write(self, record: CallRecord, _line: bytes) -> None:
        step = int(self._clock()) // STEP_S
        if step != self._step:
            self._begin(step)
        name = UNKNOWN if record.server is None else record.name
        slot = self._now.get(name)
        if slot is None:
            slot = self._slot(name)
        slot.add(record.outcome, record.duration_s)

    def totals(self) -> list[ToolTotals]:
        """Every tool that was called, most called first."""
        found = (self._totals(name) for name in {n for _, s in self._kept() for n in s})
        return sorted(found, key=lambda totals: (-totals.calls, totals.name))

    def of(self, name: str, minutes: int = 60) -> ToolSeries:
        """One tool over the last minutes; zeros where it was not called, or is unknown."""
        grouped = self._minutes(name, minutes)
        quantiles = [[_quantile(slots, q) for slots in grouped] for q in (0.5, 0.95, 0.99)]
        return ToolSeries(
            name,
            minutes,
            tuple(sum(slot.calls for slot in slots) for slots in grouped),
            tuple(sum(slot.failed for slot in slots) for slots in grouped),
            *(tuple(values) for values in quantiles),
        )

    # --- inside ---

    def _begin(self, step: int) -> None:
        self._step, self._now = step, {}
        self._steps.append((step, self._now))

    def _slot(self, name: str) -> Slot:
        if name not in self._names:
            if len(self._names) >= MOST_TOOLS:
                self._names = {known for _, slots in self._kept() for known in slots}
            if len(self._names) >= MOST_TOOLS:
                return self._now.setdefault(OTHER, Slot())
            self._names.add(name)
        return self._now.setdefault(name, Slot())

    def _kept(self) -> Iterator[tuple[int, dict[str, Slot]]]:
        oldest = int(self._clock()) // STEP_S - STEPS
        return ((step, slots) for step, slots in self._steps if step > oldest)

    def _minutes(self, name: str, minutes: int) -> Sequence[Sequence[Slot]]:
        per_minute = 60 // STEP_S
        now = int(self._clock()) // STEP_S // per_minute
        grouped: list[list[Slot]] = [[] for _ in range(minutes)]
        for step, slots in self._kept():
            ago = now - step // per_minute
            if ago < minutes and name in slots:
                grouped[minutes - 1 - ago].append(slots[name])
        return grouped

    def _totals(self, name: str) -> ToolTotals:
        slots = [slots[name] for _, slots in self._kept() if name in slots]
        return ToolTotals(
            name,
            sum(slot.calls for slot in slots),
            sum(slot.failed for slot in slots),
            sum(slot.refused for slot in slots),
            _quantile(slots, 0.5),
            _quantile(slots, 0.95),
            _quantile(slots, 0.99),
            self.of(name).calls,
        )


def _quantile(slots: Sequence[Slot], q: float) -> float | None:
    """The upper edge of the bucket in which the quantile lies."""
    counts: dict[int, int] = {}
    for slot in slots:
        for bucket, count in slot.buckets.items():
            counts[bucket] = counts.get(bucket, 0) + count
    return _edge(counts, q)


def _edge(counts: Mapping[int, int], q: float) -> float | None:
    total, seen = sum(counts.values()), 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if seen >= q * total:
            return EDGES_S[min(bucket, len(EDGES_S) - 1)]
    return None
