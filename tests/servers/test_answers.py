"""Answers in every wrong shape, and questions nobody asked for: each has its defined end."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit.fakes import fake
from tests.kit.http import Answer
from tests.kit.waiting import eventually_async, run
from tests.servers.gate import Gate, failure, gate, model_text

ODD = ("--only", "odd,echo,sleep,ask,hang,raw,notify,log,whoami")
each_era = pytest.mark.parametrize("era", ["legacy", "modern"])


@each_era
def test_wrong_answers_hurt_their_own_call_at_most(tmp_path: Path, era: str) -> None:
    """B25, B28. `survives`: the right answer that follows is the one that counts."""
    survives: tuple[str, ...] = ("unknown_id", "no_id", "array", "twice", "request_like")
    survives += ("string_id", "no_jsonrpc")  # read as what they must mean
    fails = {"both": "both result and error", "neither": "neither", "null_result": "null"}

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*ODD, protocol=era)}) as it:
            await it.ready()
            async with it.modern() as client:
                for shape in survives:
                    assert (await _odd(it, client, shape)).text == "odd", shape
                for shape, word in fails.items():
                    answer = await _odd(it, client, shape, right=False)
                    assert failure(answer)["kind"] == "server_error", shape
                    assert "it sent an unusable answer" in model_text(answer)
                    assert word in model_text(answer), shape
                    # and when the right answer follows all the same, it is too late:
                    assert failure(await _odd(it, client, shape))["kind"] == "server_error"
                assert (await client.call("it__echo", {"text": "next"})).text == "next"

    run(converse())


def test_an_error_without_an_id_belongs_to_the_only_call_there_is(tmp_path: Path) -> None:
    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*ODD, protocol="legacy")}) as it:
            await it.ready()
            async with it.modern() as client:
                alone = await _odd(it, client, "null_id", right=False)
                assert alone.error["message"] == "odd"
                async with asyncio.TaskGroup() as tasks:
                    other = tasks.create_task(client.call("it__sleep", {"ms": 300}))
                    await eventually_async(lambda: _waiting(it) == 1)
                    among = await _odd(it, client, "null_id")
                assert among.text == "odd"
                assert other.result().text == "slept 300 ms"

    run(converse())


@each_era
def test_an_answer_that_comes_too_late_is_nobody_elses(tmp_path: Path, era: str) -> None:
    """B26: given up after 300 ms, answered after 600, with five calls in between."""
    rules = [{"match": "it__sleep", "timeout": "300ms"}]

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*ODD, protocol=era)}, tools=rules) as it:
            await it.ready()
            async with it.modern() as client:
                late = await client.call("it__sleep", {"ms": 600, "stubborn": True})
                assert failure(late)["kind"] == "timeout"
                exchange = it.server().main.connection.link.exchange  # type: ignore[union-attr]
                for number in range(5):
                    assert (
                        await client.call("it__echo", {"text": f"{number}"})
                    ).text == f"{number}"
                await eventually_async(lambda: exchange.late == 1)
                assert exchange.stray == 0
                assert (await client.call("it__echo", {"text": "after"})).text == "after"

    run(converse())


def test_questions_of_a_server_are_answered_at_once_whatever_they_are(tmp_path: Path) -> None:
    """A `ping` with `{}`; all else, as nobody can help, with -32601."""
    asked = ["ping", "sampling/createMessage", "elicitation/create", "roots/list", "no/such/thing"]

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*ODD, protocol="legacy")}) as it:
            await it.ready()
            async with it.modern() as client:
                for method in asked:
                    async with asyncio.timeout(3):
                        answer = await client.call("it__ask", {"method": method})
                    came_back = json.loads(answer.text)
                    if method == "ping":
                        assert came_back["result"] == {}
                    else:
                        assert came_back["error"]["code"] == -32601

    run(converse())


def test_a_server_that_asks_before_any_call_is_answered(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    question = {"jsonrpc": "2.0", "id": "mine", "method": "roots/list"}

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*ODD, "--record", heard, protocol="legacy")}) as it:
            await it.ready()
            async with it.modern() as client:
                await client.call("it__raw", {"text": json.dumps(question)})
            await eventually_async(lambda: b'"mine"' in heard.read_bytes())
            mine = [line for line in heard.read_text().splitlines() if '"mine"' in line]
            assert json.loads(mine[-1])["error"]["code"] == -32601

    run(converse())


def test_notifications_of_any_kind_and_at_any_time_do_no_harm(tmp_path: Path) -> None:
    """B29: unknown ones, progress for nobody, farewells to nothing, changes that are none."""
    told: list[tuple[str, Any]] = [
        ("notifications/unheard/of", {"a": 1}),
        ("notifications/progress", {"progressToken": 999_999, "progress": 1}),
        ("notifications/progress", {"progressToken": "text", "progress": 1}),
        ("notifications/cancelled", {"requestId": 1}),
        ("notifications/cancelled", {}),
        ("notifications/resources/updated", {}),
        ("notifications/resources/updated", {"uri": 7}),
        ("notifications/message", {"level": "nonsense", "data": None}),
        ("notifications/initialized", {}),
        ("tools/call", {"name": "echo"}),
    ]

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*ODD)}) as it:
            await it.ready()
            async with it.modern() as modern, it.legacy() as legacy:
                for client in (modern, legacy):
                    for method, params in told:
                        answer = await client.call(
                            "it__notify",
                            {"method": method, "params": params},
                            _meta={"progressToken": "p"},
                        )
                        assert answer.text == "sent", method
            assert not [entry for entry in it.log if "crashed" in entry["event"]]

    run(converse())


def test_ids_towards_a_server_are_never_used_again(tmp_path: Path) -> None:
    heard = tmp_path / "heard"

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*ODD, "--record", heard, protocol="legacy")}) as it:
            await it.ready()
            async with it.modern() as client:
                await asyncio.gather(*(client.call("it__echo", {"n": n}) for n in range(50)))
            messages = [json.loads(line) for line in heard.read_text().splitlines()]
            used = [m["id"] for m in messages if m.get("method") in ("tools/call", "tools/list")]
            assert len(used) == len(set(used)) == 51

    run(converse())


def _waiting(it: Gate) -> int:
    connection = it.server().main.connection
    return len(connection.link.calls()) if connection else 0


async def _odd(it: Gate, client: Any, shape: str, *, right: bool = True) -> Answer:
    async with asyncio.timeout(3):
        answer: Answer = await client.call("it__odd", {"shape": shape, "right": right})
        return answer
