"""Answers whose stream broke, fetched over another one.

Source: 2025-11-25, basic/transports, "Resumability and Redelivery" and "Sending Messages".
"""

import asyncio
import json

import pytest

from tests.conversations.talking import Gate, called
from tests.kit.http import Legacy, Modern
from tests.kit.waiting import eventually_async, run
from tests.resume.breaking import (
    Seen,
    broken_off,
    long_call,
    read_events,
    resumed,
    session_of,
)


def steps(seen: Seen) -> list[int]:
    """The reports of progress among the events, in order."""
    messages = [json.loads(data) for data in seen.data]
    return [m["params"]["progress"] for m in messages if m.get("method")]


async def refusal(client: Legacy, last_id: str) -> tuple[int, str]:
    told = {**client.headers, "Accept": "text/event-stream", "Last-Event-ID": last_id}
    async with client.http.get(client.url, headers=told) as response:
        return response.status, await response.text()


def test_a_stream_begins_with_an_event_without_data_that_tells_an_id_and_when_to_retry(
    gate: Gate,
) -> None:
    async def converse() -> Seen:
        async with session_of(gate.url) as client, client.opened(long_call(client)) as stream:
            return await read_events(stream)

    seen = run(converse())

    first = seen.events[0]
    assert (first.data, first.id, first.retry) == ("", "1-0", "1000")
    assert seen.ids == [f"1-{number}" for number in range(1, len(seen.ids) + 1)]


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
def test_older_clients_get_ids_but_no_event_without_data(gate: Gate, revision: str) -> None:
    """Their SDKs hand the empty data to a JSON parser (cases B72)."""

    async def converse() -> Seen:
        async with (
            session_of(gate.url, revision) as client,
            client.opened(long_call(client)) as stream,
        ):
            return await read_events(stream)

    seen = run(converse())

    assert all(event.data for event in seen.events)
    assert seen.events[0].id == "1-1"


def test_a_broken_stream_goes_on_where_its_client_lost_it_and_ends_with_the_answer(
    gate: Gate,
) -> None:
    async def converse() -> tuple[Seen, Seen]:
        async with session_of(gate.url) as client:
            before = await broken_off(client, long_call(client), 3)
            return before, await resumed(client, before.last_id)

    before, after = run(converse())

    assert steps(before) + steps(after) == [1, 2, 3, 4, 5, 6, 7, 8], "nothing twice, nothing lost"
    assert "result" in json.loads(after.data[-1])
    assert len({*before.ids, *after.ids}) == 9


def test_an_answer_that_came_while_nobody_listened_is_kept(gate: Gate) -> None:
    async def converse() -> Seen:
        async with session_of(gate.url) as client:
            since = gate.mark()
            before = await broken_off(client, long_call(client, steps=4), 1)
            await asyncio.to_thread(since.records, number=1)
            return await resumed(client, before.last_id)

    after = run(converse())

    assert steps(after) == [2, 3, 4]
    assert "result" in json.loads(after.data[-1])


def test_an_answer_can_be_fetched_as_often_as_it_was_lost(gate: Gate) -> None:
    async def converse() -> list[Seen]:
        async with session_of(gate.url) as client:
            before = await broken_off(client, long_call(client, steps=3), 1)
            return [await resumed(client, before.last_id) for _ in range(3)]

    first, second, third = run(converse())

    assert first.data == second.data == third.data


def test_a_call_that_says_nothing_becomes_a_stream_soon_so_that_it_can_be_resumed(
    gate: Gate,
) -> None:
    async def converse() -> tuple[Seen, Seen]:
        async with session_of(gate.url) as client:
            message = called(client, "old__sleep", arguments={"ms": 4000})
            async with client.opened(message) as stream:
                assert stream.response.content_type == "text/event-stream"
                primed = Seen([await anext(stream.events)])
                stream.response.close()
            return primed, await resumed(client, primed.last_id)

    primed, after = run(converse())

    assert primed.data == []
    assert "result" in json.loads(after.data[-1])


def test_a_quick_answer_stays_plain_json(gate: Gate) -> None:
    async def converse() -> str:
        async with session_of(gate.url) as client:
            answer = await client.call("old__echo", {"text": "hi"})
            return answer.headers["Content-Type"]

    assert run(converse()) == "application/json"


def test_of_two_streams_only_the_named_one_is_replayed(gate: Gate) -> None:
    """cases B72: no event twice, and none of the other."""

    async def converse() -> tuple[Seen, Seen, Seen]:
        async with session_of(gate.url) as client:
            other = long_call(client, steps=6)
            async with client.opened(other) as kept:
                begun = await read_events(kept, 1)
                lost = await broken_off(client, long_call(client, steps=6), 2)
                back = await resumed(client, lost.last_id)
                rest = await read_events(kept)
            return lost, back, Seen(begun.events + rest.events)

    lost, back, kept = run(converse())

    assert steps(lost) + steps(back) == [1, 2, 3, 4, 5, 6]
    assert steps(kept) == [1, 2, 3, 4, 5, 6]
    streams = {each.partition("-")[0] for each in lost.ids + back.ids}
    assert streams.isdisjoint(each.partition("-")[0] for each in kept.ids)


def test_a_stream_that_is_resumed_while_it_still_stands_goes_over_to_the_new_connection(
    gate: Gate,
) -> None:
    """A connection that died without a word looks alive to the gateway."""

    async def converse() -> tuple[Seen, Seen]:
        async with session_of(gate.url) as client, client.opened(long_call(client)) as stream:
            before = await read_events(stream, 2)
            after = await resumed(client, before.last_id)
            rest = await read_events(stream)
            return Seen(before.events + rest.events), after

    old, new = run(converse())

    assert "result" in json.loads(new.data[-1])
    assert not any("result" in json.loads(data) for data in old.data)
    assert set(steps(old)) | set(steps(new)) == set(range(1, 9))


@pytest.mark.parametrize("last_id", ["7-1", "1-99", "x", "-1", "1", "0-5", "1-1-1", "٣-1"])
def test_an_event_that_never_was_cannot_be_resumed_from(gate: Gate, last_id: str) -> None:
    async def converse() -> tuple[int, str]:
        async with session_of(gate.url) as client:
            await broken_off(client, long_call(client, steps=1), 1)
            return await refusal(client, last_id)

    status, body = run(converse())

    assert status == 400, "404 would say that the session is gone"
    assert "Last-Event-ID names no event of this session" in body


def test_the_streams_of_a_session_are_nothing_to_another(gate: Gate) -> None:
    async def converse() -> list[int]:
        async with session_of(gate.url) as mine, session_of(gate.url) as other:
            before = await broken_off(mine, long_call(mine), 2)
            statuses = [(await refusal(other, before.last_id))[0]]
            await mine.delete()
            return [*statuses, (await refusal(mine, before.last_id))[0]]

    assert run(converse()) == [400, 404]


def test_a_resumed_call_can_be_cancelled_and_then_its_stream_ends_with_the_error(
    gate: Gate,
) -> None:
    async def converse() -> Seen:
        async with session_of(gate.url) as client:
            message = long_call(client, steps=400)
            before = await broken_off(client, message, 1)
            async with client.listening(before.last_id) as stream:
                await read_events(stream, 1)
                await client.notify("notifications/cancelled", {"requestId": message["id"]})
                return await read_events(stream)

    assert "error" in json.loads(run(converse()).data[-1])


def test_a_call_whose_client_is_away_goes_on_at_the_server(gate: Gate) -> None:
    """2025-11-25: a disconnection is not a cancellation."""

    async def converse() -> int:
        async with session_of(gate.url) as client:
            since = gate.mark()
            await broken_off(client, long_call(client, steps=5), 1)
            await eventually_async(lambda: since.records(number=1))
            return len(since.heard("old", "notifications/cancelled"))

    assert run(converse()) == 0


def test_a_connection_lost_before_there_was_a_stream_cancels_nothing_either(gate: Gate) -> None:
    """Its answer cannot be fetched, since the client has seen no event to resume from."""

    async def converse() -> str:
        async with session_of(gate.url) as client, asyncio.TaskGroup() as tasks:
            calling = tasks.create_task(client.call("old__sleep", {"ms": 400}))
            await since.told("old", "tools/call")
            calling.cancel()
            await eventually_async(lambda: since.records(number=1))
            return (await client.call("old__echo", {"text": "the session lives"})).text

    since = gate.mark()
    assert run(converse()) == "the session lives"

    assert since.records(number=2)[0]["outcome"] == "ok"
    assert since.heard("old", "notifications/cancelled") == []


def test_streams_of_modern_clients_have_no_ids(gate: Gate) -> None:
    async def converse() -> Seen:
        async with Modern.to(gate.url) as client:
            params = {
                "name": "old__progress",
                "arguments": {"steps": 3},
                "_meta": {"progressToken": 1},
            }
            async with client.streaming("tools/call", params) as stream:
                return await read_events(stream)

    seen = run(converse())

    assert len(seen.data) == 4
    assert [event.id for event in seen.events] == [None] * 4


def test_a_batch_that_is_answered_as_a_stream_has_an_event_for_each_answer(gate: Gate) -> None:
    """2025-03-26: responses may come one by one; SDK clients read no arrays from events."""

    async def converse() -> Seen:
        async with session_of(gate.url, "2025-03-26") as client:
            batch = [long_call(client, steps=2), client.message("ping"), long_call(client, 1)]
            async with client.opened(batch) as stream:
                return await read_events(stream)

    seen = run(converse())

    messages = [json.loads(data) for data in seen.data]
    assert all(isinstance(message, dict) for message in messages)
    assert [m["id"] for m in messages if "result" in m] == [2, 3, 4]
    assert len(set(seen.ids)) == len(messages)


def test_a_batch_for_a_client_that_takes_streams_alone_is_no_array(gate: Gate) -> None:
    async def converse() -> Seen:
        async with session_of(gate.url, "2025-03-26") as client:
            batch = [client.message("ping"), client.message("ping")]
            async with client.opened(batch, {"Accept": "text/event-stream"}) as stream:
                return await read_events(stream)

    assert [json.loads(data)["id"] for data in run(converse()).data] == [2, 3]
