"""Told to leave in the middle of everything: in good order, and never later than was agreed."""

import asyncio
import json
import signal
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.kit.fakes import fake
from tests.kit.gateway import Gateway, fetch, running_gateway
from tests.kit.http import Legacy, Modern, Stream
from tests.kit.processes import is_alive
from tests.kit.waiting import eventually_async, run

DRAIN_S, GRACE_S = 1.0, 0.5
CUTS_S = 1.5
"""What is cut may take so long to say so (`Listener.drain`)."""
LADDER_S = 2 * GRACE_S + 2 + 2
"""Input closed, TERM, KILL, and what is left behind (`stopping`)."""
FLUSH_S = 5.0
SLACK_S = 3.0
"""This machine has other things to do."""

SERVERS = {
    "a": fake("--only", "echo,sleep,hang", protocol="modern", required=True),
    "stubborn": fake("--stubborn", stop_grace=f"{GRACE_S}s", required=True),
}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_under_load_it_ends_in_good_order_and_in_time(
    tmp_path: Path, number: signal.Signals
) -> None:
    record = tmp_path / "calls.jsonl"
    answered = 0

    async def busy(client: Modern) -> None:
        """Call until it is told that this is the end."""
        nonlocal answered
        while True:
            try:
                answer = await client.call("a__echo", {"text": "x"})
            except aiohttp.ClientConnectorError:  # nobody listens any more: nothing was sent
                return
            assert answer.text == "x"
            answered += 1

    async def conversation(gateway: Gateway) -> float:
        async with (
            Modern.to(gateway.url) as client,
            Legacy.to(gateway.url) as legacy,
            asyncio.TaskGroup() as tasks,
        ):
            await legacy.initialize()
            async with (
                legacy.listening() as old,
                client.listening(toolsListChanged=True) as new,
            ):
                hanging = tasks.create_task(client.call("a__hang"))
                slow = tasks.create_task(legacy.call("a__sleep", {"ms": 500}))
                for _ in range(4):
                    tasks.create_task(busy(client))
                await eventually_async(lambda: answered > 20, what="some calls")

                started = time.monotonic()
                gateway.program.send(number)
                await eventually_async(
                    lambda: fetch(f"{gateway.admin}/readyz")[0] in (503, 0), what="not ready"
                )
                assert gateway.status("/livez") == 200
                for stream in (old, new):
                    assert await rest(stream) < 5
                assert (await slow).text == "slept 500 ms"
                assert (await hanging).status == 503
                await asyncio.to_thread(gateway.program.wait_exit, 30)
                return time.monotonic() - started

    calls, limits = {"path": str(record)}, {"drain": f"{DRAIN_S}s"}
    with running_gateway(tmp_path, SERVERS, calls=calls, limits=limits) as gateway:
        left = gateway.server_pids()
        took_s = run(conversation(gateway), within_s=60)
        assert gateway.program.wait_exit() == 0

    assert took_s <= DRAIN_S + CUTS_S + LADDER_S + FLUSH_S + SLACK_S
    assert not any(map(is_alive, left))
    outcomes = [json.loads(line)["outcome"] for line in record.read_text().splitlines()]
    assert outcomes.count("ok") == answered + 1  # every call that was answered, and the slow one
    assert outcomes.count("cancelled") >= 1
    assert "Traceback" not in gateway.text
    assert gateway.text.rstrip().splitlines()[-1].find("gateway.stopped") > 0


async def rest(stream: Stream) -> int:
    """Read a stream to its end. How many messages there still were."""
    count = 0
    async for event in stream.events:
        count += bool(event.data)
    return count


def test_nobody_new_gets_in_once_it_is_to_leave(tmp_path: Path) -> None:
    async def conversation(gateway: Gateway) -> None:
        async with Modern.to(gateway.url) as client, asyncio.TaskGroup() as tasks:
            tasks.create_task(client.call("a__sleep", {"ms": 1500}))
            await asyncio.to_thread(_wait_in_flight, gateway)
            gateway.program.send(signal.SIGTERM)
            await eventually_async(lambda: gateway.status("/readyz") == 503, what="not ready")
            assert fetch(gateway.url)[0] == 0
        assert await asyncio.to_thread(gateway.program.wait_exit, 30) == 0

    with running_gateway(tmp_path, SERVERS, limits={"drain": "10s"}) as gateway:
        run(conversation(gateway))


def _wait_in_flight(gateway: Gateway) -> None:
    def busy() -> bool:
        reports: list[dict[str, Any]] = json.loads(gateway.page("/api/servers"))["servers"]
        return any(each["in_flight"] for each in reports)

    end = time.monotonic() + 10
    while not busy():
        assert time.monotonic() < end
