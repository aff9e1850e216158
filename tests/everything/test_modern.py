"""The modern side of the everything-server: rounds of questions, sealed state, listen streams."""

from typing import Any

import pytest

from tests.everything.client import Lines, P, enveloped, everything

TOOL = "test_input_required_result"
ALL: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
FORM = {"action": "accept", "content": {"name": "Ada", "color": "blue", "ok": True}}
WORDS = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}
ROOTS = {"roots": [{"uri": "file:///somewhere"}]}
ANSWERS = {"elicitation/create": FORM, "sampling/createMessage": WORDS, "roots/list": ROOTS}


def call(lines: Lines, tool: str, **params: Any) -> Any:
    return lines.ask("tools/call", name=tool, **{"_meta": enveloped(ALL)} | params)


@pytest.mark.parametrize(
    ("kind", "rounds"),
    [
        ("elicitation", 1),
        ("sampling", 1),
        ("list_roots", 1),
        ("request_state", 1),
        ("multiple_inputs", 1),
        ("multi_round", 2),
        ("capabilities", 1),
    ],
)
def test_a_call_completes_when_all_its_rounds_are_answered(kind: str, rounds: int) -> None:
    with everything() as lines:
        result = call(lines, f"{TOOL}_{kind}")["result"]
        states: list[str | None] = []
        for _ in range(rounds):
            assert result["resultType"] == "input_required"
            states.append(result.get("requestState"))
            asked = result["inputRequests"]
            given = {key: ANSWERS[each["method"]] for key, each in asked.items()}
            known = {"requestState": states[-1]} if states[-1] is not None else {}
            result = call(lines, f"{TOOL}_{kind}", inputResponses=given, **known)["result"]
        assert result["resultType"] == "complete"
        assert len(set(states)) == rounds


def test_an_altered_or_foreign_state_is_refused() -> None:
    with everything() as lines:
        state = call(lines, f"{TOOL}_tampered_state")["result"]["requestState"]
        for wrong in (f"{state}-TAMPERED", state[1:], "", 7, "\ud800"):
            answer = call(lines, f"{TOOL}_tampered_state", requestState=wrong)
            assert answer["error"]["code"] == -32602
        assert call(lines, f"{TOOL}_request_state", requestState=state)["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("responses", "kind"),
    [
        ({"wrong": FORM}, "input_required"),
        ({"user_name": 7}, "input_required"),
        ({"user_name": {"action": "shrug"}}, "input_required"),
        ({"user_name": FORM, "more": FORM}, "complete"),
        ({"user_name": {"action": "decline"}}, "complete"),
    ],
)
def test_answers_that_do_not_fit_are_asked_for_again(responses: Any, kind: str) -> None:
    with everything() as lines:
        result = call(lines, f"{TOOL}_elicitation", inputResponses=responses)["result"]
        assert result["resultType"] == kind


def test_answers_that_are_no_object_are_refused() -> None:
    with everything() as lines:
        answer = call(lines, f"{TOOL}_elicitation", inputResponses=None)
        assert answer["error"]["code"] == -32602


def test_only_what_this_request_declared_is_asked() -> None:
    with everything() as lines:
        meta = enveloped({"sampling": {}})
        asked = call(lines, f"{TOOL}_capabilities", _meta=meta)["result"]["inputRequests"]
        assert [each["method"] for each in asked.values()] == ["sampling/createMessage"]
        error = call(lines, "test_missing_capability", _meta=enveloped({}))["error"]
        assert (error["code"], error["data"]) == (
            -32021,
            {"requiredCapabilities": {"sampling": {}}},
        )
        assert "result" in call(lines, "test_missing_capability", _meta=meta)


def test_log_lines_come_only_to_a_request_that_asked_for_them() -> None:
    with everything() as lines:
        call(lines, "test_logging_tool")
        assert not lines.seen("notifications/message")
        call(lines, "test_logging_tool", _meta=enveloped(ALL, **{f"{P}logLevel": "info"}))
        assert len(lines.seen("notifications/message")) == 3


def test_listen_streams_carry_what_they_asked_for_and_nothing_else() -> None:
    with everything() as lines:
        prompts = lines.start(
            "subscriptions/listen", notifications={"promptsListChanged": True}, _meta=enveloped()
        )
        lines.wait(method="notifications/subscriptions/acknowledged")
        call(lines, "test_trigger_tool_change")
        call(lines, "test_trigger_prompt_change")
        assert not lines.seen("notifications/tools/list_changed")
        (told,) = lines.seen("notifications/prompts/list_changed")
        assert told["params"]["_meta"] == {f"{P}subscriptionId": prompts}
        lines.send(method="notifications/cancelled", params={"requestId": prompts})
        call(lines, "test_trigger_prompt_change")
        assert len(lines.seen("notifications/prompts/list_changed")) == 1


def test_a_listen_stream_hears_of_its_own_resources() -> None:
    with everything() as lines:
        wanted = {"resourceSubscriptions": ["test://watched-resource"]}
        lines.start("subscriptions/listen", notifications=wanted, _meta=enveloped())
        ack = lines.wait(method="notifications/subscriptions/acknowledged")
        assert ack["params"]["notifications"] == wanted
        call(lines, "test_touch_watched_resource")
        (told,) = lines.seen("notifications/resources/updated")
        assert told["params"]["uri"] == "test://watched-resource"


@pytest.mark.parametrize(
    "method",
    ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "initialize"],
)
def test_methods_of_the_other_era_are_unknown(method: str) -> None:
    with everything() as lines:
        assert lines.ask(method, _meta=enveloped())["error"]["code"] == -32601


def test_a_version_that_nobody_knows_is_refused_with_those_that_are() -> None:
    with everything() as lines:
        meta = enveloped() | {f"{P}protocolVersion": "v999"}
        error = lines.ask("tools/list", _meta=meta)["error"]
        assert error["code"] == -32022
        assert error["data"] == {"supported": ["2026-07-28"], "requested": "v999"}


def test_a_cancelled_call_is_never_answered() -> None:
    with everything() as lines:
        lasting = lines.start(
            "tools/call", name="test_lasting", arguments={"seconds": 0.3}, _meta=enveloped()
        )
        assert call(lines, "test_count_lasting")["result"]["content"][0]["text"] == "1"
        lines.send(method="notifications/cancelled", params={"requestId": lasting})
        assert call(lines, "test_count_lasting")["result"]["content"][0]["text"] == "0"
        call(lines, "test_lasting", arguments={"seconds": 0.6})
        lines.close()
        with pytest.raises(EOFError):
            lines.wait(id=lasting)
