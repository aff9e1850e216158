"""The last hour of calls by tool: counted, timed, bounded."""

from collections.abc import Callable

from gateway.observe.record import CallRecord
from gateway.observe.series import MOST_TOOLS, OTHER, STEPS, UNKNOWN, Series


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
    for _ in range(STEPS * 2):
        clock.now += 10
        tell("roll")
    [totals] = series.totals()
    assert (totals.name, totals.calls) == ("roll", STEPS)


def test_what_nobody_offers_has_one_name() -> None:
    series = Series(Clock())
    told(series)("nobody", "invalid")
    [totals] = series.totals()
    assert (totals.name, totals.refused) == (UNKNOWN, 1)
