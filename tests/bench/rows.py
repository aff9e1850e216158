"""The table: what is asked of the gateway, and whether it holds in what was measured."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

from tests.bench.peers import FLOOR, GATEWAY, HUB, PROXY
from tests.bench.workloads import Measured

OURS = GATEWAY.name


class Sense(Enum):
    """How a figure of ours is held against a bound."""

    AT_LEAST = "≥"
    AT_MOST = "≤"


@dataclass(frozen=True, slots=True)
class Bound:
    """One requirement on a row."""

    sense: Sense
    limit: float
    against: str | None = None
    """The peer whose figure ours is divided by; None: ours is bounded as it is."""
    by_difference: bool = False
    """Subtracted, not divided."""

    def value(self, row: "Row", repeats: Sequence[Measured]) -> float | None:
        """What is bounded, over all repeats; None if it was not measured.

        Ours and the other's are compared within each repeat: they saw the same machine.
        """
        values = []
        for found in repeats:
            figures = found.get(row.figure, {})
            ours, other = figures.get(OURS), figures.get(self.against or OURS)
            if ours is None or other is None:
                continue
            values.append(self._compare(ours, other))
        return row.overall(values)

    def _compare(self, ours: float, other: float) -> float:
        if self.against is None:
            return ours
        if self.by_difference:
            return ours - other
        return ours / other if other else math.nan

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.sense is Sense.AT_LEAST else value <= self.limit


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    work: str
    workload: str
    """That measures it."""
    figure: str
    unit: str
    bounds: Sequence[Bound]
    over: Callable[[list[float]], float] = median
    """Makes one figure of those of the repeats."""

    def typical(self, peer: str, repeats: Sequence[Measured]) -> float | None:
        """A peer's figure over all repeats; None if it was not measured."""
        figures = (found.get(self.figure, {}) for found in repeats)
        return self.overall([each[peer] for each in figures if peer in each])

    def overall(self, values: Sequence[float]) -> float | None:
        known = [each for each in values if not math.isnan(each)]
        return self.over(known) if known else None


def at_least(limit: float, against: str) -> Bound:
    return Bound(Sense.AT_LEAST, limit, against)


def at_most(limit: float, against: str | None = None) -> Bound:
    return Bound(Sense.AT_MOST, limit, against)


def above_floor(limit: float) -> Bound:
    return Bound(Sense.AT_MOST, limit, FLOOR.name, by_difference=True)


FLOOR_, HUB_, PROXY_ = FLOOR.name, HUB.name, PROXY.name
THROUGHPUT = (at_least(0.6, FLOOR_), at_least(3, HUB_), at_least(12, PROXY_))
ONE_P50 = (at_most(1.5, FLOOR_), at_most(0.5, HUB_))
LISTS = (at_least(0.7, FLOOR_), at_least(5, HUB_))
ROWS = (
    Row("small calls, 64 in flight, legacy", "small-calls", "small.legacy.per_s", "/s", THROUGHPUT),
    Row("small calls, 64 in flight, modern", "small-calls", "small.modern.per_s", "/s", THROUGHPUT),
    Row("legacy, another head each time", "small-calls", "small.traced.per_s", "/s", ()),
    Row("small call, one at a time, p50", "one-at-a-time", "one.p50_ms", "ms", ONE_P50),
    Row(
        "the same, cores asleep, p99",
        "one-at-a-time",
        "asleep.p99_ms",
        "ms",
        [at_most(4, FLOOR_)],
    ),
    Row("the same, cores asleep, p50", "one-at-a-time", "asleep.p50_ms", "ms", ()),
    Row("CPU per small call", "small-calls", "small.legacy.cpu_us", "us", [at_most(1.7, FLOOR_)]),
    Row(
        "answers of 1 MiB, 4 in flight",
        "big-answers",
        "big.per_s",
        "/s",
        [at_least(0.8, FLOOR_), at_least(2.5, HUB_)],
    ),
    Row("tools/list, 10 x 50, one in flight", "lists", "list.1.per_s", "/s", LISTS),
    Row("tools/list, 10 x 50, 16 in flight", "lists", "list.16.per_s", "/s", LISTS),
    Row("exec to full list, 10 x 50 quick", "start", "start.quick_s", "s", [above_floor(0.2)]),
    Row("exec to full list, ten take 1 s", "start", "start.slow_s", "s", [at_most(1.5)]),
    Row("memory, two servers", "memory", "memory.two.fresh_mb", "MB", [above_floor(12)]),
    Row("memory, two servers, after calls", "memory", "memory.two.mb", "MB", [above_floor(12)]),
    Row("memory, ten servers", "memory", "memory.ten.fresh_mb", "MB", [above_floor(25)]),
    Row("memory, ten servers, after calls", "memory", "memory.ten.mb", "MB", [above_floor(25)]),
    Row("an idle session", "memory", "session.kb", "KB", [at_most(35)]),
    Row("an idle session with a stream", "memory", "session.stream_kb", "KB", [at_most(80)]),
    Row(
        "p99 beside 16 slow calls, to alone", "neighbours", "neighbours.ratio", "x", [at_most(1.5)]
    ),
    Row(
        "10 x 50 tools, to 2 x 3",
        "sizes",
        "size.10x50",
        "x",
        [Bound(Sense.AT_LEAST, 0.9)],
    ),
    Row(
        "200 x 20 tools, to 2 x 3",
        "sizes",
        "size.200x20",
        "x",
        [Bound(Sense.AT_LEAST, 0.9)],
    ),
    Row("p99 scraped each second, to not", "scraping", "scrape.ratio", "x", [at_most(1.5)]),
    Row("wrong, mixed-up, failed answers", "mix-ups", "failed", "", [at_most(0)], over=sum),
)
"""In the order of the requirements."""
