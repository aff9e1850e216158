"""A server that does not read, floods, or falls silent is bounded and harms nobody else."""

import asyncio
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from gateway.downstream.transports.stdio import HIGH_WATER_BYTES, WAITING_BYTES
from tests.kit.fakes import fake
from tests.kit.waiting import eventually_async, run
from tests.servers.gate import PATIENT, Gate, failure, gate, model_text

TOOLS = ("--only", "echo,stop_reading,stderr,close_stdout,sleep,whoami,hang")
SHORT = [{"match": "deaf__*", "timeout": "500ms"}]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_server_that_does_not_read_times_out_its_own_callers_alone(
    tmp_path: Path, era: str
) -> None:
    """Sixty calls of 256 KiB are more than it may keep waiting; beyond that they are refused."""
    servers = {
        "deaf": fake(*TOOLS, stop_grace="200ms", protocol=era),
        "well": fake(*TOOLS, protocol=era),
    }

    async def converse() -> None:
        async with gate(tmp_path, servers, tools=SHORT) as it:
            await it.ready()
            async with it.modern() as client:
                await client.call("deaf__stop_reading")
                async with asyncio.TaskGroup() as tasks:
                    big = {"text": "x" * 2**18}
                    deaf = [tasks.create_task(client.call("deaf__echo", big)) for _ in range(60)]
                    while not all(call.done() for call in deaf):
                        began = time.monotonic()
                        assert (await client.call("well__echo", {"text": "hi"})).text == "hi"
                        assert time.monotonic() - began < 3
                kinds = {failure(call.result())["kind"] for call in deaf}
                assert kinds <= {"timeout", "unavailable"}
                assert "timeout" in kinds
                assert _unread(it) <= WAITING_BYTES + 2**19
            assert it.server("deaf").in_flight == 0

    run(converse())


def test_what_is_told_to_a_server_that_does_not_read_does_not_pile_up(tmp_path: Path) -> None:
    """Cancellations and notifications have nobody who waits for them, hence no bound of time."""
    rules = [{"match": "deaf__*", "timeout": "50ms"}]

    async def converse() -> None:
        server = fake(*TOOLS, stop_grace="200ms", protocol="legacy")
        async with gate(tmp_path, {"deaf": server}, tools=rules) as it:
            await it.ready()
            async with it.modern() as client:
                await client.call("deaf__stop_reading")
                big = {"text": "x" * (HIGH_WATER_BYTES // 2)}
                for _ in range(4):
                    assert failure(await client.call("deaf__echo", big))["kind"] == "timeout"
                link = it.server("deaf").main.connection.link  # type: ignore[union-attr]
                before = _unread(it)
                for number in range(130_000):
                    link.tell("notifications/cancelled", {"requestId": number, "reason": "x" * 50})
                assert _unread(it) <= WAITING_BYTES + 2**10
                assert before <= _unread(it)
            assert link.dropped > 50_000
            assert len(it.said("message.dropped")) == 1

    run(converse())


def test_a_flood_on_stderr_slows_nobody_and_is_logged_at_a_limited_rate(tmp_path: Path) -> None:
    servers = {"loud": fake(*TOOLS, protocol="legacy"), "well": fake(*TOOLS, protocol="legacy")}

    async def converse() -> None:
        async with gate(tmp_path, servers) as it:
            await it.ready()
            async with it.modern() as client:
                slowest = 0.0
                async with asyncio.TaskGroup() as tasks:
                    flood = {"bytes": 20 * 2**20, "text": "a line of no interest"}
                    loud = tasks.create_task(client.call("loud__stderr", flood))
                    while not loud.done():
                        began = time.monotonic()
                        assert (await client.call("well__echo", {"text": "hi"})).text == "hi"
                        slowest = max(slowest, time.monotonic() - began)
                assert loud.result().text == "written"
                assert slowest < 3
            lines = it.said("stderr.written")
            assert 10 <= len(lines) <= 200
            assert {entry["server"] for entry in lines} == {"loud"}
        dropped = sum(entry["lines"] for entry in it.said("stderr.dropped"))
        assert len(it.said("stderr.written")) + dropped > 900_000

    run(converse())


def test_a_flood_on_stderr_before_the_first_answer_does_not_stop_the_start(tmp_path: Path) -> None:
    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*TOOLS, "--late-flood", 5 * 2**20)}) as it:
            await it.ready()
            assert (await it.report())["restarts"] == 0

    run(converse())


def test_a_server_that_closes_its_stdout_but_lives_is_ended_and_started_again(
    tmp_path: Path,
) -> None:
    """B11: no busy loop on the broken pipe."""

    async def converse() -> None:
        server = fake(*TOOLS, stop_grace="200ms", protocol="legacy")
        async with gate(tmp_path, {"it": server}) as it:
            await it.ready()
            pid = (await it.report())["pids"][0]
            us = psutil.Process()
            async with it.modern() as client:
                async with asyncio.TaskGroup() as tasks:
                    hung = tasks.create_task(client.call("it__hang"))
                    await eventually_async(lambda: it.server().in_flight == 1)
                    assert (await client.call("it__close_stdout")).text == "closing"
                    before = sum(us.cpu_times()[:2])
                assert failure(hung.result())["kind"] == "unavailable"
                assert "closed its stdout" in model_text(hung.result())
                await eventually_async(lambda: _pid(it) not in (None, pid))
                assert sum(us.cpu_times()[:2]) - before < 1
                assert (await client.call("it__echo", {"text": "again"})).text == "again"
            assert not psutil.pid_exists(pid)
            assert "closed its stdout" in (await it.report())["last_error"]

    run(converse())


def test_a_busy_server_is_not_taken_for_a_dead_one(tmp_path: Path) -> None:
    """B43, B62: one long call, and others meanwhile; nothing is restarted."""

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*TOOLS, protocol="modern")}, policy=PATIENT) as it:
            await it.ready()
            async with it.modern() as client, asyncio.TaskGroup() as tasks:
                long = tasks.create_task(client.call("it__sleep", {"ms": 1500}))
                while not long.done():
                    began = time.monotonic()
                    await client.call("it__echo", {"text": "x"})
                    assert time.monotonic() - began < 1
            assert (await it.report())["restarts"] == 0

    run(converse())


def _unread(it: Gate) -> int:
    connection = it.server("deaf").main.connection
    transport: Any = connection.transport if connection else None
    return transport._stdin.waiting_bytes if transport else 0


def _pid(it: Gate) -> int | None:
    connection = it.server().main.connection
    return connection.transport.pid if connection else None
