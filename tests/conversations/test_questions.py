"""Questions of servers where nobody is asked in mid-call.

Source: 2026-07-28 basic/patterns/mrtr: a call may end by asking, and the same call with answers
is another call; between a modern client and a modern server all of it passes as it is. A client
that declared nothing is never asked.
"""

import json
from typing import Any

import pytest

from tests.conversations.talking import Client, Gate, Message, client_of, each_pair
from tests.kit.http import Answer, Modern
from tests.kit.waiting import run

FORM: Message = {"elicitation": {"form": {}}}
QUESTION = {
    "mode": "form",
    "message": "Your name? é\u2028",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
}
STATE = "c3RhdGU=.\u00e9"
"""The fake server's: opaque, and of no form that anybody would expect."""


@pytest.mark.parametrize("server", ["new", "dual"])
def test_a_question_and_its_answer_pass_as_they_are(gate: Gate, server: str) -> None:
    """Keys, params and state, byte for byte; the retry has an id of its own."""
    answers = {"q1": {"action": "accept", "content": {"name": "Ada"}}, "extra": {"z": [1.0]}}

    async def converse() -> tuple[Answer, Answer]:
        async with Modern.to(gate.url) as client:
            client.envelope.capabilities = FORM
            told: Message = {"method": "elicitation/create", "params": QUESTION}
            asked = await client.call(f"{server}__ask", told)
            retry = {"inputResponses": answers, "requestState": asked.result["requestState"]}
            return asked, await client.call(f"{server}__ask", told, **retry)

    asked, answered = run(converse())

    assert asked.result["resultType"] == "input_required"
    assert asked.result["requestState"] == STATE
    question = {"method": "elicitation/create", "params": QUESTION}
    assert asked.result["inputRequests"] == {"q1": question}
    assert not {"ttlMs", "cacheScope"} & set(asked.result), "nothing to be kept"
    got = json.loads(answered.text)
    assert got == {"inputResponses": answers, "requestState": STATE}
    assert answered.result["resultType"] == "complete"


def test_answers_without_a_state_get_none(gate: Gate) -> None:
    """A client may answer at once what it knows will be asked."""

    async def converse() -> Any:
        async with Modern.to(gate.url) as client:
            client.envelope.capabilities = FORM
            told: Message = {"method": "elicitation/create", "params": {}}
            answers = {"q1": {"action": "decline"}}
            answer = await client.call("new__ask", told, inputResponses=answers)
            return json.loads(answer.text)

    assert run(converse()) == {
        "inputResponses": {"q1": {"action": "decline"}},
        "requestState": None,
    }


def test_each_round_is_a_call_of_its_own_in_the_record(gate: Gate) -> None:
    since = gate.mark()
    tool = "every__test_input_required_result_multi_round"

    async def converse() -> list[str]:
        async with Modern.to(gate.url) as client:
            client.envelope.capabilities = FORM
            first = (await client.call(tool)).result
            name = {"step1": {"action": "accept", "content": {"name": "Ada"}}}
            state = {"requestState": first["requestState"]}
            second = (await client.call(tool, inputResponses=name, **state)).result
            colour = {"step2": {"action": "accept", "content": {"color": "red"}}}
            state = {"requestState": second["requestState"]}
            done = await client.call(tool, inputResponses=colour, **state)
            assert first["requestState"] != second["requestState"]
            return [*first["inputRequests"], *second["inputRequests"], done.text]

    *keys, text = run(converse())

    assert keys == ["step1", "step2"]
    assert "'Ada'" in text
    assert "'red'" in text
    outcomes = [record["outcome"] for record in since.records(number=3)]
    assert outcomes == ["input_required", "input_required", "ok"]


def test_a_state_that_was_altered_is_the_servers_to_refuse(gate: Gate) -> None:
    tool = "every__test_input_required_result_tampered_state"

    async def converse() -> Answer:
        async with Modern.to(gate.url) as client:
            client.envelope.capabilities = FORM
            state = (await client.call(tool)).result["requestState"]
            answers = {"confirm": {"action": "accept", "content": {"ok": True}}}
            told: Message = {"inputResponses": answers, "requestState": f"{state}-TAMPERED"}
            return await client.call(tool, **told)

    assert run(converse()).error["code"] == -32602


def test_prompts_may_ask_as_well(gate: Gate) -> None:
    name = "every__test_input_required_result_prompt"

    async def converse() -> tuple[list[str], str]:
        async with Modern.to(gate.url) as client:
            client.envelope.capabilities = FORM
            asked = (await client.request("prompts/get", {"name": name})).result
            answers = {"user_context": {"action": "accept", "content": {"context": "gates"}}}
            told = {"name": name, "inputResponses": answers}
            given = (await client.request("prompts/get", told)).result
            return list(asked["inputRequests"]), given["messages"][0]["content"]["text"]

    assert run(converse()) == (["user_context"], "Prompt about gates")


@each_pair
@pytest.mark.parametrize("method", ["elicitation/create", "sampling/createMessage", "roots/list"])
def test_who_declared_nothing_is_not_asked_and_the_call_ends_at_once(
    gate: Gate, era: str, server: str, method: str
) -> None:
    """A legacy server is refused with -32601 and copes; a modern one hears of it in the form
    its revision has, or the model does. Only modern to modern the gateway has no say."""
    params: Message = {"message": "?"} if method == "elicitation/create" else {}

    async def converse() -> Answer:
        async with client_of(era, gate.url) as client:
            told: Message = {"method": method, "params": params}
            return await client.call(f"{server}__ask", told)

    answer = run(converse(), within_s=10)

    assert not [each for each in answer.notices if each["method"] == method]
    if server == "old" or (era, server) == ("legacy", "dual"):
        assert json.loads(answer.text)["error"]["code"] == -32601
        assert not answer.result.get("isError")
    elif era == "modern":
        assert answer.result["resultType"] == "input_required"
    elif method == "elicitation/create":
        told = json.loads(answer.text)
        assert told["inputResponses"] == {"q1": {"action": "cancel"}}
        assert told["requestState"] == STATE
    else:
        assert answer.result["isError"] is True
        assert answer.result["_meta"]["onegate/error"]["kind"] == "refused"
        assert method in answer.text


@each_pair
def test_a_servers_ping_is_answered(gate: Gate, era: str, server: str) -> None:
    async def converse() -> Any:
        async with client_of(era, gate.url) as client:
            return json.loads((await client.call(f"{server}__ask", {"method": "ping"})).text)

    answer = run(converse())

    if server == "old" or (era, server) == ("legacy", "dual"):
        assert answer["result"] == {}
    else:  # a modern server sends no requests at all
        assert answer["error"]["code"] == -32601


@pytest.mark.parametrize("method", ["roots/list", "sampling/createMessage", "unheard/of"])
def test_a_question_outside_of_any_call_is_refused_at_once(gate: Gate, method: str) -> None:
    """Some servers ask as soon as they are up; waiting for an answer must not hold them up."""
    question = json.dumps({"jsonrpc": "2.0", "id": "theirs", "method": method, "params": {}})

    async def converse(client: Client) -> Message:
        since = gate.mark()
        await client.call("old__raw", {"text": question})
        await client.call("old__echo")
        return next(each for each in since.heard("old") if each.get("id") == "theirs")

    async def conversed() -> Message:
        async with client_of("legacy", gate.url) as client:
            return await converse(client)

    assert run(conversed())["error"]["code"] == -32601


def test_a_capability_the_client_lacks_is_told_in_the_form_of_its_era(gate: Gate) -> None:
    """2026-07-28: -32021 and 400 with what is missing. Before, that code means nothing: the
    model reads it instead."""
    tool = "every__test_missing_capability"

    async def converse() -> tuple[Answer, Answer]:
        async with Modern.to(gate.url) as modern, client_of("legacy", gate.url) as legacy:
            return await modern.call(tool), await legacy.call(tool)

    modern, legacy = run(converse())

    assert (modern.status, modern.error["code"]) == (400, -32021)
    assert modern.error["data"]["requiredCapabilities"] == {"sampling": {}}
    assert (legacy.status, legacy.result["isError"]) == (200, True)
    assert legacy.result["_meta"]["onegate/error"]["kind"] == "refused"
