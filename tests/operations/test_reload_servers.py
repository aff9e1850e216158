"""A configuration changes while calls run: who keeps its process, who gets another, and when."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil

from tests.kit.fakes import fake
from tests.kit.http import Modern
from tests.kit.waiting import eventually_async, run
from tests.operations.changing import Changing, changing, tool_names, who

OTHER = {"env": {"MODE": "other"}}
ONE_ERA = {"protocol": "modern"}
"""Nothing has to be found out, so there is one process of a server and no more."""


async def under_way(it: Changing, server: str) -> None:
    """Return once a call is with this server."""
    await eventually_async(lambda: it.gate.server(server).in_flight, what=f"a call at {server}")


def processes(*marks: str) -> int:
    """How many processes run whose command line holds all of these words."""
    found = 0
    for each in psutil.process_iter(["cmdline", "status"]):
        words = each.info["cmdline"] or []
        if each.info["status"] != psutil.STATUS_ZOMBIE and all(mark in words for mark in marks):
            found += 1
    return found


def test_what_did_not_change_keeps_its_process_and_its_calls(tmp_path: Path) -> None:
    async def conversation() -> None:
        servers = {"a": fake(), "b": fake()}
        async with changing(tmp_path, servers) as it, it.gate.modern() as client:
            before = await who(client, "a")
            async with asyncio.TaskGroup() as tasks:
                call = tasks.create_task(client.call("a__sleep", {"ms": 1000}))
                await under_way(it, "a")
                told = await it.change_server("b", fake(**OTHER))
                await it.gate.ready()
                changed = await client.call("b__env", {"names": ["MODE"]})

            assert told["restarted"] == ["b"]
            assert call.result().text == "slept 1000 ms"
            assert (await who(client, "a"))["pid"] == before["pid"]
            assert json.loads(changed.text) == {"MODE": "other"}

    run(conversation())


def test_a_changed_server_first_ends_its_calls_and_the_next_call_waits(tmp_path: Path) -> None:
    async def conversation() -> None:
        starts = tmp_path / "starts"
        mark = f"--starts={starts}"
        most = 0

        async def count() -> None:
            nonlocal most
            while True:
                most = max(most, processes(mark))
                await asyncio.sleep(0.02)

        async with (
            changing(tmp_path, {"a": fake(mark, **ONE_ERA)}) as it,
            it.gate.modern() as client,
        ):
            before = await who(client, "a")
            async with asyncio.TaskGroup() as tasks:
                counting = tasks.create_task(count())
                running = tasks.create_task(client.call("a__sleep", {"ms": 1500}))
                await under_way(it, "a")
                await it.change_server("a", fake(mark, **ONE_ERA, **OTHER))
                waiting = tasks.create_task(who(client, "a"))
                listed = await tool_names(client)
                since = datetime.fromisoformat((await it.gate.report("a"))["since"])
                assert datetime.now(UTC) - since < timedelta(minutes=1)
                await running
                after = await waiting
                counting.cancel()

            assert "a__sleep" in listed  # what it offered stays on offer meanwhile
            assert running.result().text == "slept 1500 ms"
            assert after["pid"] != before["pid"]
            assert not psutil.pid_exists(before["pid"])
            assert most == 1

    run(conversation())


def test_changes_upon_changes_leave_one_process_and_lose_no_call(tmp_path: Path) -> None:
    async def conversation() -> None:
        mark = f"--starts={tmp_path / 'starts'}"
        async with (
            changing(tmp_path, {"a": fake(mark, **ONE_ERA)}) as it,
            it.gate.modern() as client,
        ):
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(client.call("a__sleep", {"ms": 5000}))
                await under_way(it, "a")
                calls = []
                for number in range(5):
                    await it.change_server("a", fake(mark, **ONE_ERA, env={"MODE": str(number)}))
                    calls.append(tasks.create_task(client.call("a__env", {"names": ["MODE"]})))
                assert processes(mark) == 1

            assert running.result().text == "slept 5000 ms"
            assert [json.loads(call.result().text) for call in calls] == [{"MODE": "4"}] * 5
            assert len((tmp_path / "starts").read_text().split()) == 2
            assert not it.gate.gateway.fleet.succession.leaving
            assert len(it.gate.gateway.assembly.places.yielding) == 1

    run(conversation())


def test_a_server_removed_and_named_again_waits_for_its_former_self(tmp_path: Path) -> None:
    async def conversation() -> None:
        mark = f"--starts={tmp_path / 'starts'}"
        servers = {"a": fake(mark, **ONE_ERA), "b": fake()}
        async with changing(tmp_path, servers) as it, it.gate.modern() as client:
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(client.call("a__sleep", {"ms": 1000}))
                await under_way(it, "a")
                removed = await it.change(servers={"b": fake()})
                gone = await client.call("a__whoami")
                added = await it.change(servers={"b": fake(), "a": servers["a"]})
                again = tasks.create_task(who(client, "a"))
                await asyncio.sleep(0)
                assert processes(mark) == 1

            assert (removed["removed"], added["added"]) == (["a"], ["a"])
            assert gone.error["code"] == -32602
            assert running.result().text == "slept 1000 ms"
            assert again.result()["calls"] == 1

    run(conversation())


def test_a_call_that_waits_for_a_server_that_is_removed_is_told_so(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with changing(tmp_path, {"a": fake()}) as it, it.gate.modern() as client:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(client.call("a__sleep", {"ms": 4000}))
                await under_way(it, "a")
                await it.change_server("a", fake(**OTHER))
                waiting = tasks.create_task(client.call("a__whoami"))
                await under_way(it, "a")
                await it.change(servers={})

            told = waiting.result().result
            assert told["isError"]
            assert "no longer configured" in told["content"][0]["text"]

    run(conversation())


def test_servers_come_go_move_and_change_their_names_at_once(tmp_path: Path) -> None:
    async def conversation() -> None:
        a, b, c = (fake("--only", "whoami", "--name", name) for name in "abc")
        async with changing(tmp_path, {"a": a, "b": b}) as it, it.gate.modern() as client:
            pids = {name: (await who(client, name))["pid"] for name in "ab"}

            told = await it.change(servers={"c": c, "renamed": a, "b": b})
            await it.gate.ready()

            assert (told["added"], told["removed"]) == (["c", "renamed"], ["a"])
            assert not told["restarted"]
            assert await tool_names(client) == ["c__whoami", "renamed__whoami", "b__whoami"]
            assert (await who(client, "b"))["pid"] == pids["b"]
            await eventually_async(lambda: not psutil.pid_exists(pids["a"]))
            assert list(await it.gate.reports()) == ["c", "renamed", "b"]

    run(conversation())


def test_a_disabled_server_stops_and_an_enabled_one_starts(tmp_path: Path) -> None:
    async def conversation() -> None:
        servers = {"a": fake("--only", "echo")}
        async with changing(tmp_path, servers) as it, it.gate.modern() as client:
            await it.change_server("a", fake("--only", "echo", disabled=True))
            assert await tool_names(client) == []
            assert (await it.gate.report("a"))["state"] == "disabled"

            await it.change_server("a", fake("--only", "echo"))
            await it.gate.ready()
            assert await tool_names(client) == ["a__echo"]

    run(conversation())


def test_another_prefix_renames_and_restarts_nothing(tmp_path: Path) -> None:
    async def conversation() -> None:
        server = fake("--only", "whoami")
        async with changing(tmp_path, {"a": server}) as it, it.gate.modern() as client:
            before = await who(client, "a")

            told = await it.change_server("a", {**server, "prefix": "z", "queue": 3})

            assert not told["restarted"]
            assert await tool_names(client) == ["z__whoami"]
            assert (await who(client, "z"))["pid"] == before["pid"]
            assert (await it.change(names={"longest": 16}))["ok"]

    run(conversation())


def test_the_content_of_an_env_file_or_of_a_secret_counts_as_the_configuration(
    tmp_path: Path,
) -> None:
    async def conversation() -> None:
        (tmp_path / "it.env").write_text("MODE=one\n")
        (tmp_path / "secret").write_text("s1")
        servers = {
            "a": fake(env_file="it.env"),
            "b": fake(env={"MODE": "${file:secret}"}),
            "c": fake(),
        }
        async with changing(tmp_path, servers) as it, it.gate.modern() as client:
            assert (await it.reload())[1]["restarted"] == []

            (tmp_path / "it.env").write_text("MODE=two\n")
            assert (await it.write("{"))["ok"] is False  # a bad file in between loses nothing
            assert (await it.change())["restarted"] == ["a"]
            (tmp_path / "secret").write_text("s2")
            assert (await it.reload())[1]["restarted"] == ["b"]
            await it.gate.ready()

            for name, mode in (("a", "two"), ("b", "s2")):
                told = await client.call(f"{name}__env", {"names": ["MODE"]})
                assert json.loads(told.text) == {"MODE": mode}
            assert (await it.reload())[1]["restarted"] == []

    run(conversation())


def test_a_server_that_was_given_up_is_tried_again_by_a_reload(tmp_path: Path) -> None:
    async def conversation() -> None:
        program = tmp_path / "program"
        servers: dict[str, Any] = {"a": {"command": str(program), **_arguments()}}
        async with changing(tmp_path, {"b": fake()}) as it:
            await it.change(servers=servers)
            await it.gate.becomes("failed", "a")

            program.symlink_to(fake()["command"])
            assert (await it.reload())[1]["restarted"] == []
            await it.gate.becomes("ready", "a")

    run(conversation())


def _arguments() -> dict[str, Any]:
    return {"args": fake()["args"], "env": {"PYTHONHOME": ""}}


def test_the_processes_of_single_clients_go_before_the_next_server_comes(tmp_path: Path) -> None:
    async def conversation() -> None:
        mark = f"--starts={tmp_path / 'starts'}"
        server = fake(mark, isolation="session")
        async with changing(tmp_path, {"a": server}) as it, it.gate.legacy() as client:
            first = await who(client, "a")
            assert processes(mark) == 2  # the shared one, and this client's

            await it.change_server("a", {**server, **OTHER})
            await it.gate.ready()
            second = await who(client, "a")

            assert second["pid"] != first["pid"]
            assert not psutil.pid_exists(first["pid"])

    run(conversation())


def test_a_call_that_waits_for_its_client_goes_on_where_it_began(tmp_path: Path) -> None:
    question = {
        "method": "elicitation/create",
        "params": {"message": "well?", "requestedSchema": {"type": "object", "properties": {}}},
    }

    async def conversation() -> None:
        server = fake("--era", "legacy")
        async with changing(tmp_path, {"a": server}) as it, it.gate.modern() as client:
            client.envelope.capabilities = {"elicitation": {"form": {}}}
            asked = (await client.call("a__ask", question)).result
            assert asked["resultType"] == "input_required"

            await it.change_server("a", {**server, **OTHER})
            (key,) = asked["inputRequests"]
            answers = {key: {"action": "accept", "content": {}}}
            told = await client.call(
                "a__ask", question, inputResponses=answers, requestState=asked["requestState"]
            )

            assert json.loads(told.text)["result"]["action"] == "accept", told.text
            await it.gate.becomes("ready", "a")
            assert len(it.gate.said("server.started")) == 2

    run(conversation())


def test_a_gateway_that_stops_does_not_wait_for_who_was_to_be_replaced(tmp_path: Path) -> None:
    async def conversation() -> None:
        limits = {"drain": "100ms"}
        async with changing(tmp_path, {"a": fake(**ONE_ERA)}, limits=limits) as it:
            async with Modern.to(it.gate.url) as client, asyncio.TaskGroup() as tasks:
                hanging = tasks.create_task(client.call("a__hang"))
                await under_way(it, "a")
                await it.change_server("a", fake(**ONE_ERA, **OTHER))
                async with asyncio.timeout(10):
                    await it.gate.gateway.stop()
                answer = await hanging
            assert answer.status == 503
            assert len(it.gate.said("process.started")) == 1
            late = await it.reloader.reload()
            assert (late.ok, late.error) == (False, "The gateway is stopping")

    run(conversation())
