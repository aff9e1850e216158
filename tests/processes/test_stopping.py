"""The ladder: end of input, TERM to the group, KILL to the group; and nobody left behind."""

import asyncio
import os
import time

import pytest

from gateway.downstream.environment import Launch
from gateway.downstream.stopping import Group
from gateway.downstream.transports.stdio import StdioTransport
from tests.kit.processes import is_alive
from tests.kit.waiting import eventually, eventually_async
from tests.processes.driving import LOOPS, Heard, gone_in_the_end, on, started

both_loops = pytest.mark.parametrize("loop", LOOPS)


@both_loops
def test_a_polite_server_leaves_at_the_end_of_its_input(loop: str) -> None:
    async def conversation() -> None:
        child, heard = await started("echo")
        await heard.wait_line()
        began = time.monotonic()
        await child.stop(20)
        assert time.monotonic() - began < 5
        (departure,) = heard.departures
        assert (departure.code, departure.reason) == (0, "was stopped")

    on(loop, conversation())


@both_loops
def test_a_server_that_ignores_the_end_of_its_input_gets_term(loop: str) -> None:
    async def conversation() -> None:
        child, heard = await started("polite")
        await heard.wait_line()
        await child.stop(0.2)
        assert heard.departures[0].code == 15

    on(loop, conversation())


@both_loops
def test_a_server_that_ignores_everything_is_killed_within_the_bound(loop: str) -> None:
    async def conversation() -> None:
        child, heard = await started("stubborn", "SIGTERM", "SIGINT", "SIGHUP")
        (pid,) = await heard.wait_pids()
        began = time.monotonic()
        await child.stop(0.2)
        assert 0.4 <= time.monotonic() - began < 3
        assert heard.departures[0].signal == "SIGKILL"
        assert not is_alive(pid)

    on(loop, conversation())


@pytest.mark.parametrize("how", ["stays", "leaves", "exits"])
@pytest.mark.parametrize("ignored", ["", "SIGTERM"])
def test_wrappers_leave_nothing_behind(how: str, ignored: str) -> None:
    async def conversation() -> None:
        child, heard = await started("wrap", how, *filter(None, [ignored]))
        wrapper, server = await heard.wait_pids()
        with gone_in_the_end(server):
            if how == "exits":
                assert (await child.wait_closed()).reason == "exited with code 0"
            await child.stop(0.3)
            assert not is_alive(wrapper)
            await eventually_async(lambda: not is_alive(server))

    on("asyncio", conversation())


def test_a_shell_is_stopped_with_what_it_runs_in_the_background() -> None:
    """`sh -c`, as `npx` does it: a wrapper, and the server below it."""

    async def conversation() -> None:
        heard = Heard()
        command = "sleep 100 & echo ready $$ $!; wait"
        child = await StdioTransport.start(Launch("it", ("/bin/sh", "-c", command)), heard)
        pids = await heard.wait_pids()
        with gone_in_the_end(*pids):
            await child.stop(0.2)
            await eventually_async(lambda: not any(map(is_alive, pids)))

    on("asyncio", conversation())


def test_stopping_twice_and_at_once_is_stopping_once() -> None:
    async def conversation() -> None:
        child, heard = await started("stubborn", "SIGTERM")
        await heard.wait_line()
        await asyncio.gather(child.stop(0.2), child.stop(0.2))
        await child.stop(0.2)
        assert heard.order.count("closed") == 1

    on("asyncio", conversation())


def test_a_stop_that_is_cancelled_kills_at_once() -> None:
    async def conversation() -> None:
        child, heard = await started("stubborn", "SIGTERM")
        (pid,) = await heard.wait_pids()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await child.stop(20)
        await eventually_async(lambda: not is_alive(pid))
        assert len(heard.departures) == 1

    on("asyncio", conversation())


def test_many_are_stopped_together_in_the_time_of_one() -> None:
    async def conversation() -> None:
        started_ones = await asyncio.gather(*(started("stubborn", "SIGTERM") for _ in range(10)))
        await asyncio.gather(*(heard.wait_line() for _, heard in started_ones))
        began = time.monotonic()
        await asyncio.gather(*(child.stop(0.5) for child, _ in started_ones))
        assert time.monotonic() - began < 4
        assert {heard.departures[0].signal for _, heard in started_ones} == {"SIGKILL"}

    on("asyncio", conversation())


def test_what_still_waits_to_be_written_is_written_before_the_input_ends() -> None:
    async def conversation() -> None:
        child, heard = await started("echo")
        await heard.wait_line()
        for _ in range(40):
            child.send(b"x" * 50_000)
        await child.stop(10)
        assert len(heard.lines) == 41

    on("asyncio", conversation())


def test_a_group_known_to_be_empty_is_never_signalled_again() -> None:
    """Its number may be somebody else's by then: here it is made ours."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os._exit(0)
    group = Group(pid)
    os.waitpid(pid, 0)
    eventually(group.is_empty)
    group.pgid = os.getpgid(0)
    group.signal(9)
    assert group.is_empty()
