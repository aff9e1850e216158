"""A hundred configurations, one after the other, while clients call: nobody notices, and
nothing is left of them."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from tests.kit.fakes import fake
from tests.kit.http import Legacy, Modern
from tests.kit.waiting import eventually_async, run
from tests.operations.changing import Changing, changing

RELOADS = 100
CALLS_BETWEEN = 10
RESTARTS_EVERY = 10
"""Of them that also replace a server: a process is started, however little it does."""
CALLERS = 4
"""Of each era."""


def section(number: int) -> dict[str, Any]:
    mode = str(number // RESTARTS_EVERY)
    return fake("--only", "echo", protocol="legacy", env={"MODE": mode})


class Load:
    """Clients that call both servers until told to stop."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.outcomes: Counter[str] = Counter()

    async def goes_on(self) -> None:
        """Return after some more calls."""
        enough = self.outcomes.total() + CALLS_BETWEEN
        await eventually_async(lambda: self.outcomes.total() >= enough, 20, what="more calls")

    async def call(self, client: Modern | Legacy, who: int) -> None:
        number = 0
        while not self.ended.is_set():
            number += 1
            text = f"{who}-{number}"
            server = "ab"[number % 2]
            answer = await client.call(f"{server}__echo", {"text": text})
            said = answer.final.get("result", {}).get("content", [{}])[0].get("text")
            self.outcomes["ok" if said == text else str(answer.final)] += 1


def footprint() -> tuple[int, int, int]:
    """Our open files, the children we have, the tasks there are."""
    me = psutil.Process()
    return me.num_fds(), len(me.children(recursive=True)), len(asyncio.all_tasks())


async def settled(it: Changing) -> tuple[int, int, int]:
    await it.gate.ready()
    await eventually_async(lambda: not it.gate.gateway.fleet.succession.leaving)
    await eventually_async(lambda: not it.gate.gateway.fleet._retiring)
    return footprint()


def test_a_hundred_reloads_under_load_fail_no_call_and_leave_nothing(tmp_path: Path) -> None:
    async def conversation() -> None:
        servers = {"a": fake("--only", "echo", protocol="modern"), "b": section(0)}
        async with changing(tmp_path, servers) as it:
            await it.change(tools=[{"match": "*", "rate": "1000000/s"}])
            before = await settled(it)
            load = Load()
            async with asyncio.TaskGroup() as tasks:
                for who in range(CALLERS):
                    tasks.create_task(served(it, load, Modern, who))
                    tasks.create_task(served(it, load, Legacy, CALLERS + who))
                for number in range(1, RELOADS + 1):
                    tools = [{"match": "*", "timeout": f"{60 + number}s"}]
                    now = {**servers, "b": section(number)}
                    told = await it.change(servers=now, tools=tools)
                    assert told["ok"], told
                    await load.goes_on()
                load.ended.set()

            after = await settled(it)
            assert set(load.outcomes) == {"ok"}, load.outcomes
            assert load.outcomes["ok"] >= CALLS_BETWEEN * RELOADS
            assert after[0] <= before[0] + 3
            assert after[1:] == before[1:]
            assert await restarts(it, "b") == RELOADS // RESTARTS_EVERY
            assert await restarts(it, "a") == 0

    run(conversation(), within_s=120)


async def served(it: Changing, load: Load, kind: type[Modern | Legacy], who: int) -> None:
    async with kind.to(it.gate.url) as client:
        if isinstance(client, Legacy):
            await client.initialize()
        await load.call(client, who)


async def restarts(it: Changing, server: str) -> int:
    status, body = await it.gate.page("/api/servers")
    assert status == 200
    (report,) = (each for each in json.loads(body)["servers"] if each["name"] == server)
    return int(report["restarts"])
