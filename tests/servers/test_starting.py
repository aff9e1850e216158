"""All servers start at once, and none waits for another; nor does any client."""

import re
import time
from pathlib import Path
from typing import Any

from tests.kit.fakes import fake
from tests.kit.http import Legacy
from tests.kit.waiting import eventually_async, run
from tests.servers.gate import (
    PATIENT,
    UP_WITHIN_S,
    failure,
    gate,
    model_text,
    remembered,
    scripted,
)

ECHO = ("--only", "echo")


def test_all_servers_start_at_the_same_time(tmp_path: Path) -> None:
    """Each is silent for a second: one after the other they would take six."""
    slow = fake(*ECHO, "--start-delay", 1, protocol="legacy")

    async def converse() -> None:
        async with gate(tmp_path, {f"s{n}": slow for n in range(6)}) as it:
            began = time.monotonic()
            await it.ready()
            assert time.monotonic() - began < 4

    run(converse())


def test_clients_are_served_at_once_and_told_when_a_late_server_comes(tmp_path: Path) -> None:
    servers = {"early": fake(*ECHO), "late": fake(*ECHO, "--start-delay", 1.5)}

    async def converse() -> None:
        async with gate(tmp_path, servers) as it:
            await it.ready("early")
            async with it.modern() as modern, it.legacy() as legacy:
                assert (await modern.call("early__echo", {"text": "hi"})).text == "hi"
                assert await _names(modern) == await _names(legacy) == ["early__echo"]
                async with (
                    modern.listening(toolsListChanged=True) as new,
                    legacy.listening() as old,
                ):
                    for stream in (new, old):
                        told = await stream.message()
                        while told["method"] != "notifications/tools/list_changed":
                            told = await stream.message()
                assert await _names(modern) == await _names(legacy) == ["early__echo", "late__echo"]
                assert (await legacy.call("late__echo", {"text": "there"})).text == "there"

    run(converse())


def test_servers_that_never_come_up_cost_nobody_anything(tmp_path: Path) -> None:
    """B38, B40: they exit, cannot be started, or say nothing for ever."""
    servers = {
        "good": fake(*ECHO),
        "gone": {"command": "/no/such/program"},
        "exits": fake("--exit-at-start", 1),
        "mute": fake("--initialize", "silent", "--discover", "silent"),
        "sleeps": fake("--start-delay", 600, stop_grace="200ms"),
    }

    async def initialize(url: str) -> float:
        async with Legacy.to(url) as client:
            began = time.monotonic()
            await client.initialize()
            took = time.monotonic() - began
            assert await _names(client) == ["good__echo"]
            return took

    async def converse() -> None:
        began = time.monotonic()
        async with gate(tmp_path, servers) as it:
            await it.ready("good")
            assert time.monotonic() - began < 5
            took = [await initialize(it.url) for _ in range(20)]
            assert sorted(took)[len(took) // 2] < 0.2
            assert (await it.report("mute"))["state"] == "starting"

    run(converse())


def test_a_gateway_whose_servers_all_fail_serves_an_empty_list(tmp_path: Path) -> None:
    """B42: alive, and each server's reason can be read."""
    servers = {"gone": {"command": "/no/such/program"}, "exits": fake("--exit-at-start", 3)}

    async def converse() -> None:
        async with gate(tmp_path, servers) as it:
            await it.becomes("failed", "gone")
            await eventually_async(lambda: it.server("exits").main.last_error, UP_WITHIN_S)
            async with it.modern() as modern, it.legacy() as legacy:
                assert await _names(modern) == await _names(legacy) == []
            assert (await it.page("/livez"))[0] == 200
            assert (await it.page("/readyz"))[0] == 200
            reports = await it.reports()
            assert "/no/such/program does not exist" in reports["gone"]["last_error"]
            assert "exited with code 3" in reports["exits"]["last_error"]

    run(converse())


def test_required_servers_decide_whether_the_gateway_is_ready(tmp_path: Path) -> None:
    servers = {
        "needed": fake(*ECHO, "--start-delay", 1, required=True),
        "optional": {"command": "/no/such/program"},
    }

    async def converse() -> None:
        async with gate(tmp_path, servers) as it:
            await it.becomes("failed", "optional")
            status, told = await it.page("/readyz?verbose")
            assert status == 503
            assert "server needed" in told
            assert "starting" in told
            await it.ready("needed")
            assert (await it.page("/readyz"))[0] == 200
            async with it.modern() as client:
                pid = (await it.report("needed"))["pids"][0]
                assert pid
                await client.call("needed__crash")
                await it.ready("needed")
            assert (await it.page("/readyz"))[0] == 200

    run(converse())


def test_a_required_server_that_went_away_makes_the_gateway_unready(tmp_path: Path) -> None:
    async def converse() -> None:
        server = fake("--only", "crash", required=True, protocol="legacy")
        async with gate(tmp_path, {"it": server}, policy=PATIENT) as it:
            await it.ready()
            async with it.modern() as client:
                await client.call("it__crash", {"code": 9})
            await it.becomes("waiting")
            status, told = await it.page("/readyz?verbose")
            assert status == 503
            assert "exited with code 9" in told

    run(converse())


CANNOT: dict[str, tuple[dict[str, Any], str]] = {
    "not_on_path": (
        {"command": "no-such-program"},
        "command 'no-such-program' not found; searched",
    ),
    "missing": ({"command": "/no/such/program"}, "/no/such/program does not exist"),
    "not_executable": ({"command": "./plain.txt"}, "plain.txt is not executable"),
    "folder": ({"command": "./folder"}, "folder is a folder"),
    "dangling": ({"command": "./dangling"}, "the interpreter its first line names does not exist"),
    "no_cwd": ({**fake(), "cwd": "nowhere"}, "nowhere does not exist"),
    "cwd_is_a_file": ({**fake(), "cwd": "plain.txt"}, "plain.txt is not a folder"),
    "no_env_file": ({**fake(), "env_file": "missing.env"}, "missing.env: No such file"),
}


def test_servers_that_cannot_be_started_are_failed_and_say_why(tmp_path: Path) -> None:
    """B94: in the report and in the log, at once, each with its own reason."""
    (tmp_path / "plain.txt").write_text("text")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").write_text("#!/no/such/interpreter\n")
    (tmp_path / "dangling").chmod(0o755)
    servers = {}
    for name, (section, _) in CANNOT.items():
        command = re.sub(r"^\.(?=/)", str(tmp_path), section["command"])
        servers[name] = {**section, "command": command}

    async def converse() -> None:
        async with gate(tmp_path, servers) as it:
            for name, (_, reason) in CANNOT.items():
                report = await it.becomes("failed", name)
                assert reason in report["last_error"], name
                assert report["pids"] == []
                logged = [e["reason"] for e in it.said("server.failed") if e["server"] == name]
                assert logged == [report["last_error"]], name

    run(converse())


def test_a_start_that_fails_tells_the_exit_code_and_the_last_words_at_once(tmp_path: Path) -> None:
    """B06: not a timeout after half a minute."""
    server = fake("--say", "missing \x1b[31mAPI key\x1b[0m", "--exit-at-start", 7)

    async def converse() -> None:
        async with gate(tmp_path, {"it": server}, policy=PATIENT) as it:
            began = time.monotonic()
            report = await it.becomes("waiting")
            assert time.monotonic() - began < 5
            assert report["last_error"].startswith("exited with code 7")
            assert report["last_error"].endswith("missing API key")

    run(converse())


def test_a_call_to_a_server_that_starts_waits_and_is_bounded_by_its_own_limit(
    tmp_path: Path,
) -> None:
    """The second gateway knows the tools from the first, and its server takes a second."""

    async def converse() -> None:
        async with gate(tmp_path, {"it": scripted(tmp_path, *ECHO)}) as it:
            await it.ready()
            await remembered(it)
        slow = {"it": scripted(tmp_path, *ECHO, before="sleep 1")}
        async with gate(tmp_path, slow) as it, it.modern() as client:
            assert (await client.call("it__echo", {"text": "waited"})).text == "waited"
        rules = [{"match": "*", "timeout": "300ms"}]
        async with gate(tmp_path, slow, tools=rules) as it, it.modern() as client:
            answer = await client.call("it__echo", {"text": "too late"})
            assert failure(answer)["kind"] == "timeout"
            assert "300ms" in model_text(answer)

    run(converse())


async def _names(client: Any) -> list[str]:
    answer = await client.request("tools/list")
    return [each["name"] for each in answer.result["tools"]]
