"""A server that is killed again and again costs nothing in the end."""

import asyncio
import gc
import os
import signal
from pathlib import Path

import psutil

from tests.kit.fakes import fake
from tests.kit.waiting import eventually_async, run
from tests.servers.gate import Gate, alive, gate, starts

CYCLES = 30


def test_thirty_crashes_with_calls_in_progress_leave_nothing_behind(tmp_path: Path) -> None:
    """Descriptors, children, threads, tasks and memory are what they were after the third."""
    pids = tmp_path / "starts"
    server = fake("--only", "hang", "--starts", pids, protocol="legacy")

    others = {child.pid for child in psutil.Process().children()}

    async def converse() -> None:
        async with gate(tmp_path, {"it": server}) as it:
            await it.ready()
            async with it.modern() as client:
                for cycle in range(CYCLES):
                    if cycle == 3:
                        before = _state(others)
                    async with asyncio.TaskGroup() as tasks:
                        calls = [tasks.create_task(client.call("it__hang")) for _ in range(3)]
                        await eventually_async(lambda: it.server().in_flight == 3)
                        os.kill(_pid(it), signal.SIGKILL)
                    assert all(call.result().result["isError"] for call in calls)
                    await it.ready()
                await eventually_async(lambda: _state(others) == before, what=f"{before}")
            assert len(starts(pids)) == CYCLES + 1
            assert alive(starts(pids)) == [_pid(it)]
            assert it.server().main.restarts == {"signal": CYCLES}
        assert alive(starts(pids)) == []

    run(converse(), within_s=50)


def test_a_hundred_cancelled_calls_leave_nothing_behind(tmp_path: Path) -> None:
    """B61, as far as the server's side goes: what was given up is forgotten when it is late."""
    rules = [{"match": "*", "timeout": "50ms"}]
    server = fake("--only", "sleep,echo", protocol="legacy")

    async def converse() -> None:
        async with gate(tmp_path, {"it": server}, tools=rules) as it:
            await it.ready()
            async with it.modern() as client:
                await client.call("it__echo")
                late = {"ms": 100, "stubborn": True}
                for _ in range(5):
                    await asyncio.gather(*(client.call("it__sleep", late) for _ in range(20)))
                connection = it.server().main.connection
                assert connection is not None
                exchange = connection.link.exchange
                await eventually_async(lambda: exchange.late == 100)
                assert exchange.waiting == {}
                assert not exchange._given_up

    run(converse())


def _pid(it: Gate) -> int:
    connection = it.server().main.connection
    assert connection is not None and connection.transport.pid is not None
    return connection.transport.pid


def _state(others: set[int]) -> dict[str, int]:
    """`others` are children of whoever else runs tests here: they come and go as they like."""
    gc.collect()
    me = psutil.Process()
    return {
        "descriptors": me.num_fds(),
        "children": len({child.pid for child in me.children()} - others),
        "threads": me.num_threads(),
        "tasks": len(asyncio.all_tasks()),
    }
