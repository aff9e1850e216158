"""Tasks of servers elsewhere, in both eras: they outlive requests, streams and connections.

Source: 2025-11-25, basic/utilities/tasks; SEP-2663 (ext-tasks); protocol A9, A17, C7.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.kit.http import Answer, Legacy, Modern
from tests.kit.waiting import eventually_async, run
from tests.remote.far import served
from tests.remote.tasking import EXTENSION, RELATED, Tasker
from tests.servers.gate import Gate, gate

DECLARED: dict[str, Any] = {"extensions": {EXTENSION: {}}, "elicitation": {"form": {}}}


@asynccontextmanager
async def tasks(folder: Path, era: str, **more: Any) -> AsyncIterator[tuple[Tasker, Gate]]:
    tasker = Tasker(era, **more)
    async with served(tasker.far), gate(folder, {"far": {"url": tasker.far.url}}) as it:
        await it.ready()
        yield tasker, it


async def begun(client: Legacy | Modern, **arguments: Any) -> str:
    wish = {"task": {"ttl": 60000}} if isinstance(client, Legacy) else {}
    result = (await client.call("far__work", arguments, **wish)).result
    return str(result["task"]["taskId"] if wish else result["taskId"])


async def about(client: Legacy | Modern, method: str, task: str, **params: Any) -> Answer:
    return await client.request(f"tasks/{method}", {"taskId": task, **params})


def cancelled(tasker: Tasker, id_: str = "t1") -> bool:
    return [seen.message["params"]["taskId"] for seen in tasker.far.posts("tasks/cancel")] == [id_]


# --- 2025-11-25 ---


def test_a_legacy_task_is_begun_looked_at_and_fetched_in_the_servers_session(
    tmp_path: Path,
) -> None:
    async def converse() -> None:
        async with tasks(tmp_path, "legacy") as (tasker, it), it.legacy() as client:
            assert client.initialized["capabilities"]["tasks"]
            task = await begun(client)
            assert task.startswith("far~")
            assert (await about(client, "get", task)).result["status"] == "working"
            listed = (await client.request("tasks/list")).result["tasks"]
            assert [each["taskId"] for each in listed] == [task]
            async with asyncio.TaskGroup() as group:
                fetching = group.create_task(about(client, "result", task))
                await eventually_async(lambda: tasker.far.posts("tasks/result"))
                await tasker.finish("t1")
            assert fetching.result().text == "t1 done"
            assert fetching.result().result["_meta"][RELATED] == {"taskId": task}
            for seen in tasker.far.posts("tasks/get") + tasker.far.posts("tasks/result"):
                assert seen.headers["Mcp-Session-Id"] == "s1"
                assert seen.message["params"]["taskId"] == "t1"

    run(converse())


def test_its_owner_hears_of_it_on_the_stream_of_the_session(tmp_path: Path) -> None:
    async def converse() -> None:
        async with (
            tasks(tmp_path, "legacy") as (tasker, it),
            it.legacy() as client,
            client.listening() as ear,
        ):
            await eventually_async(lambda: tasker.far.streams)
            task = await begun(client)
            await tasker.finish("t1")
            told = await ear.message()
            assert told["method"] == "notifications/tasks/status"
            assert told["params"]["taskId"] == task

    run(converse())


def test_it_asks_on_the_stream_on_which_its_result_is_waited_for(tmp_path: Path) -> None:
    async def converse() -> None:
        async with tasks(tmp_path, "legacy") as (_, it), Legacy.to(it.url) as client:
            await client.initialize(capabilities={"elicitation": {}})
            task = await begun(client, ask=True)
            async with client.opened(client.message("tasks/result", {"taskId": task})) as stream:
                question = await stream.message()
                assert question["params"]["_meta"][RELATED] == {"taskId": task}
                answer = {"action": "accept", "content": {"name": "Ada"}}
                await client.respond(question["id"], answer)
                done = await stream.message()
                assert done["result"]["content"][0]["text"] == "t1 done for Ada"

    run(converse())


def test_a_server_that_has_its_result_polled_is_polled(tmp_path: Path) -> None:
    """It closes the connection after an event to resume from."""

    async def converse() -> None:
        async with tasks(tmp_path, "legacy") as (tasker, it), it.legacy() as client:
            tasker.polls = True
            task = await begun(client)
            async with asyncio.TaskGroup() as group:
                fetching = group.create_task(about(client, "result", task))
                await eventually_async(
                    lambda: [get for get in tasker.far.gets() if "Last-Event-ID" in get.headers]
                )
                await tasker.finish("t1")
            assert fetching.result().text == "t1 done"
            assert len(tasker.far.posts("tasks/result")) == 1

    run(converse())


def test_a_legacy_task_outlives_the_session_it_was_begun_in(tmp_path: Path) -> None:
    """A server may forget the session and not the task, which has a time to live of its own."""

    async def converse() -> None:
        async with tasks(tmp_path, "legacy") as (tasker, it), it.legacy() as client:
            task = await begun(client)
            tasker.far.known.clear()
            await tasker.finish("t1")

            async def known() -> bool:
                answer = (await about(client, "get", task)).final
                return bool(answer.get("result", {}).get("status") == "completed")

            await eventually_async(known)
            assert (await about(client, "result", task)).text == "t1 done"
            assert tasker.far.posts("tasks/get")[-1].headers["Mcp-Session-Id"] != "s1"

    run(converse())


def test_a_client_that_leaves_ends_the_task_it_did_not_know_of(tmp_path: Path) -> None:
    async def converse() -> None:
        async with (
            tasks(tmp_path, "legacy") as (tasker, it),
            it.modern() as client,
            asyncio.TaskGroup() as group,
        ):
            waiting = group.create_task(client.call("far__only"))
            await eventually_async(lambda: tasker.far.posts("tasks/result"))
            waiting.cancel()
            await eventually_async(lambda: cancelled(tasker))

    run(converse())


def test_a_client_that_never_comes_back_ends_it_too_before_its_session_ends(tmp_path: Path) -> None:
    async def converse() -> None:
        async with tasks(tmp_path, "legacy") as (tasker, it), it.modern() as client:
            client.envelope.capabilities = {"elicitation": {"form": {}}}
            asked = (await client.call("far__only", {"ask": True})).result
            assert asked["resultType"] == "input_required"
            it.server("far").apart.parked.abandon(asked["requestState"])
            await eventually_async(lambda: cancelled(tasker))
            session = tasker.far.posts("tasks/cancel")[0].headers["Mcp-Session-Id"]
            await eventually_async(lambda: session not in tasker.far.known)

    run(converse())


# --- the extension ---


def test_a_modern_task_is_begun_looked_at_answered_and_cancelled_under_the_servers_own_id(
    tmp_path: Path,
) -> None:
    async def converse() -> None:
        async with tasks(tmp_path, "modern") as (tasker, it), it.modern() as client:
            client.envelope.capabilities = DECLARED
            task = await begun(client)
            assert task.startswith("far~")
            assert (await about(client, "get", task)).result["status"] == "working"
            given = {"who": {"action": "accept", "content": {"name": "Ada"}}}
            updated = await about(client, "update", task, inputResponses=given)
            assert updated.result["resultType"] == "complete"
            await about(client, "cancel", task)
            assert (await about(client, "get", task)).result["status"] == "cancelled"
            for method in ("get", "update", "cancel"):
                for seen in tasker.far.posts(f"tasks/{method}"):
                    assert seen.headers["Mcp-Name"] == "t1"
                    meta = seen.message["params"]["_meta"]
                    declared = meta["io.modelcontextprotocol/clientCapabilities"]
                    assert declared["extensions"] == {EXTENSION: {}}
            (answered,) = tasker.far.posts("tasks/update")
            assert answered.message["params"]["inputResponses"] == given

    run(converse())


def test_who_listens_for_a_task_elsewhere_is_told(tmp_path: Path) -> None:
    async def converse() -> None:
        async with tasks(tmp_path, "modern") as (tasker, it), it.modern() as client:
            client.envelope.capabilities = DECLARED
            task = await begun(client)
            async with client.listening(taskIds=[task]) as ear:
                await tasker.finish("t1")
                told = (await ear.message())["params"]
                assert (told["taskId"], told["status"]) == (task, "completed")

    run(converse())


def test_a_modern_task_outlives_the_connection_and_who_listens_still_hears_of_it(
    tmp_path: Path,
) -> None:
    """The server is away for a moment, and back under its address."""
    tasker = Tasker("modern")

    async def converse() -> None:
        async with AsyncExitStack() as server, AsyncExitStack() as rest:
            far = await server.enter_async_context(served(tasker.far))
            url = far.url
            it = await rest.enter_async_context(gate(tmp_path, {"far": {"url": url}}))
            await it.ready()
            client = await rest.enter_async_context(it.modern())
            client.envelope.capabilities = DECLARED
            task = await begun(client)
            ear = await rest.enter_async_context(client.listening(taskIds=[task]))
            first = it.server("far").main.connection
            await server.aclose()
            assert (await about(client, "get", task)).error["data"]["kind"] == "unavailable"
            await server.enter_async_context(served(far, int(url.rpartition(":")[2][:-4])))
            await eventually_async(lambda: it.server("far").main.connection not in (None, first))
            await eventually_async(lambda: follows(tasker, 2))
            await tasker.finish("t1")
            told = (await ear.message())["params"]
            assert (told["taskId"], told["status"]) == (task, "completed")
            assert (await about(client, "get", task)).result["status"] == "completed"
            await rest.aclose()

    run(converse())


def follows(tasker: Tasker, connections: int) -> bool:
    """Whether over its newest connection the gateway listens for the task."""
    if len(tasker.far.posts("server/discover")) < connections or not tasker.far.streams:
        return False
    newest = tasker.far.posts("subscriptions/listen")[-1].message["params"]["notifications"]
    return bool(newest.get("taskIds") == ["t1"])
