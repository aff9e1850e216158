"""What Prometheus reads, and what nobody can make it read."""

import asyncio
import threading
from collections.abc import Iterable
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from gateway.observe.lag import EVERY_S, watch_lag
from gateway.observe.metrics import TOOLS, GatewayStats, Metrics, ServerStats
from tests.kit.waiting import run
from tests.observe.records import record

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
NOBODY: dict[str, Any] = {"server": None, "tool": None}


def new_metrics(stats: GatewayStats | None = None) -> Metrics:
    return Metrics(lambda: stats or GatewayStats(), "1.2.3")


def samples(metrics: Metrics) -> list[Sample]:
    text, _ = run(metrics.scrape(""))
    families = text_string_to_metric_families(text.decode())
    return [sample for family in families for sample in family.samples]


def value(found: Iterable[Sample], name: str, **labels: str) -> float | None:
    values = [one.value for one in found if one.name == name and one.labels == labels]
    assert len(values) <= 1, f"{name} {labels} is there twice"
    return values[0] if values else None


def call(
    metrics: Metrics, outcome: str = "ok", method: str = "tools/call", **changes: object
) -> None:
    metrics.ended(record(outcome=outcome, **changes), method, 0.0)


def test_a_call_is_counted_and_timed_from_both_sides() -> None:
    metrics = new_metrics()
    call(metrics)
    found = samples(metrics)

    assert value(
        found, "onegate_tool_calls_total", server="dice", tool="roll_dice", outcome="ok"
    ) == 1  # fmt: skip
    client_side = {"mcp_method_name": "tools/call", "gen_ai_tool_name": "dice__roll_dice"}
    name = "mcp_server_operation_duration_seconds"
    assert value(found, f"{name}_count", **client_side) == 1
    assert value(found, f"{name}_sum", **client_side) == 0.0125
    assert value(found, f"{name}_bucket", le="0.01", **client_side) == 0
    assert value(found, f"{name}_bucket", le="0.02", **client_side) == 1
    server_side = {"mcp_method_name": "tools/call", "server": "dice"}
    assert value(found, "mcp_client_operation_duration_seconds_sum", **server_side) == 0.012
    assert value(found, "onegate_overhead_seconds_sum") == pytest.approx(0.0005)


def test_the_buckets_are_those_the_semantic_conventions_prescribe() -> None:
    found = samples(new_metrics())
    bounds = [
        one.labels["le"]
        for one in found
        if one.name == "mcp_server_operation_duration_seconds_bucket"
    ]
    assert list(map(float, bounds)) == [
        0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, float("inf"),
    ]  # fmt: skip


def test_a_bucket_holds_its_own_bound() -> None:
    metrics = new_metrics()
    call(metrics, duration_s=0.02)
    found = samples(metrics)

    labels = {"mcp_method_name": "tools/call", "gen_ai_tool_name": "dice__roll_dice"}
    name = "mcp_server_operation_duration_seconds_bucket"
    assert value(found, name, le="0.01", **labels) == 0
    assert value(found, name, le="0.02", **labels) == 1


def test_waiting_for_a_turn_is_not_the_gateways_overhead() -> None:
    metrics = new_metrics()
    metrics.ended(record(duration_s=5.0, server_s=1.0), "tools/call", 3.9)

    assert value(samples(metrics), "onegate_overhead_seconds_sum") == pytest.approx(0.1)


def test_a_call_no_server_saw_counts_for_clients_alone() -> None:
    metrics = new_metrics()
    call(metrics, "denied", server_s=None)
    found = samples(metrics)

    assert value(
        found, "onegate_tool_calls_total", server="dice", tool="roll_dice", outcome="denied"
    ) == 1  # fmt: skip
    assert value(found, "onegate_overhead_seconds_count") == 0
    assert not [one for one in found if one.name.startswith("mcp_client_operation")]


def test_a_thousand_invented_names_make_no_series() -> None:
    metrics = new_metrics()
    before = len(samples(metrics))
    for n in range(1000):
        call(metrics, "invalid", name=f"invented_{n}", server_s=None, **NOBODY)
        call(metrics, "invalid", "resources/read", name=f"x://{n}", server_s=None, **NOBODY)
        call(metrics, "invalid", "prompts/get", name=f"p{n}", server_s=None, **NOBODY)
    found = samples(metrics)

    assert value(
        found, "onegate_tool_calls_total", server="_unknown", tool="_unknown", outcome="invalid"
    ) == 1000  # fmt: skip
    assert not [one for one in found if "invented" in str(one.labels)]
    served = {one.labels["mcp_method_name"] for one in found if "mcp_method_name" in one.labels}
    assert served == {"tools/call", "resources/read", "prompts/get"}
    # One histogram for each of the two methods met for the first time, whatever the names.
    assert len(found) - before == 2 * 17


def test_a_thousand_uris_under_a_template_make_one_series() -> None:
    metrics = new_metrics()
    for n in range(1000):
        call(metrics, "ok", "resources/read", name=f"x://{n}", tool=f"x://{n}")

    names = [
        one for one in samples(metrics) if one.name.endswith("operation_duration_seconds_count")
    ]
    assert [one.value for one in names] == [0, 1000, 1000]


def test_a_server_that_lists_ever_new_tools_is_bounded() -> None:
    metrics = new_metrics()
    for n in range(TOOLS + 100):
        call(metrics, name=f"s__t{n}", server="s", tool=f"t{n}")
    found = samples(metrics)

    tools = {one.labels["tool"] for one in found if one.name == "onegate_tool_calls_total"}
    assert len(tools) == TOOLS + 2  # and `_unknown`, `_other`
    assert value(
        found, "onegate_tool_calls_total", server="s", tool="_other", outcome="ok"
    ) == 100  # fmt: skip
    names = {one.labels.get("gen_ai_tool_name") for one in found}
    assert len(names - {None}) == TOOLS + 2


def test_a_hostile_tool_name_is_made_visible_and_cut() -> None:
    metrics = new_metrics()
    call(metrics, tool='x"}\n# HELP forged\u202e' + "y" * 5000, name="s__x")

    tools = [
        one.labels["tool"]
        for one in samples(metrics)
        if one.name == "onegate_tool_calls_total" and one.value
    ]
    assert len(tools) == 1
    assert tools[0].startswith('x"}\\n# HELP forged\\u202eyyy')
    assert len(tools[0]) < 200


def test_a_listed_tool_has_series_before_it_is_called() -> None:
    metrics = new_metrics()
    metrics.listed("dice", ["roll_dice", "word_count"])
    metrics.listed("dice", ["roll_dice", "word_count"])

    found = samples(metrics)
    for outcome in ("ok", "tool_error", "timeout", "unavailable", "server_error", "crashed"):
        assert value(
            found, "onegate_tool_calls_total", server="dice", tool="word_count", outcome=outcome
        ) == 0  # fmt: skip


def test_listing_again_does_not_start_over() -> None:
    metrics = new_metrics()
    call(metrics)
    metrics.listed("dice", ["roll_dice"])

    assert value(
        samples(metrics), "onegate_tool_calls_total", server="dice", tool="roll_dice", outcome="ok"
    ) == 1  # fmt: skip


def test_states_are_asked_for_at_the_scrape() -> None:
    stats = [GatewayStats()]
    metrics = Metrics(lambda: stats[0], "1.2.3")
    assert value(samples(metrics), "onegate_server_up", server="dice") is None

    stats[0] = GatewayStats(
        servers=(
            ServerStats("dice", up=True, in_flight=3, restarts={"exit": 2}),
            ServerStats("clock", up=False),
        ),
        sessions={"legacy": 4, "modern": 0},
        record_writable=False,
        records_dropped=7,
        log_lines_dropped=8,
    )
    found = samples(metrics)

    assert value(found, "onegate_server_up", server="dice") == 1
    assert value(found, "onegate_server_up", server="clock") == 0
    assert value(found, "onegate_calls_in_flight", server="dice") == 3
    assert value(found, "onegate_server_restarts_total", server="dice", reason="exit") == 2
    assert value(found, "onegate_sessions", era="legacy") == 4
    assert value(found, "onegate_record_writable") == 0
    assert value(found, "onegate_records_dropped_total") == 7
    assert value(found, "onegate_log_lines_dropped_total") == 8


ASKING = ServerStats(
    "dice",
    up=True,
    parked=3,
    parked_bytes=4096,
    parked_events={"parked": 5, "expired": 2},
    processes={"busy": 3, "spare": 1},
    waiting=2,
)


def test_what_waits_for_answers_and_for_processes_is_told_at_the_scrape() -> None:
    found = samples(new_metrics(GatewayStats((ASKING,))))

    assert value(found, "onegate_calls_parked", server="dice") == 3
    assert value(found, "onegate_parked_bytes", server="dice") == 4096
    name = "onegate_parked_events_total"
    assert value(found, name, server="dice", event="parked") == 5
    assert value(found, name, server="dice", event="expired") == 2
    name = "onegate_private_processes"
    assert value(found, name, server="dice", state="busy") == 3
    assert value(found, name, server="dice", state="spare") == 1
    assert value(found, "onegate_private_processes_awaited", server="dice") == 2


def test_the_build_and_the_process_are_described() -> None:
    found = samples(new_metrics())
    (build,) = [one for one in found if one.name == "onegate_build_info"]

    assert (build.value, build.labels["version"]) == (1, "1.2.3")
    names = {one.name for one in found}
    assert {"python_gc_collections_total", "onegate_event_loop_lag_seconds_count"} <= names


def test_other_requests_are_timed_too() -> None:
    metrics = new_metrics()
    metrics.served("tools/list", 0.001)
    metrics.asked("tools/list", "dice", 0.02)
    found = samples(metrics)

    assert value(
        found, "mcp_server_operation_duration_seconds_count",
        mcp_method_name="tools/list", gen_ai_tool_name="",
    ) == 1  # fmt: skip
    assert value(
        found, "mcp_client_operation_duration_seconds_count",
        mcp_method_name="tools/list", server="dice",
    ) == 1  # fmt: skip


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4"),
        ("*/*", "text/plain; version=0.0.4"),
        ("text/html", "text/plain; version=0.0.4"),
        (OPENMETRICS, "application/openmetrics-text; version=1.0.0"),
        (f"{OPENMETRICS};q=0.5,text/plain;q=0.2", "application/openmetrics-text; version=1.0.0"),
    ],
)
def test_the_format_is_what_the_scraper_accepts(accept: str, content_type: str) -> None:
    metrics = new_metrics()
    call(metrics)
    text, told = run(metrics.scrape(accept))

    assert told.startswith(content_type)
    assert text.endswith(b"# EOF\n") is ("openmetrics" in content_type)


def test_openmetrics_is_strictly_right() -> None:
    servers = ASKING, ServerStats("clock", True, 1, {"exit": 1})
    metrics = new_metrics(GatewayStats(servers, {"legacy": 1}))
    call(metrics)
    text, _ = run(metrics.scrape(OPENMETRICS))

    families = parse_openmetrics(text.decode())  # type: ignore[no-untyped-call]  # it has no types
    assert {family.name for family in families} >= {
        "onegate_tool_calls", "onegate_server_restarts", "onegate_sessions",
        "onegate_calls_parked", "onegate_parked_events", "onegate_private_processes",
    }  # fmt: skip


def test_while_calls_end_nothing_falls_and_every_histogram_agrees_with_itself() -> None:
    metrics = new_metrics()
    stop = threading.Event()

    def work() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            call(metrics, name=f"s__t{n % 20}", server="s", tool=f"t{n % 20}", duration_s=n % 7)

    before: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(20):
            found = [one for one in samples(metrics) if one.name.startswith(("mcp_", "onegate_"))]
            now = {(one.name, tuple(sorted(one.labels.items()))): one.value for one in found}
            assert before.keys() <= now.keys()
            assert not [key for key, held in before.items() if now[key] < held]
            for (name, labels), held in now.items():
                if name.endswith("_count"):
                    bucket = name.removesuffix("count") + "bucket"
                    assert now[bucket, tuple(sorted((*labels, ("le", "+Inf"))))] == held
            before = now
    finally:
        stop.set()
        thread.join(10)


def test_scrapes_at_once_are_rendered_one_after_the_other_off_the_loop() -> None:
    threads: list[tuple[str, int]] = []
    inside = 0
    metrics = new_metrics()
    render = metrics.render

    def watched(accept: str = "") -> tuple[bytes, str]:
        nonlocal inside
        inside += 1
        threads.append((threading.current_thread().name, inside))
        answer = render(accept)
        inside -= 1
        return answer

    metrics.render = watched  # type: ignore[method-assign]

    async def all_at_once() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(5):
                group.create_task(metrics.scrape(""))

    run(all_at_once())
    assert [at_once for _, at_once in threads] == [1] * 5
    assert threading.main_thread().name not in {name for name, _ in threads}


def test_the_lag_of_the_loop_is_what_a_sleep_took_too_long() -> None:
    now, told = [0.0], list[float]()

    async def late(seconds: float) -> None:
        now[0] += seconds + 0.125
        if len(told) == 3:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run(watch_lag(told.append, lambda: now[0], late))
    assert told == [0.125] * 3
    assert EVERY_S == 0.25
