"""Ids and progress tokens: kept in value and type, and never taken for another's."""

import asyncio
import json
from typing import Any

import pytest

from tests.conversations.talking import (
    Client,
    Gate,
    begun,
    called,
    client_of,
    each_era,
    each_pair,
    echoed,
)
from tests.kit.http import Answer, Legacy, Modern
from tests.kit.waiting import run

IDS: tuple[Any, ...] = (0, "", "7", 7, -1, 2**53 + 1, 2**70, "a b", "é\u2028", '"')
TOKENS: tuple[Any, ...] = ("mine", "", "7", 0, 7, -1, 2**53 + 1)


@each_era
def test_an_id_comes_back_as_it_was_in_results_and_in_errors(gate: Gate, era: str) -> None:
    """JSON-RPC 2.0, 5: the same value, and so the same type."""

    async def converse() -> list[Answer]:
        async with client_of(era, gate.url) as client:
            fine = [client.request("tools/list", id_=each) for each in IDS]
            forwarded = [
                client.request("tools/call", {"name": "old__echo"}, id_=each) for each in IDS
            ]
            bad = [client.request("tools/call", {"name": "nobody__x"}, id_=each) for each in IDS]
            return await asyncio.gather(*fine, *forwarded, *bad)

    answers = run(converse())

    back = [answer.final["id"] for answer in answers]
    assert [(type(each), each) for each in back] == [(type(each), each) for each in IDS] * 3
    assert all("error" in answer.final for answer in answers[-len(IDS) :])


@each_era
@pytest.mark.parametrize("id_", ["null", "true", "1.5", "1e3", "[1]", "{}"])
def test_what_is_no_id_is_refused(gate: Gate, era: str, id_: str) -> None:
    """MCP basic/index: a string or an integer, never null."""

    async def converse() -> Answer:
        async with client_of(era, gate.url) as client:
            message = client.message("tools/call", {"name": "old__echo"}, id_="HERE")
            body = json.dumps(message).replace('"HERE"', id_).encode()
            headers = client.routing(message) if isinstance(client, Modern) else {}
            return await client.post(body, headers)

    answer = run(converse())

    assert (answer.status, answer.error["code"]) == (400, -32600)
    assert answer.final["id"] is None


def test_many_sessions_with_equal_ids_and_tokens_each_get_their_own(gate: Gate) -> None:
    """cases B24. Progress names a token only: each has to reach the call it belongs to."""

    async def one(number: int) -> tuple[str, list[int], int]:
        era = "legacy" if number % 2 else "modern"
        server = ("old", "new", "dual")[number % 3]
        async with client_of(era, gate.url) as client:
            asked = {"name": f"{server}__progress", "arguments": {"steps": number + 1, "ms": 1}}
            told = {**asked, "_meta": {"progressToken": "t"}}
            progress = await client.request("tools/call", told, id_=1)
            assert {n["params"]["progressToken"] for n in progress.notices} == {"t"}
            same = {"name": f"{server}__echo", "arguments": {"text": str(number)}}
            echo = await client.request("tools/call", same, id_=1)
            steps = [n["params"]["progress"] for n in progress.notices]
            return echo.text, steps, echo.final["id"]

    async def converse() -> list[tuple[str, list[int], int]]:
        return await asyncio.gather(*(one(number) for number in range(24)))

    found = run(converse())

    assert found == [(str(n), list(range(1, n + 2)), 1) for n in range(24)]


def test_7_and_text_7_are_two_requests_of_one_session(gate: Gate) -> None:
    async def converse(client: Client) -> tuple[Answer, Answer]:
        text = called(client, "old__sleep", "7", arguments={"ms": 400})
        number = called(client, "old__hang", 7)
        since = gate.mark()
        async with asyncio.TaskGroup() as tasks:
            slept = tasks.create_task(client.post(text))
            hung = tasks.create_task(client.post(number))
            await since.told("old", "tools/call", number=2)
            assert isinstance(client, Legacy)
            await client.notify("notifications/cancelled", {"requestId": 7})
        return slept.result(), hung.result()

    async def conversed() -> tuple[Answer, Answer]:
        async with client_of("legacy", gate.url) as client:
            return await converse(client)

    slept, hung = run(conversed())

    assert slept.text == "slept 400 ms"
    assert hung.error["data"]["kind"] == "cancelled"


@each_pair
def test_a_progress_token_comes_back_as_it_was(gate: Gate, era: str, server: str) -> None:
    """basic/utilities/progress: a string or an integer, chosen by the sender."""

    async def one(client: Client, token: Any) -> list[Any]:
        told = {"steps": 2, "ms": 1}
        answer = await client.call(f"{server}__progress", told, _meta={"progressToken": token})
        assert [n["params"]["progress"] for n in answer.notices] == [1, 2]
        assert answer.text == "2 steps"
        return [n["params"]["progressToken"] for n in answer.notices]

    async def converse() -> list[list[Any]]:
        async with client_of(era, gate.url) as client:
            return [await one(client, token) for token in TOKENS]

    back = run(converse())

    assert [[(type(t), t) for t in pair] for pair in back] == [
        [(type(token), token)] * 2 for token in TOKENS
    ]


@each_pair
def test_without_a_token_no_progress_is_passed_on(gate: Gate, era: str, server: str) -> None:
    """Our own time limits need progress, so servers are asked for it all the same (B57)."""

    async def converse() -> tuple[Answer, Any]:
        async with client_of(era, gate.url) as client:
            token = echoed(await client.call(f"{server}__echo"))["meta"]["progressToken"]
            return await client.call(f"{server}__progress", {"steps": 2, "ms": 1}), token

    answer, token = run(converse())

    assert answer.notices == []
    assert answer.headers["Content-Type"] == "application/json"
    assert isinstance(token, int)


@each_era
@pytest.mark.parametrize("token", [None, {"a": 1}, [1], True, 1.5])
def test_a_token_that_is_none_is_as_good_as_missing(gate: Gate, era: str, token: Any) -> None:
    async def converse() -> Answer:
        async with client_of(era, gate.url) as client:
            told = {"progressToken": token}
            return await client.call("old__progress", {"steps": 1, "ms": 1}, _meta=told)

    answer = run(converse())

    assert (answer.notices, answer.text) == ([], "1 steps")


@each_pair
def test_progress_is_out_before_the_answer_is_there(gate: Gate, era: str, server: str) -> None:
    async def converse() -> str:
        async with client_of(era, gate.url) as client:
            told = {"steps": 1, "ms": 1, "hang": True}
            meta = {"progressToken": "t"}
            message = called(client, f"{server}__progress", arguments=told, _meta=meta)
            async with begun(client, message) as stream:
                first = await stream.message()
                if isinstance(client, Legacy):
                    await client.notify("notifications/cancelled", {"requestId": message["id"]})
                return str(first["params"]["message"])

    assert run(converse()) == "step 1"


@each_era
def test_who_takes_no_stream_gets_the_answer_alone(gate: Gate, era: str) -> None:
    async def converse() -> Answer:
        async with client_of(era, gate.url) as client:
            meta = {"progressToken": 1}
            message = called(client, "old__progress", _meta=meta)
            headers = client.routing(message) if isinstance(client, Modern) else {}
            return await client.post(message, {**headers, "Accept": "application/json"})

    answer = run(converse())

    assert answer.headers["Content-Type"] == "application/json"
    assert answer.text == "3 steps"


def test_an_id_used_twice_at_once_is_two_requests_and_both_end_with_the_session(
    gate: Gate,
) -> None:
    """2025-11-25, basic: "MUST NOT have been previously used" within a session. Clients that
    share one do it all the same, and each waits for its own answer."""

    async def converse() -> tuple[list[Answer], list[Answer]]:
        since = gate.mark()
        async with Legacy.to(gate.url) as client:
            await client.initialize()
            echoes = [called(client, "old__echo", 7, arguments={"text": text}) for text in "ab"]
            served = await asyncio.gather(*(client.post(each) for each in echoes))
            async with asyncio.TaskGroup() as tasks:
                hung = [
                    tasks.create_task(client.post(called(client, "old__hang", 7))) for _ in "ab"
                ]
                await since.told("old", "tools/call", number=4)
                assert await client.delete() == 204
                await since.told("old", "notifications/cancelled", number=2)
            return served, [each.result() for each in hung]

    served, ended = run(converse(), within_s=20)

    assert [answer.text for answer in served] == ["a", "b"]
    assert [answer.error["data"]["kind"] for answer in ended] == ["cancelled"] * 2
