"""Counts and histograms that the event loop adds to and a scraping thread reads.

prometheus_client's own take a lock for every addition, 1 to 1.5 µs each, and a call
adds to four of them. Here one thread writes and any may read: a reader copies in one
step, so that what it sees of a series agrees with itself (`+Inf` is the count), and
nothing ever falls.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from gateway.observe.exposition import Family, Labels, braced, head, labelled, number

LABELS, SERIES = "\0", "\1"
"""Where labels go in a series: before others, and as all there are."""


class Counts:
    """A counter, by the values of its labels."""

    def __init__(self, name: str, documentation: str, labels: Labels) -> None:
        self._declared = (name, documentation, labels)
        self._counts: dict[Labels, int] = {}

    def add(self, labels: Labels, more: int = 1) -> None:
        """`more` of 0 makes the series appear."""
        self._counts[labels] = self._counts.get(labels, 0) + more

    def text(self, *, is_open: bool) -> str:
        """All series; see `exposition`."""
        name, documentation, labels = self._declared
        counts = self._counts.copy()
        return Family("counter", name, documentation, labels, counts.items()).text(is_open=is_open)


class Durations:
    """A histogram of seconds, by the values of its labels."""

    def __init__(
        self, name: str, documentation: str, labels: Labels, bounds_s: Sequence[float]
    ) -> None:
        self._declared = (name, documentation, labels)
        self._bounds_s = tuple(bounds_s)
        self._pattern = _pattern(name, bounds_s)
        self._series: dict[Labels, _Series] = {}

    def add(self, labels: Labels, seconds: float) -> None:
        series = self._series.get(labels) or self.appear(labels)
        series.counts[bisect_left(self._bounds_s, seconds)] += 1
        series.sum_s += seconds

    def appear(self, labels: Labels) -> "_Series":
        """Start the series at 0, if it has not begun."""
        return self._series.setdefault(labels, _Series(len(self._bounds_s) + 1))

    def text(self) -> str:
        """All series; see `exposition`. The same in both formats."""
        name, documentation, labels = self._declared
        parts = [head(name, "histogram", documentation)]
        for values, series in self._series.copy().items():
            sum_s, so_far = series.sum_s, [*accumulate(series.counts.copy())]
            text = self._pattern % (*so_far, so_far[-1], sum_s)
            own = labelled(labels, values)
            parts.append(text.replace(LABELS, own and f"{own},").replace(SERIES, braced(own)))
        return "".join(parts)


def _pattern(name: str, bounds_s: Sequence[float]) -> str:
    """One series, its numbers and labels still to be put in."""
    les = [*(number(float(bound)) for bound in bounds_s), "+Inf"]
    buckets = "".join(f'{name}_bucket{{{LABELS}le="{le}"}} %d\n' for le in les)
    return f"{buckets}{name}_count{SERIES} %d\n{name}_sum{SERIES} %r\n"


class _Series:
    __slots__ = ("counts", "sum_s")

    def __init__(self, size: int) -> None:
        self.counts = [0] * size
        self.sum_s = 0.0
