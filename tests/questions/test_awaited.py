"""At the bounds of private processes calls wait for one (protocol 3.5): in which order, for
how long, and what is said when there is none."""

import asyncio
from asyncio import TaskGroup
from pathlib import Path

from tests.kit.http import Legacy
from tests.kit.waiting import eventually_async, run
from tests.operations.changing import Changing
from tests.questions.bounded import answered, bounded, metrics, modern, refusal
from tests.questions.talking import asker, client_of, parked
from tests.questions.test_parked import WORDS
from tests.servers.gate import failure


async def waiting(it: Changing, calls: int) -> None:
    async def seen() -> bool:
        return bool((await it.gate.report())["waiting"] == calls)

    await eventually_async(seen, what=f"{calls} calls to wait")


def test_who_comes_when_all_processes_are_at_work_waits_in_the_order_they_came(
    tmp_path: Path,
) -> None:
    async def conversation() -> None:
        servers = {"it": asker("legacy", processes=1)}
        done: list[str] = []
        async with bounded(tmp_path, servers=servers) as it, modern(it) as client:
            asked = await parked(client, "it__q_ask", WORDS)

            async def ask_who(name: str) -> str:
                answer = await client.call("it__q_who")
                done.append(name)
                return answer.text

            async with TaskGroup() as tasks:
                first = tasks.create_task(ask_who("first"))
                await waiting(it, 1)
                then = tasks.create_task(ask_who("then"))
                await waiting(it, 2)
                told = await metrics(it)
                text = (await answered(client, asked)).text

            assert told['onegate_private_processes_awaited{server="it"}'] == 2
            assert told['onegate_private_processes{server="it",state="busy"}'] == 1
            assert done == ["first", "then"]
            assert first.result() == then.result() == text.split()[1], "the one process"
            await waiting(it, 0)

    run(conversation())


def test_who_waited_in_vain_is_told_for_what_and_what_to_do(tmp_path: Path) -> None:
    async def conversation() -> None:
        servers = {"it": asker("legacy", processes=1)}
        rules = [{"match": "it__q_who", "timeout": "500ms"}]
        async with bounded(tmp_path, servers=servers, tools=rules) as it, modern(it) as client:
            asked = await parked(client, "it__q_ask", WORDS)
            text = refusal(refused := await client.call("it__q_who"), "servers.it.processes")
            assert "All 1 private processes of it are in use" in text
            assert "none came free in" in text
            assert "Try again when another has finished" in text
            assert failure(refused)["kind"] == "unavailable"
            assert failure(refused)["retryable"] is True
            assert (await answered(client, asked)).text.startswith("w ")
            assert (await client.call("it__q_who")).text

    run(conversation())


def test_so_many_may_wait_for_a_process_and_the_next_is_refused_at_once(tmp_path: Path) -> None:
    async def conversation() -> None:
        servers = {"it": asker("legacy", processes=1, queue=1)}
        async with bounded(tmp_path, servers=servers) as it, modern(it) as client:
            asked = await parked(client, "it__q_ask", WORDS)
            async with TaskGroup() as tasks:
                waits = tasks.create_task(client.call("it__q_who"))
                await waiting(it, 1)
                text = refusal(await client.call("it__q_who"), "servers.it.processes")
                assert "as many calls wait for one as may (`queue`: 1)" in text
                await answered(client, asked)
            assert waits.result().text

    run(conversation())


def test_who_gives_up_waiting_takes_nobodys_turn(tmp_path: Path) -> None:
    async def conversation() -> None:
        servers = {"it": asker("legacy", processes=1)}
        async with bounded(tmp_path, servers=servers) as it, modern(it) as client:
            asked = await parked(client, "it__q_ask", WORDS)
            gone = asyncio.gather(client.call("it__q_who"))
            await waiting(it, 1)
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
            await waiting(it, 0)
            await answered(client, asked)
            assert (await client.call("it__q_who")).text

    run(conversation())


def test_the_bound_over_all_servers_holds_for_all_and_one_makes_way_for_another(
    tmp_path: Path,
) -> None:
    async def conversation() -> None:
        servers = {"it": asker("legacy"), "other": asker("legacy", queue=0)}
        limits = {"processes": 1}
        async with bounded(tmp_path, limits, servers=servers) as it, modern(it) as client:
            asked = await parked(client, "other__q_ask", WORDS)
            text = refusal(await client.call("other__q_who"), "limits.processes")
            assert "All 1 private processes of servers are in use" in text
            async with TaskGroup() as tasks:
                waits = tasks.create_task(client.call("it__q_who"))
                await waiting(it, 1)
                await answered(client, asked, "other__q_ask")
            assert waits.result().text
            told = await metrics(it)
            assert told['onegate_private_processes{server="it",state="idle"}'] == 1
            assert told['onegate_private_processes{server="other",state="idle"}'] == 0

    run(conversation())


def test_a_bound_of_processes_that_is_raised_lets_in_who_waits_and_restarts_nothing(
    tmp_path: Path,
) -> None:
    async def conversation() -> None:
        async with (
            bounded(tmp_path, {"processes": 1}, servers={"it": asker("legacy", processes=1)}) as it,
            modern(it) as client,
            TaskGroup() as tasks,
        ):
            asked = await parked(client, "it__q_ask", WORDS)
            waits = tasks.create_task(client.call("it__q_who"))
            await waiting(it, 1)
            told = await it.change_server("it", asker("legacy", processes=2))
            assert told["restarted"] == []
            await waiting(it, 1)
            await it.change(limits={"processes": 2})
            who = (await waits).text
            assert (await answered(client, asked)).text.split()[1] != who

    run(conversation())


def test_a_process_that_nobody_uses_ends_when_the_configuration_says(tmp_path: Path) -> None:
    async def conversation() -> None:
        keys = {"process_idle": "200ms", "owned_process_idle": "1h"}
        async with bounded(tmp_path, servers={"it": asker("legacy", **keys)}) as it:
            pool = it.gate.server().apart.pool
            async with modern(it) as client, client_of("legacy", it.gate.url) as session:
                await client.call("it__q_who")
                assert isinstance(session, Legacy)
                own = (await session.call("it__q_who")).text
                await eventually_async(lambda: len(pool.connections) == 1, what="the lease to end")
                assert (await session.call("it__q_who")).text == own
                await it.change_server(
                    "it", asker("legacy", process_idle="1h", owned_process_idle="200ms")
                )
                await eventually_async(lambda: len(pool) == 0, what="the session's to end")

    run(conversation())


def test_clients_that_cannot_be_asked_wait_for_no_process(tmp_path: Path) -> None:
    async def conversation() -> str:
        servers = {"it": asker("legacy", processes=1)}
        async with bounded(tmp_path, servers=servers) as it, modern(it) as client:
            await parked(client, "it__q_ask", WORDS)
            async with client_of("modern", it.gate.url, {}) as other:
                return (await other.call("it__q_who")).text

    assert run(conversation())
