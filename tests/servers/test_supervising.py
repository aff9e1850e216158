"""A server is started again and again for as long as it takes. Hours pass at once here."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.downstream.backoff import RestartPolicy
from gateway.downstream.environment import CannotStart
from gateway.downstream.lane import Lane, Phase
from gateway.downstream.supervise import keep_running
from gateway.protocol.errors import GatewayError
from tests.policy.clock import run
from tests.servers.gate import kept_log

POLICY = RestartPolicy()


@pytest.mark.parametrize(
    ("error", "phase", "most"),
    [
        (CannotStart("command not found", permanent=True), Phase.FAILED, 14),
        (CannotStart("no memory", permanent=False), Phase.FAILED, 20),
        (GatewayError("did not answer"), Phase.FAILED, 20),
        (ZeroDivisionError("a bug"), Phase.FAILED, 20),
    ],
)
def test_a_server_that_is_down_for_an_hour_is_tried_a_few_times_and_comes_back(
    error: Exception, phase: Phase, most: int
) -> None:
    """B41: nobody has to restart the gateway. A bug of ours costs this server alone."""
    tries = 0

    async def converse() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        up = asyncio.Event()

        async def open_() -> Any:
            nonlocal tries
            tries += 1
            if loop.time() < began + 3600:
                raise error
            up.set()
            await asyncio.Event().wait()

        lane = _lane(open_, loop.time)
        async with asyncio.TaskGroup() as tasks:
            supervisor = tasks.create_task(keep_running(lane, POLICY, lambda: 1.0))
            await asyncio.sleep(1800)
            assert lane.phase is phase
            assert lane.unavailable().data["state"] == "failed"
            async with asyncio.timeout(1800 + POLICY.slow_wait_s + 1):
                await up.wait()
            supervisor.cancel()

    with kept_log():
        run(converse())
    assert 12 <= tries <= most


def test_a_kick_cuts_the_wait_short() -> None:
    async def converse() -> None:
        loop, tries = asyncio.get_running_loop(), [0]

        async def open_() -> Any:
            tries[0] += 1
            raise CannotStart("not yet", permanent=True)

        lane = _lane(open_, loop.time)
        async with asyncio.TaskGroup() as tasks:
            supervisor = tasks.create_task(keep_running(lane, POLICY, lambda: 1.0))
            await asyncio.sleep(10)
            assert tries == [1]
            lane.kicked.set()
            await asyncio.sleep(1)
            assert tries == [2]
            supervisor.cancel()

    with kept_log():
        run(converse())


def _lane(open_: Callable[[], Awaitable[Any]], clock: Callable[[], float]) -> Lane:
    async def ready(_: Any) -> None:
        raise AssertionError("it never opens")

    return Lane("it", open_, ready, lambda _: None, clock)
