"""A tool that runs as a task alone, called by a client that knows of none: the task ends with it.

Source: 2025-11-25, basic/utilities/tasks, "Cancellation"; protocol A9 and A17.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.eras.legacy.parked import Bounds
from tests.kit.http import Modern
from tests.kit.waiting import run
from tests.questions.inside import Inside
from tests.questions.talking import Heard
from tests.resume.test_legacy_tasks import tasker
from tests.servers.gate import gate

Message = dict[str, Any]
ASKS = {"ms": 10, "ask": True}


@asynccontextmanager
async def tasks(folder: Path, **keys: Any) -> AsyncIterator[Inside]:
    heard = Heard(folder / "it.heard")
    section = tasker("legacy", str(heard.file), **keys)
    async with gate(folder, {"it": section}) as opened:
        await opened.ready()
        yield Inside(opened, heard)


async def parked(client: Modern) -> Message:
    client.envelope.capabilities = {"elicitation": {"form": {}}}
    asked = (await client.call("it__only", ASKS)).result
    assert asked["resultType"] == "input_required"
    return asked


def cancels(message: Message) -> bool:
    return message.get("method") == "tasks/cancel"


@pytest.mark.parametrize("isolation", ["auto", "principal"])
def test_a_client_that_never_comes_back_ends_the_task_too(tmp_path: Path, isolation: str) -> None:
    async def converse() -> None:
        async with tasks(tmp_path, isolation=isolation) as it, it.gate.modern() as client:
            await parked(client)
            it.pass_time(Bounds().age_s + 1)

            told = await it.heard.wait(cancels)
            assert told["params"] == {"taskId": "t1"}
            assert not len(it.parked)

    run(converse())


def test_a_gateway_that_stops_ends_what_waits_for_its_client(tmp_path: Path) -> None:
    async def converse() -> Heard:
        async with tasks(tmp_path) as it, it.gate.modern() as client:
            await parked(client)
        return it.heard

    assert run(converse()).lines("tasks/cancel")


def test_a_client_that_leaves_while_it_waits_ends_the_task_once(tmp_path: Path) -> None:
    """2026-07-28: to close the stream is to cancel."""

    async def converse() -> int:
        async with tasks(tmp_path) as it, it.gate.modern() as client, asyncio.TaskGroup() as group:
            waiting = group.create_task(client.call("it__only", {"ms": 60000}))
            await it.heard.wait(lambda each: each.get("method") == "tasks/result")
            waiting.cancel()
            await it.heard.wait(cancels)
            return len(it.heard.lines("tasks/cancel"))

    assert run(converse()) == 1
