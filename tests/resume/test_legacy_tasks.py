"""Tasks of 2025-11-25: legacy client, legacy server.

Source: 2025-11-25, basic/utilities/tasks.
"""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conversations.talking import Gate, opened_gate
from tests.kit.http import Answer, Legacy, Modern
from tests.kit.processes import words_of
from tests.kit.waiting import eventually_async, run
from tests.resume.breaking import session_of

TASKER = Path(__file__).with_name("tasker.py")
RELATED = "io.modelcontextprotocol/related-task"
TOKENS = {"ann": "ann-token-0123456789", "bob": "bob-token-0123456789"}
PROTOCOL = {"both": "auto"}


def tasker(era: str, *record: str, **keys: Any) -> dict[str, Any]:
    words = ["-S", str(TASKER), era, *record]
    return {"command": sys.executable, "args": words, "protocol": PROTOCOL.get(era, era), **keys}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("tasks")
    with opened_gate(folder, {"slow": tasker("legacy")}) as gate:
        gate.gateway.wait_tools("slow__work")
        yield gate


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("guarded")
    tokens = [
        {"name": name, "sha256": hashlib.sha256(token.encode()).hexdigest()}
        for name, token in TOKENS.items()
    ]
    with opened_gate(folder, {"slow": tasker("legacy")}, auth={"tokens": tokens}) as gate:
        yield gate


async def begun(client: Legacy, **arguments: Any) -> str:
    """The id of a new task."""
    answer = await client.call("slow__work", arguments, task={"ttl": 60000})
    return str(answer.result["task"]["taskId"])


async def about(client: Legacy, method: str, task: str) -> Answer:
    return await client.request(f"tasks/{method}", {"taskId": task})


async def until(client: Legacy, task: str, status: str) -> None:
    async def reached() -> bool:
        return bool((await about(client, "get", task)).result["status"] == status)

    await eventually_async(reached)


def test_tasks_are_offered_where_a_server_has_them(tasks: Gate) -> None:
    async def converse() -> dict[str, Any]:
        async with Legacy.to(tasks.url) as client:
            welcome: dict[str, Any] = await client.initialize()
            return welcome["capabilities"]["tasks"]  # type: ignore[no-any-return]

    offered = run(converse())

    assert offered == {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_they_are_not_offered_to_revisions_without_them(tasks: Gate, revision: str) -> None:
    async def converse() -> dict[str, Any]:
        async with Legacy.to(tasks.url) as client:
            return await client.initialize(revision)

    assert "tasks" not in run(converse())["capabilities"]


def test_nor_where_no_server_has_them(gate: Gate) -> None:
    async def converse() -> dict[str, Any]:
        async with Legacy.to(gate.url) as client:
            return await client.initialize()

    assert "tasks" not in run(converse())["capabilities"]


def test_a_call_becomes_a_task_whose_result_is_fetched_under_an_id_of_ours(tasks: Gate) -> None:
    async def converse() -> list[Any]:
        async with session_of(tasks.url) as client:
            answer = await client.call("slow__work", {"ms": 200}, task={"ttl": 60000})
            task = answer.result["task"]
            state = (await about(client, "get", task["taskId"])).result
            result = (await about(client, "result", task["taskId"])).result
            await until(client, task["taskId"], "completed")
            return [task, state, result]

    task, state, result = run(converse())

    assert task["taskId"].startswith("slow~")
    assert (task["status"], task["ttl"], task["pollInterval"]) == ("working", 60000, 50)
    assert state["taskId"] == task["taskId"]
    assert "done for nobody" in result["content"][0]["text"]
    assert result["_meta"][RELATED] == {"taskId": task["taskId"]}


def test_a_task_that_asks_does_so_while_its_result_is_waited_for(tasks: Gate) -> None:
    async def converse() -> list[Any]:
        async with Legacy.to(tasks.url) as client:
            await client.initialize(capabilities={"elicitation": {}})
            task = await begun(client, ms=50, ask=True)
            await until(client, task, "input_required")
            message = client.message("tasks/result", {"taskId": task})
            async with client.opened(message) as stream:
                question = await stream.message()
                answer = {"action": "accept", "content": {"name": "Ada"}}
                await client.respond(question["id"], answer)
                return [task, question, await stream.message()]

    task, question, answered = run(converse())

    assert question["method"] == "elicitation/create"
    assert question["params"]["_meta"][RELATED] == {"taskId": task}
    assert "done for Ada" in answered["result"]["content"][0]["text"]


def test_a_task_can_be_cancelled(tasks: Gate) -> None:
    async def converse() -> list[Any]:
        async with session_of(tasks.url) as client:
            task = await begun(client, ms=60000)
            cancelled = (await about(client, "cancel", task)).result
            return [task, cancelled, (await about(client, "result", task)).error]

    task, cancelled, error = run(converse())

    assert (cancelled["taskId"], cancelled["status"]) == (task, "cancelled")
    assert error["code"] == -32603


def test_its_owner_is_told_how_it_is_and_nobody_else(tasks: Gate) -> None:
    async def converse() -> list[Any]:
        async with (
            session_of(tasks.url) as mine,
            session_of(tasks.url) as other,
            mine.listening() as hears,
            other.listening() as silent,
        ):
            task = await begun(mine, ms=100)
            told = await hears.message()
            theirs = await begun(other, ms=100)
            return [task, told, theirs, await silent.message()]

    task, told, theirs, other = run(converse())

    assert told["method"] == "notifications/tasks/status"
    assert (told["params"]["taskId"], told["params"]["status"]) == (task, "completed")
    assert other["params"]["taskId"] == theirs


def test_a_list_shows_a_client_its_own_tasks_alone(tasks: Gate) -> None:
    async def converse() -> list[Any]:
        async with session_of(tasks.url) as mine, session_of(tasks.url) as other:
            first, second = await begun(mine, ms=10), await begun(mine, ms=60000)
            await begun(other, ms=10)
            await until(mine, first, "completed")
            listed = (await mine.request("tasks/list")).result["tasks"]
            await about(mine, "cancel", second)
            return [{first: "completed", second: "working"}, listed]

    expected, listed = run(converse())

    assert {task["taskId"]: task["status"] for task in listed} == expected


@pytest.mark.parametrize("method", ["get", "result", "cancel"])
def test_the_task_of_another_principal_is_as_unknown_as_any(guarded: Gate, method: str) -> None:
    async def converse() -> list[Any]:
        async with session_of(guarded.url, headers=bearer("ann")) as ann:
            await eventually_async(lambda: lists(ann, "slow__work"))
            task = await begun(ann, ms=60000)
            async with session_of(guarded.url, headers=bearer("bob")) as bob:
                theirs = (await about(bob, method, task)).error
                nobodys = (await about(bob, method, "slow~made-up")).error
                listed = (await bob.request("tasks/list")).result["tasks"]
            async with session_of(guarded.url, headers=bearer("ann")) as again:
                mine = (await about(again, "get", task)).result
                await about(again, "cancel", task)
            return [theirs, nobodys, listed, mine["status"]]

    theirs, nobodys, listed, mine = run(converse())

    assert theirs == nobodys
    assert theirs["code"] == -32602
    assert listed == []
    assert mine == "working", "another session of the same principal may go on with it"


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[name]}"}


async def lists(client: Legacy, name: str) -> bool:
    tools = (await client.request("tools/list")).result["tools"]
    return name in [tool["name"] for tool in tools]


def test_a_server_that_makes_no_tasks_never_sees_the_wish_for_one(gate: Gate) -> None:
    async def converse() -> Answer:
        async with session_of(gate.url) as client:
            return await client.call("old__echo", {"text": "plain"}, task={"ttl": 1})

    since = gate.mark()
    answer = run(converse())

    assert answer.text == "plain"
    assert "task" not in since.heard("old", "tools/call")[0]["params"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_tool_that_runs_as_a_task_alone_is_waited_for_if_the_client_knows_none(
    tasks: Gate, era: str
) -> None:
    """protocol A17. 2026-07-28 has no `params.task`: it is ignored."""

    async def converse() -> list[Answer]:
        if era == "legacy":
            async with session_of(tasks.url, "2025-06-18") as client:
                return [await client.call("slow__only", {"ms": 100})]
        async with Modern.to(tasks.url) as modern:
            plain = await modern.call("slow__only", {"ms": 100})
            return [plain, await modern.call("slow__only", {"ms": 100}, task={"ttl": 1})]

    assert all("done for nobody" in answer.text for answer in run(converse()))


def test_such_a_tool_is_cancelled_with_the_call(tasks: Gate) -> None:
    async def converse() -> str:
        async with session_of(tasks.url) as client:
            message = client.message("tools/call", {"name": "slow__only", "arguments": {"ms": 1}})
            await client.post(message)
            lasting = {"name": "slow__only", "arguments": {"ms": 60000}}
            message = client.message("tools/call", lasting)
            async with client.opened(message) as stream:
                await client.notify("notifications/cancelled", {"requestId": message["id"]})
                answered = await stream.message()
            return str(answered["error"]["message"])

    assert "cancelled" in run(converse())


def test_such_a_tool_may_ask_a_modern_client_too(tasks: Gate) -> None:
    async def converse() -> Answer:
        async with Modern.to(tasks.url) as client:
            client.envelope.capabilities = {"elicitation": {"form": {}}}
            asked = (await client.call("slow__only", {"ms": 10, "ask": True})).result
            (key,) = asked["inputRequests"]
            given = {key: {"action": "accept", "content": {"name": "Ada"}}}
            state = asked["requestState"]
            return await client.call(
                "slow__only", {"ms": 10, "ask": True}, inputResponses=given, requestState=state
            )

    assert "done for Ada" in run(converse()).text


def test_a_task_dies_with_its_server(tmp_path: Path) -> None:
    async def converse(gate: Gate) -> Any:
        async with session_of(gate.url) as client:
            task = await begun(client, ms=60000)
            old = gate.gateway.server_pids()
            for child in gate.gateway.program.descendants():
                if str(TASKER) in words_of(child):
                    child.kill()
            await eventually_async(lambda: gate.gateway.server_pids() != old)
            return (await about(client, "get", task)).error

    with opened_gate(tmp_path, {"slow": tasker("legacy")}) as gate:
        gate.gateway.wait_tools("slow__work")
        assert run(converse(gate))["data"]["kind"] == "unavailable"


def test_every_task_leaves_a_record_and_so_does_its_fetch(tasks: Gate) -> None:
    async def converse() -> None:
        async with session_of(tasks.url) as client:
            task = await begun(client, ms=10)
            await about(client, "get", task)
            await about(client, "result", task)

    since = tasks.mark()
    run(converse())
    records = since.records(number=2)

    assert [(each["name"], each["outcome"]) for each in records] == [("slow__work", "ok")] * 2
