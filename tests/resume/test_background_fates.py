"""What may become of a call that goes on by itself: its server dies, the gateway reloads, nobody
comes for its result.
"""

import json
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from gateway.policy.background import KEPT_S
from tests.conversations.talking import Gate, client_of, opened_gate
from tests.kit.fakes import fake
from tests.kit.http import Legacy
from tests.kit.processes import words_of
from tests.kit.waiting import eventually, eventually_async, run
from tests.resume.breaking import session_of
from tests.resume.test_background import RULES, each_era, handle_in, rest, server, whole
from tests.servers.gate import gate


def children(gate: Gate) -> list[psutil.Process]:
    return [one for one in gate.gateway.program.descendants() if "fake" in " ".join(words_of(one))]


@each_era
def test_a_server_that_dies_meanwhile_is_what_the_result_tells(tmp_path: Path, era: str) -> None:
    async def converse(it: Gate) -> Any:
        async with client_of(era, it.url) as client:
            handle = handle_in(await client.call("old__hang", {}))
            for child in children(it):
                os.kill(child.pid, signal.SIGKILL)
            return await whole(client, handle)

    with opened_gate(tmp_path, server(tmp_path), tools=RULES) as it:
        it.gateway.wait_tools("old__hang")
        since = it.mark()
        answer = run(converse(it))
        records = since.records(number=2)

    assert answer.result["isError"] is True
    assert answer.result["_meta"]["onegate/error"]["kind"] == "unavailable"
    ended = {each["name"]: each["outcome"] for each in records}
    assert ended["old__hang"] == "unavailable"


@pytest.mark.parametrize("more", [{}, {"stop_grace": "4s"}], ids=["a rule", "the server too"])
def test_a_reload_leaves_what_goes_on_alone(tmp_path: Path, more: dict[str, Any]) -> None:
    """Even where the rule it went on by is gone, or its server is replaced: it ends there."""

    async def converse(it: Gate) -> str:
        async with session_of(it.url) as client:
            handle = handle_in(await client.call("old__sleep", {"ms": 2500}))
            file = it.gateway.file
            written = json.loads(file.read_text())
            written["servers"]["old"] |= more
            rules = [{"match": "old__quick_*", "background": "after 1s"}]
            file.write_text(json.dumps({**written, "tools": rules}))
            it.gateway.program.send(signal.SIGHUP)
            await eventually_async(lambda: "config.reloaded" in it.gateway.text, what="a reload")
            return (await whole(client, handle)).text

    with opened_gate(tmp_path, server(tmp_path), tools=RULES) as it:
        it.gateway.wait_tools("old__sleep")
        assert run(converse(it)) == "slept 2500 ms"


def test_a_result_nobody_comes_for_is_gone_in_the_end(tmp_path: Path) -> None:
    async def converse() -> None:
        async with gate(tmp_path, {"old": fake("--era", "legacy")}, tools=RULES) as it:
            await it.ready()
            async with it.legacy() as client:
                handle = handle_in(await client.call("old__sleep", {"ms": 500}))
                assert (await whole(client, handle)).text == "slept 500 ms"
                background = it.gateway.middle.background
                now = background.wall() + KEPT_S + 1
                background.wall = lambda: now
                background.expire()
                gone = await rest(client, handle)
                assert gone.result["isError"] is True
                assert "no call with this handle" in gone.text

    run(converse())


@pytest.mark.parametrize("declared", [{}, {"elicitation": {}}], ids=["shared", "its own"])
def test_what_goes_on_outlives_the_session_it_was_begun_in(
    tmp_path: Path, declared: dict[str, Any]
) -> None:
    """The handle is the client's, not the session's: it may have lost that. A process that the
    session had for itself goes when the call is over."""

    async def converse(it: Gate) -> str:
        async with Legacy.to(it.url) as client:
            await client.initialize(capabilities=declared)
            handle = handle_in(await client.call("old__sleep", {"ms": 1500}))
            assert await client.delete() == 204
        async with session_of(it.url) as other:
            return (await whole(other, handle)).text

    with opened_gate(tmp_path, server(tmp_path), tools=RULES) as it:
        it.gateway.wait_tools("old__sleep")
        since = it.mark()
        assert run(converse(it)) == "slept 1500 ms"
        assert since.heard("old", "notifications/cancelled") == []
        eventually(lambda: {'busy"} 0.0', 'idle"} 0.0'} <= own_processes(it))


def own_processes(it: Gate) -> set[str]:
    lines = it.gateway.page("/metrics").splitlines()
    ours = [line for line in lines if line.startswith("onegate_private_processes{")]
    return {line.partition('state="')[2] for line in ours}


def test_who_cancels_what_has_ended_gets_its_result(tmp_path: Path) -> None:
    async def converse(it: Gate) -> str:
        async with session_of(it.url) as client:
            handle = handle_in(await client.call("old__sleep", {"ms": 500}))
            await whole(client, handle)
            return (await rest(client, handle, cancel=True)).text

    with opened_gate(tmp_path, server(tmp_path), tools=RULES) as it:
        it.gateway.wait_tools("old__sleep")
        assert run(converse(it)) == "slept 500 ms"


def test_it_can_be_cancelled_from_another_session_and_once(tmp_path: Path) -> None:
    async def converse(it: Gate) -> list[str]:
        async with session_of(it.url) as client, session_of(it.url) as other:
            handle = handle_in(await client.call("old__hang", {}))
            said = [(await rest(other, handle, cancel=True)).text for _ in range(2)]
            await since.told("old", "notifications/cancelled")
            return [*said, (await rest(client, handle)).text]

    with opened_gate(tmp_path, server(tmp_path), tools=RULES) as it:
        it.gateway.wait_tools("old__hang")
        since = it.mark()
        said = run(converse(it))
        eventually(lambda: since.heard("old", "notifications/cancelled"))
        assert len(since.heard("old", "notifications/cancelled")) == 1

    assert all("was cancelled" in text for text in said)
