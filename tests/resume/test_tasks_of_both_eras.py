"""A server of both eras has tasks in both, each in its own shape: so each client finds its own.

Its lists are read in one era alone; what it can do in the other must not be lost by that.
Source: 2025-11-25, basic/utilities/tasks, "Capabilities"; protocol 3.0, C7.
"""

from pathlib import Path
from typing import Any

from tests.kit.http import Legacy, Modern
from tests.kit.waiting import eventually_async, run
from tests.resume.test_legacy_tasks import about, begun, tasker
from tests.resume.test_modern_tasks import DECLARED, EXTENSION, state_of
from tests.servers.gate import Gate, gate, remembered

OFFERED: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
SUPPORT = {"slow__work": "optional", "slow__only": "required"}


async def offered(it: Gate) -> tuple[Any, Any, dict[str, Any]]:
    """Of tasks: to a legacy client, to a modern one, and how tools say that they can be tasks."""
    async with it.legacy() as legacy, it.modern() as modern:
        tools = (await legacy.request("tools/list")).result["tools"]
        discovered = (await modern.request("server/discover")).result["capabilities"]
        return (
            legacy.initialized["capabilities"].get("tasks"),
            discovered.get("extensions"),
            {tool["name"]: tool.get("execution", {}).get("taskSupport") for tool in tools},
        )


def test_each_client_is_offered_the_tasks_of_its_era(tmp_path: Path) -> None:
    async def converse() -> None:
        async with gate(tmp_path, {"slow": tasker("both")}) as it:
            await it.ready()
            assert (await it.report("slow"))["eras"] == ["modern", "legacy"]
            assert await offered(it) == (OFFERED, {EXTENSION: {}}, SUPPORT)

    run(converse())


def test_each_client_gets_a_task_of_its_era(tmp_path: Path) -> None:
    async def converse() -> None:
        async with gate(tmp_path, {"slow": tasker("both")}) as it:
            await it.ready()
            async with it.legacy() as legacy, it.modern() as modern:
                modern.envelope.capabilities = DECLARED
                task = (await modern.call("slow__work", {"ms": 50})).result["taskId"]
                assert (await state_of(modern, task, "completed"))["result"]["content"]
                result = (await about(legacy, "result", await begun(legacy, ms=50))).result
                assert "done for nobody" in result["content"][0]["text"]

    run(converse())


def test_a_gateway_that_starts_again_still_knows(tmp_path: Path) -> None:
    """It opens one era alone then: what the other has is remembered."""

    async def converse() -> None:
        async with gate(tmp_path, {"slow": tasker("both")}) as it:
            await it.ready()
            await remembered(it, "slow")
        async with gate(tmp_path, {"slow": tasker("both")}) as it:
            await it.ready()
            assert await offered(it) == (OFFERED, {EXTENSION: {}}, SUPPORT)

    run(converse())


def test_tasks_that_a_server_no_longer_has_are_no_longer_offered(tmp_path: Path) -> None:
    """It came back as one of the newer era alone."""
    script = tmp_path / "server.sh"

    def becomes(era: str) -> None:
        section = tasker(era)
        script.write_text(f"exec {section['command']} {' '.join(section['args'])}\n")

    async def converse() -> None:
        server = {"command": "/bin/sh", "args": [str(script)]}
        becomes("both")
        async with gate(tmp_path, {"slow": server}) as it:
            await it.ready()
            await remembered(it, "slow")
        becomes("modern")
        async with gate(tmp_path, {"slow": server}) as it:
            await it.ready()
            async with it.legacy() as legacy:
                await legacy.call("slow__work", {"ms": 1})

            async def gone() -> bool:
                return (await offered(it))[0] is None

            await eventually_async(gone)

    run(converse())


def test_an_older_client_and_one_of_another_era_see_nothing_of_it(tmp_path: Path) -> None:
    async def converse() -> None:
        async with gate(tmp_path, {"slow": tasker("both")}) as it:
            await it.ready()
            async with Legacy.to(it.url) as older, Modern.to(it.url) as modern:
                assert "tasks" not in (await older.initialize("2025-06-18"))["capabilities"]
                tools = (await modern.request("tools/list")).result["tools"]
                assert not [tool for tool in tools if "execution" in tool]

    run(converse())
