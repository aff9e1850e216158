"""However a gateway ends, and however its servers take it, no process is left behind."""

import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.kit.fakes import fake, fake_argv
from tests.kit.gateway import Gateway, running_gateway
from tests.kit.http import Modern
from tests.kit.processes import kill_tree
from tests.kit.waiting import eventually, eventually_async, run
from tests.servers.gate import gate

GRACE = {"stop_grace": "300ms", "protocol": "legacy"}
ECHO = ("--only", "echo,spawn,hang")


def _servers(folder: Path) -> dict[str, Any]:
    """Every way of not leaving when one is asked to."""
    shell = shlex.join(fake_argv(*ECHO))
    stubborn = shlex.join(fake_argv(*ECHO, "--stubborn"))
    return {
        "polite": fake(*ECHO, **GRACE),
        "deaf_to_eof": fake(*ECHO, "--ignore-eof", **GRACE),
        "stubborn": fake(*ECHO, "--stubborn", **GRACE),
        "family": fake(*ECHO, "--grandchild", **GRACE),
        "wrapper": {"command": "sh", "args": ["-c", f"{shell}; exit 3"], **GRACE},
        "background": {"command": "sh", "args": ["-c", f"sleep 3600 & {shell}"], **GRACE},
        "stubborn_wrapped": {
            "command": "sh",
            "args": ["-c", f"trap '' TERM; {stubborn}; sleep 3600"],
            **GRACE,
        },
        "still_starting": fake("--start-delay", 600, "--ignore-term", **GRACE),
        "not_answering": fake(
            "--initialize", "silent", "--discover", "silent", "--stubborn", stop_grace="300ms"
        ),
        "crashing": fake("--exit-after-list", **GRACE),
    }


@contextmanager
def _all_up(folder: Path) -> Iterator[tuple[Gateway, list[psutil.Process]]]:
    """A gateway over all of these, and every process beneath it, the warden included."""
    servers = _servers(folder)
    with running_gateway(folder, servers, wait="/livez") as gateway:
        gateway.wait_tools(*(f"{name}__echo" for name in list(servers)[:7]))
        run(_spawn(gateway.url))
        # six that are one process; two of a shell and a server; one with a sleep more
        family = eventually(lambda: _at_least(gateway, 15), 20, what="all of them to run")
        try:
            yield gateway, family
        finally:
            for each in family:
                if each.is_running():
                    kill_tree(each.pid)


def test_term_ends_the_gateway_and_everything_it_started(tmp_path: Path) -> None:
    """All at once under one bound: two graces, and what killing takes."""
    with _all_up(tmp_path) as (gateway, family):
        began = time.monotonic()
        gateway.program.send(signal.SIGTERM)
        assert gateway.program.wait_exit(25) == 0, gateway.text
        took = time.monotonic() - began
        assert _running(family) == [], gateway.text
        assert took < 2 * 0.3 + 4 + 2, "one after the other they would take longer"


def test_kill_9_of_the_gateway_leaves_nothing_after_five_seconds(tmp_path: Path) -> None:
    with _all_up(tmp_path) as (gateway, family):
        gateway.program.send(signal.SIGKILL)
        gateway.program.wait_exit(5)
        eventually(lambda: _running(family) == [], 5, what="nothing to be left")


def test_a_second_signal_hurries_and_still_leaves_nothing(tmp_path: Path) -> None:
    with _all_up(tmp_path) as (gateway, family):
        gateway.program.send(signal.SIGTERM)
        gateway.program.wait_text("gateway.stopping")
        began = time.monotonic()
        gateway.program.send(signal.SIGTERM)
        gateway.program.wait_exit(10)
        assert time.monotonic() - began < 8
        eventually(lambda: _running(family) == [], 5, what="nothing to be left")


def test_two_gateways_side_by_side_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Same servers, same state: what one ends, the other keeps; kill -9 included."""
    servers = {name: fake(*ECHO, stop_grace="300ms") for name in ("a", "b")}
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    shared = {"ONEGATE_STATE": str(tmp_path / "state")}
    with running_gateway(one, servers, wait="/livez", env=shared) as first:
        first.wait_tools("a__echo", "b__echo")
        with running_gateway(two, servers, wait="/livez", env=shared) as second:
            second.wait_tools("a__echo", "b__echo")
            mine = {each.pid for each in first.program.descendants()}
            theirs = second.program.descendants()
            second.program.send(signal.SIGKILL)
            eventually(lambda: _running(theirs) == [], 5, what="the second's servers to go")
        run(_echo(first.url))
        assert {each.pid for each in first.program.descendants()} == mine


def test_servers_are_told_by_the_end_of_their_input_first(tmp_path: Path) -> None:
    """A polite one gets to tidy up: no signal before it had the chance."""
    program, diary = tmp_path / "tidy.py", tmp_path / "diary"
    program.write_text(TIDY)
    section = {"command": sys.executable, "args": ["-S", str(program), str(diary)]}

    async def converse() -> None:
        async with gate(tmp_path, {"it": {**section, "protocol": "legacy"}}) as it:
            await it.ready()
            await eventually_async(lambda: "initialized" in diary.read_text())

    diary.touch()
    run(converse())
    assert diary.read_text().split() == ["initialized", "eof", "tidied"]


def _at_least(gateway: Gateway, number: int) -> list[psutil.Process]:
    found = gateway.program.descendants()
    return found if len(found) >= number else []


def _running(family: list[psutil.Process]) -> list[str]:
    """Those that still run, in words. A zombie whose parent has gone is nobody's."""
    found = []
    for each in family:
        try:
            if each.is_running() and each.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{each.pid} {shlex.join(each.cmdline())[-80:]}")
        except psutil.NoSuchProcess:
            continue
    return found


async def _spawn(url: str) -> None:
    """Grandchildren in the groups of servers, one of them deaf to TERM."""
    async with Modern.to(url) as client:
        await client.call("polite__spawn")
        await client.call("family__spawn", {"ignore_term": True})


async def _echo(url: str) -> None:
    async with Modern.to(url) as client:
        assert (await client.call("a__echo", {"text": "still here"})).text == "still here"


TIDY = """
import json, signal, sys, time

def write(word):
    with open(sys.argv[1], "a") as diary:
        diary.write(word + "\\n")

signal.signal(signal.SIGTERM, lambda *_: write("term"))
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    elif message["method"] == "notifications/initialized":
        write("initialized")
write("eof")
time.sleep(0.5)
write("tidied")
"""
