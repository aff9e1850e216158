"""The legacy side of the everything-server: questions, log lines, subscriptions, changes."""

import pytest

from tests.everything.client import everything

FORM = {"action": "accept", "content": {"name": "Ada"}}


def test_a_tool_asks_the_client_and_uses_the_answer() -> None:
    with everything() as lines:
        lines.initialize({"elicitation": {}})
        call = lines.start("tools/call", name="test_input_required_result_elicitation")
        question = lines.wait(method="elicitation/create")
        assert question["id"] == 0
        lines.send(id=question["id"], result=FORM)
        assert lines.wait(id=call)["result"]["content"][0]["text"] == "Hello, Ada!"


def test_an_error_for_an_answer_is_an_error_of_the_tool() -> None:
    with everything() as lines:
        lines.initialize({"sampling": {}})
        call = lines.start("tools/call", name="test_sampling", arguments={"prompt": "hello"})
        question = lines.wait(method="sampling/createMessage")
        lines.send(id=question["id"], error={"code": -32601, "message": "cannot"})
        result = lines.wait(id=call)["result"]
        assert result["isError"] is True
        assert "cannot" in result["content"][0]["text"]


def test_a_cancelled_call_takes_its_question_back() -> None:
    with everything() as lines:
        lines.initialize({"sampling": {}})
        call = lines.start("tools/call", name="test_sampling", arguments={"prompt": "hello"})
        question = lines.wait(method="sampling/createMessage")
        lines.send(method="notifications/cancelled", params={"requestId": call})
        assert lines.wait(method="notifications/cancelled")["params"]["requestId"] == question["id"]


@pytest.mark.parametrize("tool", ["test_missing_capability", "test_sampling"])
def test_who_declared_nothing_is_told_what_is_missing(tool: str) -> None:
    with everything() as lines:
        lines.initialize({})
        error = lines.ask("tools/call", name=tool, arguments={"prompt": "hello"})["error"]
        assert (error["code"], error["data"]) == (
            -32021,
            {"requiredCapabilities": {"sampling": {}}},
        )


def test_log_lines_come_before_the_result_from_the_level_on_that_was_set() -> None:
    with everything() as lines:
        lines.initialize()
        lines.ask("tools/call", name="test_tool_with_logging")
        assert len(lines.seen("notifications/message")) == 3
        lines.ask("logging/setLevel", level="warning")
        lines.ask("tools/call", name="test_tool_with_logging")
        assert len(lines.seen("notifications/message")) == 3
        assert lines.ask("logging/setLevel", level="loud")["error"]["code"] == -32602


@pytest.mark.parametrize("token", ["word", 7, 0])
def test_progress_carries_the_token_as_it_was(token: str | int) -> None:
    with everything() as lines:
        lines.initialize()
        meta = {"progressToken": token}
        lines.ask("tools/call", name="test_tool_with_progress", _meta=meta)
        seen = [each["params"] for each in lines.seen("notifications/progress")]
        assert [each["progress"] for each in seen] == [0, 50, 100]
        assert [each["progressToken"] for each in seen] == [token] * 3


def test_an_updated_resource_is_announced_to_subscribers_alone() -> None:
    with everything() as lines:
        lines.initialize()
        lines.ask("tools/call", name="test_touch_watched_resource")
        assert not lines.seen("notifications/resources/updated")
        lines.ask("resources/subscribe", uri="test://watched-resource")
        lines.ask("tools/call", name="test_touch_watched_resource")
        assert len(lines.seen("notifications/resources/updated")) == 1
        lines.ask("resources/unsubscribe", uri="test://watched-resource")
        lines.ask("tools/call", name="test_touch_watched_resource")
        assert len(lines.seen("notifications/resources/updated")) == 1


def test_changed_lists_are_announced_and_a_toggled_tool_stays() -> None:
    with everything() as lines:
        lines.initialize()
        before = lines.ask("tools/list")["result"]["tools"]
        lines.ask("tools/call", name="test_trigger_tool_change")
        lines.ask("tools/call", name="test_trigger_prompt_change")
        assert lines.ask("tools/list")["result"]["tools"] == before
        assert lines.seen("notifications/prompts/list_changed")
        lines.ask("tools/call", name="test_toggle_tool")
        assert len(lines.seen("notifications/tools/list_changed")) == 2
        assert len(lines.ask("tools/list")["result"]["tools"]) == len(before) + 1


def test_a_missing_resource_has_the_code_of_its_era() -> None:
    with everything() as lines:
        lines.initialize()
        error = lines.ask("resources/read", uri="test://nothing")["error"]
        assert (error["code"], error["data"]) == (-32002, {"uri": "test://nothing"})
