"""Counts and histograms that the event loop adds to and a scraping thread reads.

prometheus_client's own take a lock for every addition, 1 to 1.5 µs each, and a call
adds to four of them. Here one thread writes and any may read: a reader copies in one
step, so that what it sees of a series agrees with itself (`+Inf` is the count), and
nothing ever falls.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.utils import floatToGoString

Labels = tuple[str, ...]


class Counts:
    """A counter, by the values of its labels."""

    def __init__(self, name: str, documentation: str, labels: Labels) -> None:
        self._declared = (name, documentation, labels)
        self._counts: dict[Labels, int] = {}

    def add(self, labels: Labels, more: int = 1) -> None:
        """`more` of 0 makes the series appear."""
        self._counts[labels] = self._counts.get(labels, 0) + more

    def read(self) -> CounterMetricFamily:
        name, documentation, labels = self._declared
        family = CounterMetricFamily(name, documentation, labels=labels)
        for values, count in self._counts.copy().items():
            family.add_metric(values, count)
        return family


class Durations:
    """A histogram of seconds, by the values of its labels."""

    def __init__(
        self, name: str, documentation: str, labels: Labels, bounds_s: Sequence[float]
    ) -> None:
        self._declared = (name, documentation, labels)
        self._bounds_s = tuple(bounds_s)
        self._les = [*map(floatToGoString, bounds_s), "+Inf"]
        self._series: dict[Labels, _Series] = {}

    def add(self, labels: Labels, seconds: float) -> None:
        series = self._series.get(labels) or self.appear(labels)
        series.counts[bisect_left(self._bounds_s, seconds)] += 1
        series.sum_s += seconds

    def appear(self, labels: Labels) -> "_Series":
        """Start the series at 0, if it has not begun."""
        return self._series.setdefault(labels, _Series(len(self._les)))

    def read(self) -> HistogramMetricFamily:
        name, documentation, labels = self._declared
        family = HistogramMetricFamily(name, documentation, labels=labels)
        for values, series in self._series.copy().items():
            sum_s, so_far = series.sum_s, accumulate(series.counts.copy())
            buckets = list(zip(self._les, so_far, strict=True))
            family.add_metric(values, buckets=buckets, sum_value=sum_s)
        return family


class _Series:
    __slots__ = ("counts", "sum_s")

    def __init__(self, size: int) -> None:
        self.counts = [0] * size
        self.sum_s = 0.0
