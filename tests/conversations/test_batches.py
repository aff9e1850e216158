"""JSON arrays: 2025-03-26 has them, no other revision.

Source: 2025-03-26 basic/transports and basic, "Batching"; cases B27.
"""

import asyncio
from typing import Any

import pytest

from tests.conversations.talking import (
    Gate,
    Message,
    called,
    client_of,
)
from tests.kit.http import Answer, Legacy
from tests.kit.waiting import run

BATCHING = "2025-03-26"


def answers_of(answer: Answer) -> list[Message]:
    """One array as JSON; in a stream, arrays or single answers (2025-03-26 basic/transports)."""
    messages: tuple[Any, ...] = answer.messages
    flat = [one for each in messages for one in (each if isinstance(each, list) else [each])]
    return [each for each in flat if "method" not in each]


def batched(gate: Gate, *items: Any, version: str = BATCHING) -> Answer:
    async def converse() -> Answer:
        async with client_of(version, gate.url) as client:
            return await client.post(list(items))

    return run(converse())


def ask(id_: Any, method: str, **params: Any) -> Message:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def test_each_element_is_served_as_if_it_came_alone(gate: Gate) -> None:
    since = gate.mark()

    answer = batched(
        gate,
        ask(1, "ping"),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        ask("1", "tools/call", name="old__echo", arguments={"text": "a"}),
        ask(2, "tools/call", name="new__echo", arguments={"text": "b"}),
        ask(3, "unknown/method"),
        {"jsonrpc": "2.0", "id": 9, "result": {}},
    )

    found = {(type(each["id"]), each["id"]): each for each in answers_of(answer)}
    assert answer.status == 200
    assert set(found) == {(int, 1), (str, "1"), (int, 2), (int, 3)}
    assert found[int, 1]["result"] == {}
    assert found[str, "1"]["result"]["content"][0]["text"] == "a"
    assert found[int, 2]["result"]["content"][0]["text"] == "b"
    assert found[int, 3]["error"]["code"] == -32601
    assert len(since.records(number=2)) == 2


def test_what_an_element_lacks_is_told_of_it_alone(gate: Gate) -> None:
    answer = batched(gate, ask(1, "ping"), 7, {"id": None, "method": "ping"}, [ask(2, "ping")])

    first, *wrong = answers_of(answer)
    assert first["result"] == {}
    assert [each["error"]["code"] for each in wrong] == [-32600] * 3
    assert [each["id"] for each in wrong] == [None] * 3


def test_notifications_and_responses_alone_are_accepted_without_a_word(gate: Gate) -> None:
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}

    answer = batched(gate, told, {"jsonrpc": "2.0", "id": 1, "result": {}})

    assert (answer.status, answer.body) == (202, b"")


def test_initialize_comes_alone(gate: Gate) -> None:
    """2025-03-26 basic/lifecycle: it MUST NOT be part of a batch."""
    answer = batched(gate, ask(1, "initialize", protocolVersion=BATCHING), ask(2, "ping"))

    refused, fine = answers_of(answer)
    assert (refused["id"], refused["error"]["code"]) == (1, -32600)
    assert fine["result"] == {}


def test_an_empty_batch_is_refused(gate: Gate) -> None:
    answer = batched(gate)

    assert (answer.status, answer.error["code"]) == (400, -32600)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_other_revisions_have_none_and_nothing_of_it_is_done(gate: Gate, version: str) -> None:
    since = gate.mark()

    answer = batched(gate, ask(1, "tools/call", name="old__echo"), version=version)

    assert (answer.status, answer.error["code"], answer.final["id"]) == (400, -32600, None)
    assert "batch" in answer.error["message"].lower()
    assert not since.heard("old", "tools/call")


def test_progress_of_its_elements_comes_ahead_of_the_answers(gate: Gate) -> None:
    meta = {"progressToken": "mine"}

    answer = batched(
        gate,
        ask(1, "tools/call", name="old__progress", arguments={"steps": 2, "ms": 1}, _meta=meta),
        ask(2, "ping"),
    )

    *first, _ = answer.messages[:3]
    assert [each["params"]["progressToken"] for each in first] == ["mine"] * 2
    assert [each["id"] for each in answers_of(answer)] == [1, 2]


def test_one_element_can_be_cancelled_and_the_others_go_on(gate: Gate) -> None:
    async def converse() -> Answer:
        since = gate.mark()
        async with client_of(BATCHING, gate.url) as client:
            assert isinstance(client, Legacy)
            items = [called(client, "old__hang", "gone"), ask(2, "ping")]
            async with asyncio.TaskGroup() as tasks:
                posted = tasks.create_task(client.post(items))
                await since.told("old", "tools/call")
                await client.notify("notifications/cancelled", {"requestId": "gone"})
            return posted.result()

    gone, ping = answers_of(run(converse()))

    assert gone["error"]["data"]["kind"] == "cancelled"
    assert ping["result"] == {}


def test_no_element_waits_for_another_and_a_later_one_may_cancel_an_earlier(gate: Gate) -> None:
    answer = batched(
        gate,
        ask("gone", "tools/call", name="old__hang", arguments={}),
        ask(2, "tools/call", name="new__echo", arguments={"text": "not held up"}),
        {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": "gone"},
        },
    )

    gone, echoed = answers_of(answer)
    assert gone["error"]["data"]["kind"] == "cancelled"
    assert echoed["result"]["content"][0]["text"] == "not held up"


def test_rules_and_record_are_for_each_element(strict: Gate) -> None:
    """cases B27: a batch is no way past them."""
    since = strict.mark()

    answer = batched(
        strict,
        ask(1, "tools/call", name="one__echo"),
        ask(2, "tools/call", name="one__rich"),
    )

    allowed, denied = answers_of(answer)
    assert "result" in allowed
    assert denied["error"]["message"] == "Unknown tool: one__rich"
    outcomes = sorted(record["outcome"] for record in since.records(number=2))
    assert outcomes == ["denied", "ok"]
    assert len(since.heard("one", "tools/call")) == 1
