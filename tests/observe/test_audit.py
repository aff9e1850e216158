"""Whatever ends a call, it leaves exactly one record, and the record says what it was."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from gateway.calls.call import (
    Call,
    Caller,
    Completed,
    InputRequired,
    Limit,
    Outcome,
    Spent,
    Verdict,
)
from gateway.calls.pipeline import chain
from gateway.catalog.entries import Entry, Kind, Route
from gateway.observe.audit import Audit
from gateway.observe.ledger import Ledger
from gateway.observe.metrics import GatewayStats, Metrics
from gateway.observe.sinks import Ring
from gateway.protocol import errors
from gateway.protocol.jsonrpc import Raw
from gateway.protocol.revisions import BY_NAME
from tests.kit.waiting import run

ENTRY = Entry("dice__roll", Route("dice", Kind.TOOL, "roll"), {})
ALLOWED = Verdict(True, "dice__*", timeout=Limit(10, "onegate.yaml:7"))
SECRET = "hunter2abcdefg"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Desk:
    """An audit stage with everything behind it, and what it wrote."""

    def __init__(self, *, with_arguments: bool = False) -> None:
        self.ring, self.clock = Ring(), Clock()
        self.metrics = Metrics(GatewayStats, "0")
        self.ledger = Ledger([], self.ring, self.metrics, with_arguments=with_arguments)
        self.audit = Audit(self.ledger, self.clock, lambda: 1785231000.123)

    def records(self) -> list[dict[str, Any]]:
        self.ledger.flush()
        return [json.loads(line) for line in self.ring.since(0)]

    def only(self) -> dict[str, Any]:
        (one,) = self.records()
        return one

    async def serve(self, end: Callable[[Call], Awaitable[Outcome]], **changes: Any) -> Outcome:
        return await chain(self.audit, end=end)(a_call(**changes))


def a_call(**changes: Any) -> Call:
    known: dict[str, Any] = {
        "id": "c1",
        "method": "tools/call",
        "kind": Kind.TOOL,
        "name": "dice__roll",
        "params": {
            "name": Raw(b'"dice__roll"'),
            "arguments": Raw(b'{"password":"hunter2abcdefg"}'),
        },
        "caller": Caller(BY_NAME["2026-07-28"], "claude", "cline/3.1"),
        "spent": Spent(),
        "trace": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "request_bytes": 99,
        "entry": ENTRY,
        "verdict": ALLOWED,
    }
    return Call(**(known | changes))


def answering(result: Mapping[str, Any]) -> Callable[[Call], Awaitable[Outcome]]:
    async def end(_call: Call) -> Outcome:
        return Completed(result, 42)

    return end


def raising(error: BaseException) -> Callable[[Call], Awaitable[Outcome]]:
    async def end(_call: Call) -> Outcome:
        raise error

    return end


def test_a_call_that_succeeds_is_described_completely() -> None:
    desk = Desk()

    async def end(call: Call) -> Outcome:
        desk.clock.now += 0.75
        call.spent.server_s += 0.5
        return Completed({"content": Raw(b"[]")}, 42)

    run(desk.serve(end))

    assert desk.only() == {
        "ts": "2026-07-28T09:30:00.123Z",
        "call": "c1",
        "trace": "0af7651916cd43dd8448eb211c80319c",
        "principal": "claude",
        "client": "cline/3.1",
        "revision": "2026-07-28",
        "server": "dice",
        "tool": "roll",
        "name": "dice__roll",
        "decision": "allow",
        "rule": "dice__*",
        "outcome": "ok",
        "duration_s": 0.75,
        "server_s": 0.5,
        "request_bytes": 99,
        "result_bytes": 42,
        "error": None,
    }


@pytest.mark.parametrize("is_error", [True, Raw(b"true")])
def test_a_tools_own_failure_is_one_of_the_tool(is_error: object) -> None:
    desk = Desk()
    run(desk.serve(answering({"isError": is_error})))
    assert desk.only()["outcome"] == "tool_error"


@pytest.mark.parametrize("is_error", [False, Raw(b"false"), Raw(b'"true"'), None])
def test_only_true_is_a_failure(is_error: object) -> None:
    desk = Desk()
    run(desk.serve(answering({"isError": is_error})))
    assert desk.only()["outcome"] == "ok"


def test_a_call_that_asks_for_input_says_so() -> None:
    desk = Desk()

    async def end(_call: Call) -> Outcome:
        return InputRequired({}, 7)

    run(desk.serve(end))
    assert (desk.only()["outcome"], desk.only()["result_bytes"]) == ("input_required", 7)


ENDINGS: dict[str, tuple[errors.GatewayError, str]] = {
    "denied": (errors.Denied("Unknown tool: dice__roll"), "Unknown tool: dice__roll"),
    "invalid": (errors.InvalidParams("sides must be a number"), "sides must be a number"),
    "throttled": (errors.Throttled("too often"), "too often"),
    "timeout": (errors.DeadlineExceeded("silent for 10 s"), "silent for 10 s"),
    "unavailable": (errors.ServerUnavailable("exited\nwith 1", server="dice"), "exited\\nwith 1"),
    "server_error": (errors.ServerFailure(-32000, f"bad {SECRET}"), "code -32000"),
    "refused": (errors.CannotAnswer("nobody to ask"), "nobody to ask"),
    "cancelled": (errors.Cancelled("the client changed its mind"), "the client changed its mind"),
}


@pytest.mark.parametrize("outcome", ENDINGS)
def test_each_way_to_fail_has_its_outcome_and_its_reason_and_reaches_the_client(
    outcome: str,
) -> None:
    desk = Desk()
    error, reason = ENDINGS[outcome]
    with pytest.raises(type(error)):
        run(desk.serve(raising(error)))

    told = desk.only()
    assert (told["outcome"], told["error"]) == (outcome, reason)
    assert told["result_bytes"] is told["server_s"] is None


def test_an_unknown_name_is_invalid_and_nobody_decided_about_it() -> None:
    desk = Desk()
    error = errors.UnknownEntry("Unknown tool: nope")
    with pytest.raises(errors.UnknownEntry):
        run(desk.serve(raising(error), name="nope", entry=None, verdict=Verdict(False, "unknown")))

    told = desk.only()
    assert (told["outcome"], told["rule"], told["decision"]) == ("invalid", "unknown", None)
    assert (told["server"], told["tool"], told["name"]) == (None, None, "nope")


def test_a_denied_tool_says_which_rule_denied_it() -> None:
    desk = Desk()
    with pytest.raises(errors.Denied):
        run(desk.serve(raising(errors.Denied("x")), verdict=Verdict(False, "*__delete_*")))

    told = desk.only()
    assert (told["outcome"], told["decision"], told["rule"]) == ("denied", "deny", "*__delete_*")
    assert told["server"] == "dice"


def test_a_bug_is_recorded_and_not_swallowed() -> None:
    desk = Desk()
    with pytest.raises(ZeroDivisionError):
        run(desk.serve(raising(ZeroDivisionError(SECRET))))

    assert (desk.only()["outcome"], desk.only()["error"]) == ("crashed", "ZeroDivisionError")


def test_a_call_whose_client_goes_away_leaves_its_record() -> None:
    desk = Desk()

    async def conversation() -> None:
        started = asyncio.Event()

        async def end(_call: Call) -> Outcome:
            started.set()
            await asyncio.Event().wait()
            raise AssertionError("never")

        async with asyncio.TaskGroup() as group:
            served = group.create_task(desk.serve(end))
            await started.wait()
            served.cancel()

    run(conversation())
    assert (desk.only()["outcome"], desk.only()["error"]) == ("cancelled", None)


def test_a_call_cut_off_when_the_loop_ends_leaves_its_record() -> None:
    desk = Desk()

    async def end(_call: Call) -> Outcome:
        await asyncio.Future()
        raise AssertionError("never")

    async def start() -> None:
        serving = desk.serve(end)
        serving.send(None)
        serving.close()

    run(start())
    assert desk.only()["outcome"] == "cancelled"


def test_ten_calls_of_ten_kinds_are_ten_records_and_the_metrics_agree() -> None:
    desk = Desk()
    for error, _ in ENDINGS.values():
        with pytest.raises(errors.GatewayError):
            run(desk.serve(raising(error)))
    run(desk.serve(answering({})))
    run(desk.serve(answering({"isError": True})))

    outcomes = [told["outcome"] for told in desk.records()]
    assert outcomes == [*ENDINGS, "ok", "tool_error"]
    text = desk.metrics.render()[0].decode()
    for outcome in outcomes:
        line = f'onegate_tool_calls_total{{outcome="{outcome}",server="dice",tool="roll"}} 1.0'
        assert line in text


def test_arguments_are_absent_unless_asked_for() -> None:
    desk = Desk()
    run(desk.serve(answering({})))

    assert "arguments" not in desk.only()
    assert SECRET not in str(desk.only())


def test_arguments_are_redacted_when_asked_for() -> None:
    desk = Desk(with_arguments=True)
    raw = Raw(b'{"password":"hunter2abcdefg","sides":6}')
    run(desk.serve(answering({}), params={"arguments": raw}))
    run(desk.serve(answering({}), params={"arguments": {"token": SECRET}}))
    run(desk.serve(answering({}), params={}))

    with_raw, with_plain, without = desk.records()
    assert with_raw["arguments"] == {"password": "[redacted]", "sides": 6}
    assert with_plain["arguments"] == {"token": "[redacted]"}
    assert "arguments" not in without


def test_a_five_megabyte_argument_makes_a_short_record() -> None:
    desk = Desk(with_arguments=True)
    raw = Raw(b'{"text":"' + b"x" * 5_000_000 + b'"}')
    run(desk.serve(answering({}), params={"arguments": raw}))

    assert desk.only()["arguments"] == "[5000011 bytes]"


def test_a_credential_in_our_own_words_is_redacted() -> None:
    desk = Desk()
    error = errors.ServerUnavailable(f"exited: password={SECRET}", server="dice")
    with pytest.raises(errors.ServerUnavailable):
        run(desk.serve(raising(error)))

    assert desk.only()["error"] == "exited: [redacted]"
