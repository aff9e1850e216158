"""Streams that get old: they change connections, since what stands between cuts them some day.

Source: 2025-11-25, basic/transports, "Sending Messages" ("the server MAY close the connection
(without terminating the SSE stream) at any time in order to avoid holding a long-lived
connection"); 2026-07-28, basic/patterns/subscriptions, "Cancellation".
"""

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.conversations.talking import Gate, begun, called, client_of, opened_gate, recorded
from tests.kit.http import Legacy, Modern
from tests.kit.waiting import eventually_async, run
from tests.resume.breaking import Seen, long_call, read_events, session_of

FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
AGE = {"stream_age": "400ms"}


@pytest.fixture(scope="module")
def aging(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("aging")
    servers = {
        "old": recorded(folder, "old", "--era", "legacy", protocol="legacy"),
        "new": recorded(folder, "new", "--era", "modern", protocol="modern"),
    }
    with opened_gate(folder, servers, limits=AGE) as gate:
        gate.gateway.wait_tools("old__echo", "new__echo")
        yield gate


async def polled(client: Legacy, message: dict[str, Any]) -> list[Seen]:
    """What a client does whose streams are closed: it goes on from the last event it saw."""
    async with client.opened(message) as stream:
        seen = [await read_events(stream)]
    while not any("result" in json.loads(data) for data in seen[-1].data):
        async with client.listening(seen[-1].last_id) as stream:
            seen.append(await read_events(stream))
    return seen


def test_a_long_call_is_polled_and_nothing_of_it_is_lost_or_comes_twice(aging: Gate) -> None:
    async def converse() -> list[Seen]:
        async with session_of(aging.url) as client:
            return await polled(client, long_call(client, steps=40, ms=50))

    seen = run(converse())

    messages = [json.loads(data) for each in seen for data in each.data]
    steps = [m["params"]["progress"] for m in messages if "method" in m]
    assert steps == list(range(1, 41))
    assert "result" in messages[-1]
    assert len(seen) > 2


def test_the_last_event_before_tells_where_to_go_on_and_when(aging: Gate) -> None:
    """2025-11-25: "it SHOULD send an SSE event with a standard `retry` field before"."""

    async def converse() -> Seen:
        async with session_of(aging.url) as client:
            message = called(client, "old__hang", "hangs")
            async with client.opened(message) as stream:
                seen = await read_events(stream)
            await client.notify("notifications/cancelled", {"requestId": "hangs"})
            return seen

    last = run(converse()).events[-1]

    assert (last.data, last.retry) == ("", "1000")
    assert last.id


def test_the_connection_is_closed_with_the_stream(aging: Gate) -> None:
    """The call goes on, and would hold up whatever came next over the same connection."""

    async def converse() -> float:
        one = aiohttp.TCPConnector(limit=1)
        async with aiohttp.ClientSession(connector=one) as http:
            client = Legacy(http, aging.url)
            await client.initialize()
            message = called(client, "old__hang", "hangs")
            async with client.opened(message) as stream:
                await read_events(stream)
            began = asyncio.get_running_loop().time()
            assert (await client.request("ping")).result == {}
            took = asyncio.get_running_loop().time() - began
            await client.notify("notifications/cancelled", {"requestId": "hangs"})
            return took

    assert run(converse()) < 2


def test_a_large_answer_is_there_for_the_client_that_comes_back(aging: Gate) -> None:
    """What went out over the first connection was not the answer."""

    async def converse() -> list[Seen]:
        async with session_of(aging.url) as client:
            message = called(client, "old__huge", arguments={"bytes": 1 << 19, "ms": 1500})
            return await polled(client, message)

    seen = run(converse())

    assert len(seen) > 1
    assert len(seen[-1].data[-1]) > 512 * 1024


def test_the_sessions_own_stream_changes_too_and_misses_nothing(aging: Gate) -> None:
    async def converse() -> list[str]:
        heard: list[str] = []
        async with session_of(aging.url) as client:
            await client.request("resources/subscribe", {"uri": "fake://plain"})

            async def listen() -> None:
                last = None
                while True:
                    async with client.listening(last) as stream:
                        seen = await read_events(stream)
                    heard.extend(seen.ids)
                    last = seen.last_id

            async with asyncio.TaskGroup() as tasks:
                hearing = tasks.create_task(listen())
                for _ in range(30):
                    await client.call("old__touch", {"uri": "fake://plain"})
                await eventually_async(lambda: len(heard) >= 30, 15)
                hearing.cancel()
        return heard

    assert run(converse()) == [f"0-{number}" for number in range(1, 31)]


def test_a_question_is_asked_over_the_connection_that_is_there_then(aging: Gate) -> None:
    async def converse() -> Any:
        async with Legacy.to(aging.url) as client:
            await client.initialize(capabilities={"elicitation": {}})
            asks = {"method": "elicitation/create", "params": FORM, "ms": 1500}
            message = called(client, "old__ask", arguments=asks)
            async with client.opened(message) as stream:
                seen = await read_events(stream)
            while not seen.data:
                async with client.listening(seen.last_id) as stream:
                    seen = await read_events(stream, 1)
            return json.loads(seen.data[0])

    assert run(converse())["method"] == "elicitation/create"


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_streams_of_revisions_that_do_not_poll_get_as_old_as_they_like(
    aging: Gate, revision: str
) -> None:
    async def converse() -> Seen:
        async with (
            session_of(aging.url, revision) as client,
            client.opened(long_call(client, steps=30, ms=50)) as stream,
        ):
            return await read_events(stream)

    assert len(run(converse()).data) == 31


def test_a_call_of_a_modern_client_is_left_alone(aging: Gate) -> None:
    """To close its stream is to cancel it."""

    async def converse() -> Seen:
        async with Modern.to(aging.url) as client:
            meta = {"_meta": {"progressToken": 1}}
            message = called(client, "new__progress", arguments={"steps": 30, "ms": 50}, **meta)
            async with begun(client, message) as stream:
                return await read_events(stream)

    assert len(run(converse()).data) == 31


def test_a_listen_ends_with_the_result_that_says_so(aging: Gate) -> None:
    async def converse() -> dict[str, Any]:
        async with Modern.to(aging.url) as client, client.listening(toolsListChanged=True) as ear:
            return await ear.message()

    closing = run(converse())

    assert closing["result"]["resultType"] == "complete"
    assert closing["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == closing["id"]


def test_without_a_bound_streams_stay(tmp_path: Path) -> None:
    """And one that a reload sets is for streams that are open already, too."""
    servers = {"old": recorded(tmp_path, "old", "--era", "legacy", protocol="legacy")}

    async def converse(gate: Gate) -> None:
        async with client_of("legacy", gate.url) as client:
            assert isinstance(client, Legacy)
            async with client.listening() as stream, asyncio.TaskGroup() as tasks:
                reading = tasks.create_task(read_events(stream))
                await asyncio.wait({reading}, timeout=1.5)
                assert not reading.done()
                file = gate.gateway.file
                file.write_text(json.dumps({**json.loads(file.read_text()), "limits": AGE}))
                gate.gateway.program.send(signal.SIGHUP)
                assert (await reading).events[-1].retry == "1000"

    with opened_gate(tmp_path, servers) as gate:
        run(converse(gate))
