"""The extension `io.modelcontextprotocol/tasks`: modern client, modern server.

Source: SEP-2663 (ext-tasks); protocol C7.
"""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conversations.talking import Gate, opened_gate
from tests.kit.http import Answer, Legacy, Modern
from tests.kit.waiting import eventually_async, run

TASKER = Path(__file__).with_name("tasker.py")
EXTENSION = "io.modelcontextprotocol/tasks"
DECLARED: dict[str, Any] = {
    "extensions": {EXTENSION: {}, "example.org/other": {}},
    "elicitation": {"form": {}},
}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("tasks")
    slow = {"command": sys.executable, "args": ["-S", str(TASKER), "modern"], "protocol": "modern"}
    with opened_gate(folder, {"slow": slow}) as gate:
        gate.gateway.wait_tools("slow__work")
        yield gate


@asynccontextmanager
async def declaring(url: str) -> AsyncIterator[Modern]:
    async with Modern.to(url) as client:
        client.envelope.capabilities = DECLARED
        yield client


async def begun(client: Modern, **arguments: Any) -> str:
    return str((await client.call("slow__work", arguments)).result["taskId"])


async def about(client: Modern, method: str, task: str, **params: Any) -> Answer:
    return await client.request(f"tasks/{method}", {"taskId": task, **params})


async def state_of(client: Modern, task: str, status: str) -> dict[str, Any]:
    """What `tasks/get` says once the task has this status."""
    seen: dict[str, Any] = {}

    async def reached() -> bool:
        seen.update((await about(client, "get", task)).result)
        return bool(seen["status"] == status)

    await eventually_async(reached)
    return seen


def test_the_extension_is_offered_where_a_server_has_it(tasks: Gate, gate: Gate) -> None:
    async def offered(url: str) -> Any:
        async with Modern.to(url) as client:
            discovered = (await client.request("server/discover")).result
            return discovered["capabilities"].get("extensions")

    assert run(offered(tasks.url)) == {EXTENSION: {}}
    assert run(offered(gate.url)) is None


def test_a_client_that_declared_it_gets_a_task_under_an_id_of_ours(tasks: Gate) -> None:
    async def converse() -> list[Any]:
        async with declaring(tasks.url) as client:
            begun = (await client.call("slow__work", {"ms": 50})).result
            return [begun, await state_of(client, begun["taskId"], "completed")]

    begun, state = run(converse())

    assert begun["resultType"] == "task"
    assert begun["taskId"].startswith("slow~")
    assert (begun["status"], begun["ttlMs"], begun["pollIntervalMs"]) == ("working", 60000, 50)
    assert state["resultType"] == "complete"
    assert state["taskId"] == begun["taskId"]
    assert "done for nobody" in state["result"]["content"][0]["text"]
    assert begun["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "onegate"


def test_a_client_that_did_not_is_answered_plainly(tasks: Gate) -> None:
    async def converse() -> list[Answer]:
        async with Modern.to(tasks.url) as modern, Legacy.to(tasks.url) as legacy:
            await legacy.initialize()
            return [
                await modern.call("slow__work", {"ms": 10}),
                await legacy.call("slow__work", {"ms": 10}, task={"ttl": 1}),
            ]

    assert all("done for nobody" in answer.text for answer in run(converse()))


def test_a_task_that_needs_input_gets_it_by_an_update(tasks: Gate) -> None:
    async def converse() -> list[Any]:
        async with declaring(tasks.url) as client:
            task = await begun(client, ms=10, ask=True)
            asked = await state_of(client, task, "input_required")
            given = {"who": {"action": "accept", "content": {"name": "Ada"}}}
            answered = await about(client, "update", task, inputResponses=given)
            return [asked, answered.result, await state_of(client, task, "completed")]

    asked, updated, done = run(converse())

    assert asked["inputRequests"]["who"]["method"] == "elicitation/create"
    assert updated["resultType"] == "complete"
    assert "done for Ada" in done["result"]["content"][0]["text"]


def test_a_task_can_be_cancelled(tasks: Gate) -> None:
    async def converse() -> Any:
        async with declaring(tasks.url) as client:
            task = await begun(client, ms=60000)
            await about(client, "cancel", task)
            return await state_of(client, task, "cancelled")

    assert run(converse())["status"] == "cancelled"


def test_a_listener_is_told_of_the_tasks_it_named_and_of_no_others(tasks: Gate) -> None:
    async def converse() -> list[Any]:
        async with declaring(tasks.url) as client:
            other = await begun(client, ms=300)
            task = await begun(client, ms=600)
            async with client.listening(taskIds=[task, "slow~made-up"]) as stream:
                told = await stream.message()
            await about(client, "cancel", other)
            return [task, told]

    task, told = run(converse())

    assert told["method"] == "notifications/tasks"
    assert (told["params"]["taskId"], told["params"]["status"]) == (task, "completed")
    assert "io.modelcontextprotocol/subscriptionId" in told["params"]["_meta"]


def test_a_listener_learns_which_tasks_it_will_hear_of(tasks: Gate) -> None:
    async def converse() -> list[Any]:
        async with declaring(tasks.url) as client:
            task = await begun(client, ms=10)
            wanted = {"notifications": {"taskIds": ["slow~made-up", task]}}
            async with client.streaming("subscriptions/listen", wanted) as stream:
                return [task, (await stream.message())["params"]["notifications"]]

    task, honoured = run(converse())

    assert honoured == {"taskIds": [task]}


@pytest.mark.parametrize("method", ["get", "update", "cancel"])
def test_whoever_did_not_declare_it_is_told_what_is_missing(tasks: Gate, method: str) -> None:
    async def converse() -> list[Answer]:
        async with declaring(tasks.url) as client:
            task = await begun(client, ms=10)
            client.envelope.capabilities = {}
            refused = [await about(client, method, task, inputResponses={})]
            wanted = {"notifications": {"taskIds": [task]}}
            return [*refused, await client.request("subscriptions/listen", wanted)]

    for answer in run(converse()):
        assert (answer.status, answer.error["code"]) == (400, -32021)
        assert answer.error["data"]["requiredCapabilities"] == {"extensions": {EXTENSION: {}}}


@pytest.mark.parametrize("method", ["get", "update", "cancel"])
def test_a_task_nobody_knows_is_unknown(tasks: Gate, method: str) -> None:
    async def converse() -> Answer:
        async with declaring(tasks.url) as client:
            return await about(client, method, "slow~t1", inputResponses={})

    assert run(converse()).error["code"] == -32602


@pytest.mark.parametrize("method", ["result", "list"])
def test_what_the_extension_does_not_have_is_an_unknown_method(tasks: Gate, method: str) -> None:
    async def converse() -> Answer:
        async with declaring(tasks.url) as client:
            return await about(client, method, "x")

    answer = run(converse())

    assert (answer.status, answer.error["code"]) == (404, -32601)


def test_the_name_header_must_be_the_task(tasks: Gate) -> None:
    async def converse() -> list[Any]:
        async with declaring(tasks.url) as client:
            task = await begun(client, ms=10)
            message = client.message("tasks/get", {"taskId": task})
            told = client.routing(message)
            wrong = await client.post(message, {**told, "Mcp-Name": "slow~other"})
            del told["Mcp-Name"]
            return [wrong.error["code"], (await client.post(message, told)).error["code"]]

    assert run(converse()) == [-32020, -32020]


def test_a_task_of_one_era_is_unknown_in_the_other(tasks: Gate) -> None:
    async def converse() -> Any:
        async with declaring(tasks.url) as client, Legacy.to(tasks.url) as legacy:
            task = await begun(client, ms=10)
            await legacy.initialize()
            return (await legacy.request("tasks/get", {"taskId": task})).error["code"]

    assert run(converse()) == -32602
