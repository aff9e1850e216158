"""The configuration of a server elsewhere changes while clients use it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.kit.waiting import eventually_async, run
from tests.operations.changing import changing
from tests.remote.far import Asked, served
from tests.remote.test_watching import UPDATED, Library, updated


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_another_header_holds_from_the_next_call_on(tmp_path: Path, era: str) -> None:
    """A call under way ends as it began, and who watches goes on watching."""
    library = Library("far://one")
    goes_on = asyncio.Event()

    async def slow(asked: Asked) -> web.StreamResponse:
        await goes_on.wait()
        return asked.text("slow")

    def section(url: str, token: str) -> dict[str, Any]:
        return {"url": url, "protocol": era, "headers": {"Authorization": f"Bearer {token}"}}

    async def converse() -> None:
        far = library.far(era)
        far.tools["slow"] = slow
        async with (
            served(far),
            changing(tmp_path, {"far": section(far.url, "canary-1")}) as it,
            it.gate.modern() as client,
            client.listening(resourceSubscriptions=["far://one"]) as ear,
            asyncio.TaskGroup() as tasks,
        ):
            before = tasks.create_task(client.call("far__slow"))
            await eventually_async(lambda: far.posts("tools/call"))
            told = await it.change_server("far", section(far.url, "canary-2"))
            assert told["restarted"] == ["far"]
            after = tasks.create_task(client.call("far__echo", {"text": "new"}))
            goes_on.set()
            assert (await before).text == "slow"
            assert (await after).text == "new"
            used = [seen.headers["Authorization"][-1] for seen in far.posts("tools/call")]
            assert used == ["1", "2"]
            assert await updated(ear) == "far://one", "what happened meanwhile nobody was told"
            await eventually_async(lambda: len(far.streams) == 1)
            await far.tell(UPDATED, uri="far://one")
            assert await updated(ear) == "far://one"
            assert "canary" not in str(it.gate.log)
            assert "canary" not in str(await it.gate.reports())
            assert "canary" not in str(told)

    run(converse())
