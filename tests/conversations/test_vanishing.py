"""Clients that go away, servers that are busy: nothing is left behind, nobody waits for others.

Source: cases B61, B62, B86; protocol 3.6.
"""

import asyncio
import time

import psutil

from tests.conversations.talking import (
    Client,
    Gate,
    begun,
    called,
    client_of,
    each_era,
)
from tests.kit.http import Answer, Legacy, Modern
from tests.kit.waiting import eventually, eventually_async, run


async def left(client: Client, ms: int) -> None:
    message = called(client, "one__sleep", arguments={"ms": ms})
    async with begun(client, message) as stream:
        await stream.response.read()


@each_era
def test_a_hundred_clients_that_vanish_leave_a_hundred_records_and_nothing_else(
    strict: Gate, era: str
) -> None:
    """Descriptors and calls in flight are back where they were; legacy calls end by themselves."""

    async def warm() -> None:
        async with client_of(era, strict.url) as client:
            await asyncio.gather(*(client.call("one__echo") for _ in range(100)))

    async def converse() -> None:
        since = strict.mark()
        async with client_of(era, strict.url) as client:
            async with asyncio.TaskGroup() as tasks:
                leaving = [tasks.create_task(left(client, 1500)) for _ in range(100)]
                await eventually_async(lambda: len(since.heard("one", "tools/call")) == 100, 15)
                for each in leaving:
                    each.cancel()
            await eventually_async(lambda: strict.number("onegate_calls_in_flight") == 0, 10)

    process = psutil.Process(strict.gateway.pid)
    run(warm())
    base = eventually(lambda: process.num_fds(), what="the base line")
    since = strict.mark()
    run(converse())

    records = since.records(number=100)
    expected = "cancelled" if era == "modern" else "ok"
    assert [record["outcome"] for record in records] == [expected] * 100
    told = len(since.heard("one", "notifications/cancelled"))
    assert told == (100 if era == "modern" else 0)
    eventually(lambda: process.num_fds() <= base + 5, 10, what="descriptors to be closed")
    assert "crashed" not in strict.gateway.text
    assert "Traceback" not in strict.gateway.text


def test_streams_that_vanish_leave_nothing_either(strict: Gate) -> None:
    process = psutil.Process(strict.gateway.pid)

    async def converse() -> None:
        async with client_of("legacy", strict.url) as legacy, Modern.to(strict.url) as modern:
            assert isinstance(legacy, Legacy)
            await modern.call("one__echo")
            before = process.num_fds()
            uris = ["fake://plain"]
            for _ in range(20):
                async with legacy.listening(), modern.listening(resourceSubscriptions=uris):
                    pass
            await eventually_async(lambda: process.num_fds() <= before + 3, 10)

    run(converse())


@each_era
def test_a_call_that_hangs_holds_up_no_other_of_its_server(strict: Gate, era: str) -> None:
    """cases B62: many calls share one pipe; `ping` and lists need none."""

    async def converse() -> float:
        since = strict.mark()
        async with client_of(era, strict.url) as client, client_of(era, strict.url) as other:
            async with asyncio.TaskGroup() as tasks:
                hanging = tasks.create_task(held(other, "one__hang"))
                await since.told("one", "tools/call")
                started = time.monotonic()
                for number in range(10):
                    answer = await client.call("one__echo", {"text": str(number)})
                    assert answer.text == str(number)
                await client.request("tools/list")
                took = time.monotonic() - started
                if isinstance(other, Legacy):
                    await other.notify("notifications/cancelled", {"requestId": "held"})
                else:
                    hanging.cancel()
            return took

    assert run(converse()) < 3.0


async def held(client: Client, name: str) -> Answer:
    message = called(client, name, "held")
    headers = client.routing(message) if isinstance(client, Modern) else {}
    return await client.post(message, headers)


def test_a_server_that_takes_one_call_at_a_time_holds_up_no_other(strict: Gate) -> None:
    async def converse() -> tuple[str, str]:
        since = strict.mark()
        async with Modern.to(strict.url) as client, Modern.to(strict.url) as other:
            async with asyncio.TaskGroup() as tasks:
                slow = tasks.create_task(client.call("two__sleep", {"ms": 700}))
                await since.told("two", "tools/call")
                waits = tasks.create_task(client.call("two__echo", {"text": "after"}))
                beside = await other.call("one__echo", {"text": "beside"})
                assert not slow.done()
                assert not waits.done()
            return beside.text, waits.result().text

    assert run(converse()) == ("beside", "after")


def test_who_vanishes_while_waiting_in_line_gives_the_turn_up(strict: Gate) -> None:
    async def converse() -> str:
        since = strict.mark()
        async with Modern.to(strict.url) as client, Modern.to(strict.url) as other:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(client.call("two__sleep", {"ms": 500}))
                await since.told("two", "tools/call")
                gone = tasks.create_task(held(other, "two__hang"))
                await eventually_async(lambda: strict.number("onegate_calls_in_flight") >= 1)
                gone.cancel()
                after = await client.call("two__echo", {"text": "next"})
            assert len(since.heard("two", "tools/call")) == 2, "the one that left never went out"
            return after.text

    assert run(converse()) == "next"
