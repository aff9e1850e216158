"""What becomes of calls, lists and clients when a server dies, and how it comes back."""

import asyncio
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from gateway.downstream.backoff import RestartPolicy
from tests.kit.fakes import fake
from tests.kit.http import Answer
from tests.kit.waiting import eventually_async, run
from tests.servers.gate import BRISK, PATIENT, alive, failure, gate, model_text, starts

TOOLS = ("--only", "echo,crash,hang,sleep,whoami,spawn,add_tool")
SECRET = "hunter2-is-not-a-password"


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize(
    ("how", "data"),
    [
        ({"code": 3}, {"exit_code": 3, "signal": None}),
        ({"signal": "SIGSEGV"}, {"exit_code": None, "signal": "SIGSEGV"}),
    ],
)
def test_calls_in_progress_fail_at_once_and_say_how_the_server_died(
    tmp_path: Path, era: str, how: dict[str, Any], data: dict[str, Any]
) -> None:
    """With its last words, of which neither escapes nor secrets are repeated."""
    server = fake(*TOOLS, env={"API_TOKEN": SECRET}, protocol=era)
    words = f"first\nsecond \x1b[31mred\x1b[0m\nusing {SECRET}\u202e\nlast"

    async def converse() -> None:
        async with gate(tmp_path, {"it": server}, policy=PATIENT) as it:
            await it.ready()
            async with it.modern() as client:
                async with asyncio.TaskGroup() as tasks:
                    hung = [tasks.create_task(client.call("it__hang")) for _ in range(3)]
                    await eventually_async(lambda: it.server().in_flight == 3)
                    began = time.monotonic()
                    fell = await client.call("it__crash", {"stderr": words, **how})
                assert time.monotonic() - began < 2
                for answer in [fell, *(call.result() for call in hung)]:
                    told, text = failure(answer), model_text(answer)
                    assert told["kind"] == "unavailable"
                    assert told["server"] == "it"
                    assert told["retryable"] is False, "it may have done its work"
                    assert {key: told[key] for key in data} == data
                    assert "The server it " in text
                    assert "second red\n" in text
                    assert text.endswith("using [redacted]\nlast")
                    assert "\x1b" not in text
            assert SECRET not in json.dumps(it.log, default=str)
            assert SECRET not in (await it.page("/api/servers"))[1]

    run(converse())


def test_a_crash_is_noticed_though_a_grandchild_holds_the_pipes(tmp_path: Path) -> None:
    async def converse() -> None:
        server = fake(*TOOLS, "--grandchild", protocol="legacy")
        async with gate(tmp_path, {"it": server}) as it:
            await it.ready()
            async with it.modern() as client:
                family = psutil.Process((await _me(client))["pid"]).children()
                answer = await client.call("it__crash")
                assert failure(answer)["exit_code"] == 1
                assert await _me(client)
                await eventually_async(lambda: alive([each.pid for each in family]) == [])

    run(converse())


def test_a_restarted_server_is_the_same_to_its_clients(tmp_path: Path) -> None:
    """Its tools were there all the time, nobody is told of a change, calls work again."""

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*TOOLS)}) as it:
            await it.ready()
            async with it.modern() as client, client.listening(toolsListChanged=True) as stream:
                before = await client.request("tools/list")
                for _ in range(3):
                    pid = (await _me(client))["pid"]
                    await client.call("it__crash")
                    assert (await client.request("tools/list")).result == before.result
                    assert (await _me(client))["pid"] != pid
                await client.call("it__add_tool", {"name": "news"})
                told = await stream.message()  # the first word on this stream
                assert told["method"] == "notifications/tools/list_changed"
                await eventually_async(lambda: it.server().main.connection)
                assert "it__news" in [t["name"] for t in await _tools(client)]
            assert (await it.report())["restarts"] == 3

    run(converse())


def test_killing_one_of_three_servers_leaves_the_lists_whole(tmp_path: Path) -> None:
    """B39, B44: what was listed is unavailable, never unknown."""
    servers = {name: fake(*TOOLS, protocol="legacy") for name in ("a", "b", "c")}

    async def converse() -> None:
        async with gate(tmp_path, servers, policy=PATIENT) as it:
            await it.ready()
            async with it.modern() as client:
                listed = await _tools(client)
                os.kill((await it.report("b"))["pids"][0], signal.SIGKILL)
                await it.becomes("waiting", "b")
                assert await _tools(client) == listed
                for name in ("a", "c"):
                    assert (await client.call(f"{name}__echo", {"text": name})).text == name
                dead = await client.call("b__echo")
                assert failure(dead)["state"] == "waiting"
                assert "was killed by SIGKILL" in model_text(dead)
                unknown = await client.call("b__no_such_tool")
                assert unknown.error["code"] == -32602

    run(converse())


def test_a_call_to_a_server_that_is_down_says_its_state_and_when_to_come_again(
    tmp_path: Path,
) -> None:
    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*TOOLS, protocol="modern")}, policy=PATIENT) as it:
            await it.ready()
            async with it.modern() as client:
                await client.call("it__crash", {"code": 4})
                await it.becomes("waiting")
                began = time.monotonic()
                answer = await client.call("it__echo")
                assert time.monotonic() - began < 1
                told = failure(answer)
                assert (told["kind"], told["state"]) == ("unavailable", "waiting")
                assert told["retryable"] is True, "it never saw this call"
                assert 10 < told["retry_after_s"] <= 30
                assert "is waiting: exited with code 4" in model_text(answer)
                assert "It is started again in " in model_text(answer)

    run(converse())


def test_a_call_waits_for_a_restart_that_is_near(tmp_path: Path) -> None:
    soon = RestartPolicy(first_wait_s=0.6)

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*TOOLS, protocol="modern")}, policy=soon) as it:
            await it.ready()
            async with it.modern() as client:
                pid = (await _me(client))["pid"]
                await client.call("it__crash")
                assert (await _me(client))["pid"] != pid

    run(converse())


def test_a_call_that_may_have_run_is_not_made_again(tmp_path: Path) -> None:
    """B63: whether it did its work nobody knows, so the client has to decide."""
    heard = tmp_path / "heard"

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*TOOLS, "--record", heard)}) as it:
            await it.ready()
            async with it.modern() as client:
                await client.call("it__crash")
                await _me(client)
            assert heard.read_text().count('"crash"') == 1

    run(converse())


def test_a_crash_loop_ends_in_a_visible_failure(tmp_path: Path) -> None:
    """B04: a good handshake each time, and then the end."""
    pids = tmp_path / "starts"
    server = fake(*TOOLS, "--exit-after-list", "--starts", pids, protocol="legacy")
    policy = RestartPolicy(first_wait_s=0.01, longest_wait_s=0.1)

    async def converse() -> None:
        async with gate(tmp_path, {"it": server}, policy=policy) as it:
            report = await it.becomes("failed")
            assert "exited with code 0" in report["last_error"]
            assert report["restarts"] == len(starts(pids)) == policy.exits_allowed + 1
            async with it.modern() as client:
                answer = await client.call("it__echo")
                assert failure(answer)["state"] == "failed"
                assert failure(answer)["retry_after_s"] > 100
            assert len(it.said("server.failed")) == 1
            assert alive(starts(pids)) == []

    run(converse())


@pytest.mark.parametrize(
    "flags", [("--exit-at-start", 1), ("--discover", "exit", "--initialize", "exit")]
)
def test_a_server_that_never_gets_anywhere_is_not_started_more_often_for_it(
    tmp_path: Path, flags: tuple[object, ...]
) -> None:
    """To find out its era takes two processes the first time, not each time."""
    pids = tmp_path / "starts"
    policy = RestartPolicy(first_wait_s=0.01, longest_wait_s=0.1)

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*flags, "--starts", pids)}, policy=policy) as it:
            await it.becomes("failed")
            assert len(starts(pids)) <= policy.exits_allowed + 1 + 2

    run(converse())


def test_a_server_that_was_ill_for_a_while_gets_well_by_itself(tmp_path: Path) -> None:
    """B41: five bad starts, and nobody had to do anything."""
    pids = tmp_path / "starts"

    async def converse() -> None:
        server = fake(*TOOLS, "--fail-first", 11, "--starts", pids)
        async with gate(tmp_path, {"it": server}, policy=BRISK) as it:
            await it.ready()
            async with it.modern() as client:
                assert (await client.call("it__echo", {"text": "well"})).text == "well"

    run(converse())


def test_forced_restarts_never_leave_two_of_a_kind(tmp_path: Path) -> None:
    """B08: killed as soon as it is up, several times; never are two alive at once."""
    pids = tmp_path / "starts"
    server = fake(*TOOLS, "--starts", pids, protocol="legacy")

    async def converse() -> None:
        async with gate(tmp_path, {"it": server}) as it:
            for _ in range(5):
                await it.ready()
                [running] = alive(starts(pids))
                os.kill(running, signal.SIGKILL)
                await eventually_async(lambda: it.server().main.connection is None)
            await it.ready()
            assert len(alive(starts(pids))) == 1

    run(converse())


def test_clients_that_come_and_go_start_no_process(tmp_path: Path) -> None:
    """B07: initialize, one call, gone, many times."""
    pids = tmp_path / "starts"

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*TOOLS, "--starts", pids)}) as it:
            await it.ready()
            for _ in range(30):
                async with it.legacy() as client:
                    await client.call("it__echo", {"text": "x"})
            assert len(starts(pids)) == 3, "one for each era, and the sibling it was found by"
            assert len(alive(starts(pids))) == 2
            zombies = [p for p in psutil.Process().children() if p.status() == "zombie"]
            assert zombies == []

    run(converse())


def test_a_server_that_dies_while_it_lists_is_never_called_ready(tmp_path: Path) -> None:
    program = tmp_path / "dies.py"
    program.write_text(DIES)
    section = {"command": "python3", "args": ["-S", str(program)], "protocol": "legacy"}

    async def converse() -> None:
        async with gate(tmp_path, {"it": section}, policy=PATIENT) as it:
            report = await it.becomes("waiting")
            assert "exited with code 5" in report["last_error"]
            assert it.said("server.started") == []

    run(converse())


async def _me(client: Any) -> dict[str, Any]:
    answer: Answer = await client.call("it__whoami")
    return dict(json.loads(answer.text))


async def _tools(client: Any) -> list[dict[str, Any]]:
    answer: Answer = await client.request("tools/list")
    return list(answer.result["tools"])


DIES = """
import json, sys

hello = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
print(json.dumps({"jsonrpc": "2.0", "id": json.loads(input())["id"], "result": hello}), flush=True)
input()
input()
sys.exit(5)
"""
