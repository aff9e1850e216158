"""The last hour of calls by tool: counted, timed, bounded."""

import time
from collections.abc import Callable

from gateway.observe.record import CallRecord
from gateway.observe.series import MINUTES, MOST_TOOLS, OTHER, UNKNOWN, Series


class Clock:
    def __init__(self) -> None:
        self.now = 36_000.0

    def __call__(self) -> float:
        return self.now


def ended(name: str, outcome: str = "ok", duration_s: float = 0.004) -> CallRecord:
    server = None if name == "nobody" else "demo"
    return CallRecord(
        "", "c1", None, None, None, None, server, name, name, "allow", "default", outcome,
        duration_s, None, 0, None, None,
    )  # fmt: skip


def told(series: Series) -> Callable[..., None]:
    return lambda *args, **kwargs: series.write(ended(*args, **kwargs), b"")


def test_calls_are_counted_by_how_they_ended_and_what_never_ran_has_no_latency() -> None:
    series = Series(Clock())
    tell = told(series)
    for outcome in ("ok", "ok", "tool_error", "timeout", "denied", "throttled"):
        tell("roll", outcome, 0.9 if outcome in ("denied", "throttled") else 0.004)
    [totals] = series.totals()
    assert (totals.calls, totals.failed, totals.refused) == (6, 2, 2)
    assert totals.p99 == 0.005


def test_quantiles_tell_the_slow_from_the_quick() -> None:
    series = Series(Clock())
    tell = told(series)
    for _ in range(90):
        tell("roll", duration_s=0.002)
    for _ in range(10):
        tell("roll", duration_s=0.4)
    [totals] = series.totals()
    assert (totals.p50, totals.p95, totals.p99) == (0.002, 0.5, 0.5)


def test_a_minute_later_they_stand_in_the_minute_before() -> None:
    clock = Clock()
    series = Series(clock)
    tell = told(series)
    tell("roll")
    clock.now += 60
    tell("roll")
    tell("roll", "timeout")
    one = series.of("roll", minutes=3)
    assert one.calls == (0, 1, 2)
    assert one.failed == (0, 0, 1)
    assert one.p50 == (None, 0.005, 0.005)


def test_an_hour_later_they_are_forgotten() -> None:
    clock = Clock()
    series = Series(clock)
    told(series)("roll")
    clock.now += 3601
    assert series.totals() == []
    assert sum(series.of("roll").calls) == 0


def test_neither_time_nor_names_make_it_grow_without_bound() -> None:
    clock = Clock()
    series = Series(clock)
    tell = told(series)
    for number in range(MOST_TOOLS + 50):
        tell(f"tool{number}")
    tell("nobody")
    by_name = {totals.name: totals.calls for totals in series.totals()}
    assert len(by_name) == MOST_TOOLS + 1
    assert by_name[OTHER] == 51
    for _ in range(MINUTES * 2):
        clock.now += 60
        tell("roll")
    [totals] = series.totals()
    assert (totals.name, totals.calls) == ("roll", MINUTES)


def test_whoever_looks_all_the_time_takes_little_from_calls() -> None:
    """A page asks each second, on the event loop: for each tool no more than a call costs."""
    clock = Clock()
    series = Series(clock)
    tell = told(series)
    for _ in range(MINUTES):
        clock.now += 60
        for number in range(MOST_TOOLS):
            for duration_s in (0.0008, 0.0015, 0.004, 0.02, 0.2):
                tell(f"tool{number}", duration_s=duration_s)
    began = time.thread_time()
    assert sum(totals.calls for totals in series.totals()) == MINUTES * MOST_TOOLS * 5
    assert time.thread_time() - began < MOST_TOOLS * 200e-6


def test_a_pause_leaves_a_gap_and_what_is_taken_away_leaves_nothing() -> None:
    clock = Clock()
    series = Series(clock)
    tell = told(series)
    tell("roll", duration_s=0.4)
    clock.now += 59 * 60
    tell("roll")
    tell("once", "denied")
    assert series.of("roll").calls == (1, *[0] * 58, 1)
    clock.now += 60
    [once, roll] = series.totals()
    assert (once.p99, once.refused, roll.calls, roll.p99) == (None, 1, 1, 0.005)
    clock.now += 3600
    assert series.totals() == []


def test_what_nobody_offers_has_one_name() -> None:
    series = Series(Clock())
    told(series)("nobody", "invalid")
    [totals] = series.totals()
    assert (totals.name, totals.refused) == (UNKNOWN, 1)
