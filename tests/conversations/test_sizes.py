"""Large messages, in both directions, up to their bounds and beyond.

Source: cases B15, B19, B20, B83; design: `limits.line` (16 MiB) and `limits.body` (4 MiB).
"""

import asyncio
import time

import pytest

from tests.conversations.talking import Gate, called, client_of, each_era
from tests.kit.http import Answer, Modern
from tests.kit.waiting import run

MIB = 2**20


@each_era
@pytest.mark.parametrize("server", ["old", "new"])
def test_ten_megabytes_come_through_whole(gate: Gate, era: str, server: str) -> None:
    async def converse() -> tuple[int, str]:
        async with client_of(era, gate.url) as client:
            huge = await client.call(f"{server}__huge", {"bytes": 10_000_000})
            return len(huge.text), (await client.call(f"{server}__echo", {"text": "next"})).text

    assert run(converse()) == (10_000_000, "next")


@each_era
def test_a_large_answer_is_one_event_of_a_stream(gate: Gate, era: str) -> None:
    async def converse() -> Answer:
        async with client_of(era, gate.url) as client:
            message = called(client, "old__huge", arguments={"bytes": 5_000_000})
            headers = client.routing(message) if isinstance(client, Modern) else {}
            return await client.post(message, {**headers, "Accept": "text/event-stream"})

    answer = run(converse())

    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert (len(answer.messages), len(answer.text)) == (1, 5_000_000)


def test_a_large_answer_of_one_server_does_not_hold_up_another(gate: Gate) -> None:
    """cases B20."""

    async def converse() -> float:
        async with Modern.to(gate.url) as client, Modern.to(gate.url) as other:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(client.call("old__huge", {"bytes": 12_000_000}))
                worst = 0.0
                for number in range(20):
                    started = time.monotonic()
                    answer = await other.call("new__echo", {"text": str(number)})
                    worst = max(worst, time.monotonic() - started)
                    assert answer.text == str(number)
            return worst

    assert run(converse()) < 2.0, "generous: machines that test are busy"


@each_era
def test_an_answer_beyond_the_bound_fails_its_call_and_no_other(strict: Gate, era: str) -> None:
    since = strict.mark()

    async def converse() -> tuple[Answer, str, str]:
        async with client_of(era, strict.url) as client, client_of(era, strict.url) as other:
            async with asyncio.TaskGroup() as tasks:
                message = called(other, "one__sleep", arguments={"ms": 400})
                headers = other.routing(message) if isinstance(other, Modern) else {}
                slept = tasks.create_task(other.post(message, headers))
                await since.told("one", "tools/call")
                huge = await client.call("one__huge", {"bytes": MIB})
                following = await client.call("one__echo", {"text": "next"})
            return huge, slept.result().text, following.text

    huge, slept, following = run(converse())

    assert huge.result["_meta"]["onegate/error"]["kind"] == "server_error"
    assert "limits.line" in huge.text
    assert (slept, following) == ("slept 400 ms", "next")
    outcomes = sorted(record["outcome"] for record in since.records(number=3))
    assert outcomes == ["ok", "ok", "server_error"]


@each_era
def test_a_body_beyond_the_bound_is_refused_before_anything_is_done(strict: Gate, era: str) -> None:
    since = strict.mark()

    async def converse() -> tuple[Answer, str]:
        async with client_of(era, strict.url) as client:
            fits = await client.call("one__echo", {"text": "x" * 60_000})
            return await client.call("one__echo", {"text": "x" * 70_000}), fits.text

    refused, fits = run(converse())

    assert (refused.status, refused.error["code"]) == (413, -32600)
    assert "limits.body" in refused.error["message"]
    assert len(fits) == 60_000
    assert len(since.heard("one", "tools/call")) == 1
