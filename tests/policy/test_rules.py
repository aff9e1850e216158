"""What the rules of a configuration say about each entry, and where each setting was made."""

from pathlib import Path

import pytest

from gateway.calls.call import Verdict
from gateway.catalog.entries import Entry, Kind, Listing, Route
from gateway.catalog.merging import merge
from gateway.config.judge import judge
from gateway.config.model import Config, Decision, StdioServer
from gateway.policy.rules import KEPT, Rules
from tests.policy.calls import entry


def server(**settings: object) -> StdioServer:
    made = _config(servers={"x": {"command": "x", **settings}}).servers["x"]
    assert isinstance(made, StdioServer)
    return made


def rules(
    *written: dict[str, object], default: Decision = "allow", **servers: StdioServer
) -> Rules:
    tools = _config(tools=list(written)).tools

    def where(path: tuple[str | int, ...]) -> str:
        if len(path) == 1:
            return "default"
        if path[0] == "tools":
            return f"onegate.yaml:{10 * int(path[1])}"
        is_written = path[2] != "queue" or servers[str(path[1])].queue != 64
        return f"file:{path[1]}" if is_written else "default"

    return Rules(tools, default, servers or {"time": server(), "files": server()}, where)


def _config(**written: object) -> Config:
    config, findings = judge(written, Path("/"), None)
    assert config is not None, findings
    return config


def judged(of: Rules, name: str, kind: Kind = Kind.TOOL) -> Verdict:
    return of.verdict(None, entry(name, kind))


def test_for_each_setting_the_first_rule_that_gives_it_wins() -> None:
    made = rules(
        {"match": "time__now", "timeout": "5s"},
        {"match": "time__*", "timeout": "10s", "concurrency": 2, "rate": "60/min"},
        {"match": "*", "timeout": "60s", "longest": "5m", "concurrency": 8, "queue": 3},
    )
    now, other = judged(made, "time__now"), judged(made, "files__read")
    assert (now.timeout.value, now.timeout.source) == (5, "onegate.yaml:0")
    assert (now.longest.value, now.longest.source) == (300, "onegate.yaml:20")
    assert now.concurrency is not None
    assert (now.concurrency.value, now.concurrency.source) == (2, "onegate.yaml:10")
    assert now.rate is not None
    assert (now.rate.value, now.per_s) == (60, 60)
    assert (other.timeout.value, other.queue.value, other.rate) == (60, 3, None)


def test_what_no_rule_gives_is_the_default() -> None:
    verdict = judged(rules(), "time__now")
    assert verdict == Verdict(allowed=True, rule="default")
    assert verdict.timeout.source == "default"


def test_a_rule_that_only_limits_decides_nothing() -> None:
    made = rules({"match": "*", "timeout": "5s"}, {"match": "*__delete_*", "decision": "deny"})
    assert judged(made, "files__read").allowed
    assert judged(made, "files__read").rule == "default"
    denied = judged(made, "files__delete_all")
    assert (denied.allowed, denied.rule, denied.timeout.value) == (False, "*__delete_*", 5)


def test_the_default_decision_can_be_to_deny() -> None:
    made = rules({"match": "time__*", "decision": "allow"}, default="deny")
    assert judged(made, "time__now").allowed
    assert not judged(made, "files__read").allowed
    assert judged(made, "files__read").rule == "default"
    assert judged(made, "files__a_prompt", Kind.PROMPT).allowed  # of tools alone


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("time__*", "time__now", "times__now"),
        ("*__get_?", "a__get_x", "a__get_xy"),
        ("a__[rw]*", "a__read", "a__list"),
        ("A__x", "A__x", "a__x"),
        ("a.b", "a.b", "aXb"),
    ],
)
def test_patterns_are_globs_with_regard_to_case(pattern: str, matching: str, other: str) -> None:
    made = rules({"match": pattern, "decision": "deny"})
    assert not judged(made, matching).allowed
    assert judged(made, other).allowed


def test_a_rule_does_not_miss_a_tool_whose_name_had_to_be_cut() -> None:
    long = "remove_every_single_file_in_the_whole_wide_world_force"
    listing = Listing("files", tools=({"name": long, "inputSchema": {"type": "object"}},))
    tool = merge([listing], {"files": "files"}, 50).of(Kind.TOOL)[0]
    assert not tool.name.endswith("_force")
    assert not rules({"match": "*_force", "decision": "deny"}).verdict(None, tool).allowed
    assert not rules({"match": tool.name, "decision": "deny"}).verdict(None, tool).allowed


def test_denied_entries_are_not_on_offer_and_one_catalog_is_offered_as_one_object() -> None:
    tool = {"inputSchema": {"type": "object"}}
    listing = Listing(
        "files",
        tools=({"name": "read", **tool}, {"name": "delete_all", **tool}),
        prompts=({"name": "delete_plan"},),
        resources=({"uri": "file:///a", "name": "a"}, {"uri": "file:///secret", "name": "s"}),
        templates=({"uriTemplate": "file:///{+path}", "name": "any"},),
    )
    catalog = merge([listing], {"files": "files"}, 50)
    made = rules(
        {"match": "*__delete_*", "decision": "deny"},
        {"match": "file:///secret*", "decision": "deny"},
        {"match": "file:///{+path}", "decision": "deny"},
    )
    offered = made.offer(catalog)
    assert [e.name for e in offered.of(Kind.TOOL)] == ["files__read"]
    assert offered.of(Kind.PROMPT) == ()
    assert [e.name for e in offered.of(Kind.RESOURCE)] == ["file:///a"]
    assert offered.of(Kind.TEMPLATE) == ()
    assert offered.resolve(Kind.TOOL, "files__delete_all") is None
    assert offered.resolve(Kind.RESOURCE, "file:///other") is None
    assert made.offer(catalog) is offered
    assert rules().offer(catalog) == catalog


@pytest.mark.parametrize(
    "asked",
    [
        "file:///etc/passwd", "file:///%65tc/passwd", "file:///etc%2Fpasswd",
        "file:///%2565tc/passwd", "file:///tmp/../etc/passwd", "file:///tmp/%2e%2e/etc/passwd",
        "file:////etc//passwd", "file:///./etc/passwd", "file:///tmp/..\\etc/passwd",
    ],
)  # fmt: skip
def test_a_denied_uri_is_denied_in_every_spelling(asked: str) -> None:
    listing = Listing("files", templates=({"uriTemplate": "file:///{+path}", "name": "any"},))
    catalog = merge([listing], {"files": "files"}, 50)
    made = rules({"match": "file:///etc/*", "decision": "deny"})
    found = catalog.resolve(Kind.RESOURCE, asked)
    assert found is not None
    assert not made.verdict(None, found).allowed
    harmless = catalog.resolve(Kind.RESOURCE, "file:///home/etc/x")
    assert harmless is not None
    assert made.verdict(None, harmless).allowed


def test_an_allowed_uri_does_not_allow_what_it_resolves_to() -> None:
    made = rules(
        {"match": "file:///pub/*", "decision": "allow"}, {"match": "*", "decision": "deny"}
    )
    assert judged(made, "file:///pub/a", Kind.RESOURCE).allowed
    assert not judged(made, "file:///pub/../etc/passwd", Kind.RESOURCE).allowed


def test_a_uri_is_only_as_free_as_the_template_it_came_through() -> None:
    made = rules({"match": "db://{+query}", "decision": "deny"})
    through = entry("db://anything", Kind.RESOURCE, template="db://{+query}")
    assert not made.verdict(None, through).allowed


def test_the_owner_of_a_shared_uri_is_judged_by_the_uri_it_knows() -> None:
    made = rules({"match": "file:///etc/*", "decision": "deny"})
    assert not made.verdict(
        None, entry("b+file:///etc/x", Kind.RESOURCE, own="file:///etc/x")
    ).allowed


def test_a_name_that_passes_to_another_entry_is_judged_anew() -> None:
    made = rules({"match": "time__a.b", "decision": "deny"})
    one = Entry("time__a_b", Route("time", Kind.TOOL, "a.b"), {})
    other = Entry("time__a_b", Route("time", Kind.TOOL, "a_b"), {})
    assert not made.verdict(None, one).allowed
    assert made.verdict(None, other).allowed
    assert not made.verdict(None, one).allowed


def test_what_callers_type_cannot_fill_the_memory() -> None:
    made = rules({"match": "*", "timeout": "1s"})
    for number in range(KEPT + 100):
        judged(made, f"file:///{number}", Kind.RESOURCE)
    assert len(made._known[Kind.RESOURCE]) <= KEPT


def test_a_verdict_is_worked_out_once() -> None:
    made = rules({"match": "time__*", "timeout": "5s"})
    assert judged(made, "time__now") is judged(made, "time__now")


def test_every_setting_is_explained_with_its_place() -> None:
    made = rules(
        {"match": "time__*", "timeout": "10s", "decision": "allow"},
        {"match": "*", "rate": "100/h", "concurrency": 4},
        time=server(concurrency=2, queue=5),
    )
    assert [tuple(line) for line in made.explain(entry("time__now"))] == [
        ("decision", "allow", "onegate.yaml:0"),
        ("timeout", "10s", "onegate.yaml:0"),
        ("longest", "10m", "default"),
        ("concurrency", "4", "onegate.yaml:10"),
        ("queue", "64", "default"),
        ("rate", "100/h", "onegate.yaml:10"),
        ("concurrency of the server", "2", "file:time"),
        ("queue of the server", "5", "file:time"),
    ]
    assert ("rate", "no bound", "default") in rules().explain(entry("time__now"))


def test_only_servers_with_a_bound_of_their_own_have_turns() -> None:
    made = rules(time=server(concurrency=2), files=server(queue=7))
    assert set(made.turns) == {"time"}
    turns = made.turns["time"]
    assert (turns.concurrency.value, turns.queue.value, turns.queue.source) == (2, 64, "default")


def test_the_words_that_can_stand_as_a_rule_are_known_beforehand() -> None:
    made = rules({"match": "time__*", "timeout": "1s"}, {"match": "*", "decision": "deny"})
    assert made.patterns == {"time__*", "*", "default"}
    assert judged(made, "time__now").rule in made.patterns
