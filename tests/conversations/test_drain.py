"""TERM: what can finish finishes, streams end as they should, and the gateway leaves in time.

Source: issue, section 5; 2026-07-28 basic/patterns/subscriptions (the closing result).
"""

import asyncio
import signal
import time
from pathlib import Path

import aiohttp
import pytest

from tests.conversations.talking import (
    Gate,
    Message,
    P,
    called,
    client_of,
    each_era,
    opened_gate,
    recorded,
)
from tests.kit.http import Answer, Legacy, Modern
from tests.kit.waiting import run


def test_calls_finish_streams_end_and_readiness_goes_first(tmp_path: Path) -> None:
    servers = {"one": recorded(tmp_path, "one", "--lock")}

    async def converse(gate: Gate) -> tuple[list[str], list[Message], int, bool]:
        since = gate.mark()
        async with (
            Modern.to(gate.url) as modern,
            client_of("legacy", gate.url) as legacy,
            modern.listening(toolsListChanged=True) as listen,
        ):
            assert isinstance(legacy, Legacy)
            async with legacy.listening() as stream, asyncio.TaskGroup() as tasks:
                told = {"ms": 1200}
                calls = [
                    tasks.create_task(client.call("one__sleep", told))
                    for client in (modern, legacy)
                ]
                await since.told("one", "tools/call", number=2)
                gate.gateway.program.send(signal.SIGTERM)
                last = [await listen.message()]
                with pytest.raises(AssertionError, match="the stream ended"):
                    await listen.message()
                with pytest.raises(AssertionError, match="the stream ended"):
                    await stream.message()
                ready = gate.gateway.status("/readyz")
                alive = not any(call.done() for call in calls)
                with pytest.raises(aiohttp.ClientConnectionError):
                    async with Modern.to(gate.url) as late:
                        await late.call("one__echo")
            legacy.session = None  # it is of no use any more
            return [call.result().text for call in calls], last, ready, alive

    with opened_gate(tmp_path, servers) as gate:
        gate.gateway.wait_tools("one__echo")
        texts, last, ready, alive = run(converse(gate))
        assert gate.gateway.program.wait_exit(10) == 0

    assert alive, "streams end and readiness goes while calls still run"
    assert ready == 503
    assert texts == ["slept 1200 ms"] * 2
    (closing,) = last
    assert closing["result"]["resultType"] == "complete"
    assert closing["result"]["_meta"][f"{P}subscriptionId"] == closing["id"]
    assert [record["outcome"] for record in gate.records()] == ["ok"] * 2


@each_era
def test_on_a_stream_the_end_of_what_does_not_finish_names_its_request(
    tmp_path: Path, era: str
) -> None:
    """Its status is long out: a client waits for the id it gave."""
    servers = {"one": recorded(tmp_path, "one", "--era", era, protocol=era)}
    told = {"arguments": {"steps": 1, "hang": True}, "_meta": {"progressToken": 7}}

    async def converse(gate: Gate) -> Message:
        async with client_of(era, gate.url) as client:
            message = called(client, "one__progress", "mine", **told)
            headers = client.routing(message) if isinstance(client, Modern) else {}
            async with client.opened(message, headers) as stream:
                assert (await stream.message())["method"] == "notifications/progress"
                gate.gateway.program.send(signal.SIGTERM)
                last = await stream.message()
            if isinstance(client, Legacy):
                client.session = None
            return last

    with opened_gate(tmp_path, servers, limits={"drain": "300ms"}) as gate:
        gate.gateway.wait_tools("one__progress")
        last = run(converse(gate))
        assert gate.gateway.program.wait_exit(10) == 0

    assert last["id"] == "mine"
    assert "stopping" in last["error"]["message"]


def test_what_does_not_finish_is_ended_told_and_written_down(tmp_path: Path) -> None:
    told = ("--era", "modern", "--stubborn")
    servers = {"one": recorded(tmp_path, "one", *told, protocol="modern", stop_grace="300ms")}

    async def converse(gate: Gate) -> list[Answer]:
        since = gate.mark()
        async with Modern.to(gate.url) as modern, client_of("legacy", gate.url) as legacy:
            async with asyncio.TaskGroup() as tasks:
                calls = [
                    tasks.create_task(client.post(message, headers))
                    for client in (modern, legacy)
                    for message in [called(client, "one__hang", "mine")]
                    for headers in [modern.routing(message) if client is modern else {}]
                ]
                await since.told("one", "tools/call", number=2)
                gate.gateway.program.send(signal.SIGINT)
            assert isinstance(legacy, Legacy)
            legacy.session = None
            return [call.result() for call in calls]

    with opened_gate(tmp_path, servers, limits={"drain": "500ms"}) as gate:
        gate.gateway.wait_tools("one__echo")
        started = time.monotonic()
        answers = run(converse(gate))
        code = gate.gateway.program.wait_exit(10)
        took = time.monotonic() - started

    assert code == 0
    assert [answer.status for answer in answers] == [503, 503]
    assert all("stopping" in answer.error["message"] for answer in answers)
    assert took < 10
    assert [record["outcome"] for record in gate.records()] == ["cancelled"] * 2
