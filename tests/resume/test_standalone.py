"""The stream of a session itself: one at a time, and nothing is lost between two.

Source: 2025-11-25, basic/transports, "Listening for Messages from the Server".
"""

import asyncio
import json

from tests.conversations.talking import Gate
from tests.kit.http import Legacy
from tests.kit.waiting import run
from tests.resume.breaking import Seen, read_events, session_of

UPDATED = "notifications/resources/updated"


async def watching(client: Legacy) -> None:
    await client.request("resources/subscribe", {"uri": "fake://plain"})


async def touched(client: Legacy) -> None:
    await client.call("old__touch", {"uri": "fake://plain"})


def methods(seen: Seen) -> list[str]:
    return [json.loads(data)["method"] for data in seen.data]


def test_it_begins_with_an_id_to_resume_from(gate: Gate) -> None:
    async def converse() -> Seen:
        async with session_of(gate.url) as client, client.listening() as stream:
            await watching(client)
            await touched(client)
            return await read_events(stream, 1)

    seen = run(converse())

    assert (seen.events[0].id, seen.events[0].data, seen.events[0].retry) == ("0-0", "", "1000")
    assert (seen.ids, methods(seen)) == (["0-1"], [UPDATED])


def test_what_was_sent_over_a_connection_that_died_comes_again_and_only_that(gate: Gate) -> None:
    async def converse() -> tuple[Seen, Seen]:
        async with session_of(gate.url) as client:
            await watching(client)
            async with client.listening() as stream:
                for _ in range(3):
                    await touched(client)
                before = await read_events(stream, 3)
            first = before.ids[0]
            async with client.listening(first) as stream:
                return before, await read_events(stream, 2)

    before, after = run(converse())

    assert after.ids == before.ids[1:]
    assert after.data == before.data[1:]


def test_what_happened_between_two_connections_is_said_on_the_next_once(gate: Gate) -> None:
    async def converse() -> tuple[Seen, Seen]:
        async with session_of(gate.url) as client:
            await watching(client)
            async with client.listening() as stream:
                await touched(client)
                before = await read_events(stream, 1)
            await touched(client)
            async with client.listening(before.last_id) as stream:
                await touched(client)
                return before, await read_events(stream, 2)

    before, after = run(converse())

    assert methods(after) == [UPDATED, UPDATED]
    assert set(before.ids).isdisjoint(after.ids)
    assert len(set(after.ids)) == 2


def test_a_second_one_takes_over_and_the_first_ends(gate: Gate) -> None:
    """cases B70: a reconnecting client never meets a 409."""

    async def converse() -> tuple[Seen, Seen]:
        async with session_of(gate.url) as client:
            await watching(client)
            async with client.listening() as first, client.listening() as second:
                ended = await read_events(first)
                await touched(client)
                return ended, await read_events(second, 1)

    ended, heard = run(converse())

    assert ended.data == []
    assert methods(heard) == [UPDATED]


def test_a_request_is_resumed_beside_the_sessions_own_stream(gate: Gate) -> None:
    async def converse() -> tuple[str, Seen]:
        async with session_of(gate.url) as client:
            await watching(client)
            async with client.listening() as own:
                params = {"name": "old__sleep", "arguments": {"ms": 3000}}
                async with client.opened(client.message("tools/call", params)) as stream:
                    primed = await anext(stream.events)
                    stream.response.close()
                async with client.listening(primed.id) as back:
                    await touched(client)
                    heard, answered = await asyncio.gather(read_events(own, 1), read_events(back))
            return methods(heard)[0], answered

    method, answered = run(converse())

    assert method == UPDATED
    assert len(answered.data) == 1, "the answer, and none of what the session's own stream says"
    assert "result" in json.loads(answered.data[0])
