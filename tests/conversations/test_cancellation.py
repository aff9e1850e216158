"""What ends a call before its answer, and who is told.

Source: basic/utilities/cancellation of 2025-11-25 and 2026-07-28; basic/transports: a modern
client cancels by closing its connection, for a legacy one that cancels nothing.
"""

import asyncio
from typing import Any

import pytest

from tests.conversations.talking import (
    Client,
    Gate,
    Message,
    begun,
    called,
    client_of,
    each_pair,
    each_server,
)
from tests.kit.http import Answer, Legacy, Modern
from tests.kit.waiting import eventually_async, run

CANCELLED = "notifications/cancelled"


def down_id(heard: list[Message]) -> Any:
    """Under which id a server got the call."""
    return next(each["id"] for each in heard if each.get("method") == "tools/call")


async def drop(client: Client, gate: Gate, server: str, tool: str, **arguments: Any) -> None:
    """Call, and close the connection once the server has the call."""
    since = gate.mark()
    message = called(client, f"{server}__{tool}", arguments=arguments)
    async with asyncio.TaskGroup() as tasks:
        posting = tasks.create_task(held(client, message))
        await since.told(server, "tools/call")
        posting.cancel()


async def held(client: Client, message: Message) -> None:
    async with begun(client, message) as stream:
        await stream.response.read()


@each_server
def test_a_modern_client_that_leaves_cancels_its_call(gate: Gate, server: str) -> None:
    since = gate.mark()

    async def converse() -> Message:
        async with Modern.to(gate.url) as client:
            await drop(client, gate, server, "hang")
            return (await since.told(server, CANCELLED))[0]

    told = run(converse())

    assert told["params"]["requestId"] == down_id(since.heard(server))
    assert since.records(number=1)[0]["outcome"] == "cancelled"


@each_server
def test_a_modern_client_that_leaves_in_the_middle_of_its_stream_cancels_too(
    gate: Gate, server: str
) -> None:
    since = gate.mark()

    async def converse() -> Message:
        async with Modern.to(gate.url) as client:
            told = {"steps": 1, "ms": 1, "hang": True}
            meta = {"progressToken": 1}
            message = called(client, f"{server}__progress", arguments=told, _meta=meta)
            async with begun(client, message) as stream:
                await stream.message()
            return (await since.told(server, CANCELLED))[0]

    told = run(converse())

    assert told["params"]["requestId"] == down_id(since.heard(server))


@each_server
def test_a_legacy_client_that_leaves_cancels_nothing(gate: Gate, server: str) -> None:
    """The call goes on to its end and into the record (cases B61, B86)."""
    since = gate.mark()

    async def converse() -> None:
        async with client_of("legacy", gate.url) as client:
            await drop(client, gate, server, "sleep", ms=200)
            await asyncio.to_thread(since.records, number=1)

    run(converse())

    assert [record["outcome"] for record in since.records(number=1)] == ["ok"]
    assert not since.heard(server, CANCELLED)


@each_server
def test_a_legacy_client_cancels_by_saying_so(gate: Gate, server: str) -> None:
    since = gate.mark()

    async def converse() -> tuple[Answer, Message]:
        async with client_of("legacy", gate.url) as client:
            assert isinstance(client, Legacy)
            async with asyncio.TaskGroup() as tasks:
                message = called(client, f"{server}__hang", "mine")
                posted = tasks.create_task(client.post(message))
                await since.told(server, "tools/call")
                reason = {"requestId": "mine", "reason": "changed my mind"}
                accepted = await client.notify(CANCELLED, reason)
                assert (accepted.status, accepted.body) == (202, b"")
                told = (await since.told(server, CANCELLED))[0]
            return posted.result(), told

    answer, told = run(converse())

    assert told["params"]["requestId"] == down_id(since.heard(server))
    assert (answer.status, answer.final["id"]) == (200, "mine")
    assert answer.error["data"]["kind"] == "cancelled"
    assert since.records(number=1)[0]["outcome"] == "cancelled"


def test_only_the_sessions_own_call_is_cancelled(gate: Gate) -> None:
    """Another session's id, another type of id, an id that has ended: nothing happens."""
    since = gate.mark()

    async def converse() -> Answer:
        async with (
            client_of("legacy", gate.url) as client,
            client_of("legacy", gate.url) as other,
        ):
            assert isinstance(client, Legacy)
            assert isinstance(other, Legacy)
            async with asyncio.TaskGroup() as tasks:
                message = called(client, "old__sleep", 5, arguments={"ms": 300})
                posted = tasks.create_task(client.post(message))
                await since.told("old", "tools/call")
                await other.notify(CANCELLED, {"requestId": 5})
                for id_ in ("5", 1, None, {"a": 1}, [5]):
                    answer = await client.notify(CANCELLED, {"requestId": id_})
                    assert answer.status == 202
                await client.notify(CANCELLED)
            return posted.result()

    assert run(converse()).text == "slept 300 ms"
    assert not since.heard("old", CANCELLED)


def test_cancelling_twice_is_cancelling_once_and_the_connection_serves_on(gate: Gate) -> None:
    since = gate.mark()

    async def converse() -> list[str]:
        async with client_of("legacy", gate.url) as client, Legacy.to(gate.url) as beside:
            assert isinstance(client, Legacy)
            beside.headers |= client.headers
            async with asyncio.TaskGroup() as tasks:
                posted = tasks.create_task(client.post(called(client, "old__hang", 5)))
                await since.told("old", "tools/call")
                both = [beside.notify(CANCELLED, {"requestId": 5}) for _ in range(4)]
                await asyncio.gather(*both)
            assert posted.result().error["data"]["kind"] == "cancelled"
            return [(await client.call("old__echo", {"text": str(n)})).text for n in range(5)]

    assert run(converse()) == ["0", "1", "2", "3", "4"]
    assert len(since.heard("old", CANCELLED)) == 1


@each_pair
def test_an_answer_that_comes_after_all_is_dropped(gate: Gate, era: str, server: str) -> None:
    """cases B26: the calls after it get their own answers."""
    since = gate.mark()

    async def converse() -> list[str]:
        async with client_of(era, gate.url) as client:
            async with asyncio.TaskGroup() as tasks:
                message = called(
                    client, f"{server}__sleep", 1, arguments={"ms": 150, "stubborn": True}
                )
                posting = tasks.create_task(held(client, message))
                await since.told(server, "tools/call")
                if isinstance(client, Legacy):
                    await client.notify(CANCELLED, {"requestId": 1})
                else:
                    posting.cancel()
            await since.told(server, CANCELLED)
            told = {"ms": 250}
            slept = await client.call(f"{server}__sleep", told)
            return [slept.text] + [
                (await client.call(f"{server}__echo", {"text": str(n)})).text for n in range(5)
            ]

    assert run(converse()) == ["slept 250 ms", "0", "1", "2", "3", "4"]


@pytest.mark.parametrize("method", ["tools/list", "ping"])
def test_initialize_and_what_has_ended_cannot_be_cancelled(gate: Gate, method: str) -> None:
    async def converse() -> list[Answer]:
        async with Legacy.to(gate.url) as client:
            await client.initialize()
            assert (await client.notify(CANCELLED, {"requestId": 1})).status == 202
            done = await client.request(method, id_=9)
            assert (await client.notify(CANCELLED, {"requestId": 9})).status == 202
            return [done, await client.request(method, id_=9)]

    assert all("result" in answer.final for answer in run(converse()))


@pytest.mark.parametrize("no_id", [True, 1.0, "1", None, [1]])
def test_what_is_no_id_or_another_cancels_nothing(gate: Gate, no_id: Any) -> None:
    async def converse() -> Answer:
        since = gate.mark()
        async with client_of("legacy", gate.url) as client:
            assert isinstance(client, Legacy)
            async with asyncio.TaskGroup() as tasks:
                message = called(client, "old__sleep", 1, arguments={"ms": 300})
                slept = tasks.create_task(client.post(message))
                await since.told("old", "tools/call")
                await client.notify("notifications/cancelled", {"requestId": no_id})
            return slept.result()

    assert run(converse()).text == "slept 300 ms"


def test_what_a_modern_client_says_of_cancelling_is_taken_without_a_word(gate: Gate) -> None:
    """2026-07-28: on HTTP, closing the stream cancels; there is no message for it."""
    since = gate.mark()

    async def converse() -> tuple[Answer, Answer]:
        async with Modern.to(gate.url) as client, Modern.to(gate.url) as beside:
            async with asyncio.TaskGroup() as tasks:
                message = called(client, "old__sleep", 5, arguments={"ms": 200})
                posted = tasks.create_task(client.post(message, client.routing(message)))
                await since.told("old", "tools/call")
                body = {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": 5}}
                told = await beside.post(body, {"MCP-Protocol-Version": "2026-07-28"})
            return told, posted.result()

    told, answer = run(converse())

    assert (told.status, told.body, answer.text) == (202, b"", "slept 200 ms")


WAITING: dict[str, Message] = {
    "prompts/get": {"name": "mute__greet"},
    "resources/read": {"uri": "mute+fake://plain"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "mute__greet"},
        "argument": {"name": "name", "value": "a"},
    },
}


@pytest.fixture(scope="module")
def mute(strict: Gate) -> Gate:
    """With a server that answers nothing any more."""

    async def converse() -> None:
        async with Modern.to(strict.url) as client:
            await client.call("mute__stop_reading")

    run(converse())
    return strict


@pytest.mark.parametrize("method", WAITING)
def test_whatever_waits_for_a_server_can_be_cancelled(mute: Gate, method: str) -> None:
    """Every request may be but initialize (2025-11-25 basic/utilities/cancellation)."""

    async def converse() -> Answer:
        async with client_of("legacy", mute.url) as client:
            assert isinstance(client, Legacy)
            async with asyncio.TaskGroup() as tasks:
                message = client.message(method, WAITING[method], id_="mine")
                posted = tasks.create_task(client.post(message))
                await eventually_async(lambda: mute.number("onegate_calls_in_flight") == 1)
                await client.notify(CANCELLED, {"requestId": "mine"})
            return posted.result()

    answer = run(converse(), within_s=10)

    assert answer.error["data"]["kind"] == "cancelled"
    assert mute.number("onegate_calls_in_flight") == 0


@pytest.mark.parametrize("method", WAITING)
def test_whatever_waits_for_a_server_ends_with_its_modern_client(mute: Gate, method: str) -> None:
    async def converse() -> None:
        async with Modern.to(mute.url) as client:
            async with asyncio.TaskGroup() as tasks:
                posting = tasks.create_task(held(client, client.message(method, WAITING[method])))
                await eventually_async(lambda: mute.number("onegate_calls_in_flight") == 1)
                assert not posting.done()  # it waits: nothing else has ended it
                posting.cancel()
            await eventually_async(lambda: mute.number("onegate_calls_in_flight") == 0)
            assert posting.cancelled()

    run(converse(), within_s=10)

    assert mute.number("onegate_calls_in_flight") == 0
