"""Answers that begin before they are complete, and streams clients hold open."""

import asyncio
import json

import pytest

from gateway.edge.sse import MOST_EVENTS
from gateway.eras.sides import Answer, Posted, Reply
from gateway.protocol.jsonrpc import Notification, Request
from tests.edge.serving import (
    OK,
    FakeEntrance,
    Raw,
    asked,
    connected,
    events,
    log_line,
    progress,
    serving,
)
from tests.kit.waiting import run

FAST = {"keep_alive_s": 0.08}
RESULT = json.loads(OK.body or b"")


def test_an_answer_is_json_unless_something_is_said_before_it() -> None:
    async def main() -> None:
        async with serving(FakeEntrance()) as served:
            answer = await asked(served)
            assert answer.headers["content-type"] == "application/json"
            assert answer.headers["content-length"] == str(len(OK.body or b""))
            assert answer.json == RESULT

    run(main())


def test_the_first_message_turns_the_answer_into_a_stream_that_ends_with_the_result() -> None:
    async def main() -> None:
        seen: list[bool] = []

        async def work(posted: Posted, reply: Reply) -> Answer:
            seen.append(reply.streaming)
            reply.push(progress(1))
            seen.append(reply.streaming)
            reply.push(log_line("half way"))
            reply.push(Request(7, "elicitation/create", {}))
            return OK

        async with serving(FakeEntrance(work)) as served:
            answer = await asked(served, Accept_Encoding="gzip, deflate")
        assert seen == [False, True]
        assert answer.status == 200
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["cache-control"] == "no-cache, no-transform"
        assert answer.headers["x-accel-buffering"] == "no"
        assert "content-encoding" not in answer.headers
        first, second, third, last = events(answer.body)
        assert first["params"]["progress"] == 1
        assert second["params"]["data"] == "half way"
        assert (third["id"], third["method"]) == (7, "elicitation/create")
        assert last == RESULT

    run(main())


def test_the_connection_serves_the_next_request_after_a_stream() -> None:
    async def main() -> None:
        async def work(posted: Posted, reply: Reply) -> Answer:
            if posted.body == b'"say"':
                reply.push(progress(1))
            return OK

        async with serving(FakeEntrance(work)) as served, connected(served) as client:
            for body in (b'"say"', b"{}", b'"say"'):
                client.post(body)
                assert (await client.response()).status == 200

    run(main())


def test_a_message_goes_out_before_the_answer_is_there() -> None:
    async def main() -> None:
        done = asyncio.Event()

        async def work(posted: Posted, reply: Reply) -> Answer:
            reply.push(progress(1))
            await done.wait()
            return OK

        async with serving(FakeEntrance(work)) as served, connected(served) as client:
            client.post()
            await client.head()
            assert events(await client.chunk())[0]["params"]["progress"] == 1
            done.set()
            assert events(await client.chunk()) == [RESULT]
            assert await client.chunk() == b""

    run(main())


def test_line_breaks_between_tokens_do_not_break_an_event() -> None:
    async def main() -> None:
        async def work(posted: Posted, reply: Reply) -> Answer:
            reply.push(progress(1))
            return Answer(200, b'{"jsonrpc": "2.0",\r\n "id": 1,\n "result": {}}')

        async with serving(FakeEntrance(work)) as served:
            assert events((await asked(served)).body)[1] == RESULT

    run(main())


def test_a_client_of_json_alone_gets_json_and_nothing_before_it() -> None:
    async def main() -> None:
        async def work(posted: Posted, reply: Reply) -> Answer:
            reply.push(progress(1))
            reply.stream()
            assert not reply.streaming
            return OK

        async with serving(FakeEntrance(work), pulse=FAST) as served:
            answer = await asked(served, Accept="application/json")
            assert answer.json == RESULT

    run(main())


def test_a_client_of_streams_alone_gets_one_with_the_answers_own_headers() -> None:
    async def main() -> None:
        async def work(posted: Posted, reply: Reply) -> Answer:
            return Answer(200, OK.body, {"Mcp-Session-Id": "abc"})

        async with serving(FakeEntrance(work)) as served:
            answer = await asked(served, Accept="text/event-stream")
            assert events(answer.body) == [RESULT]
            assert answer.headers["mcp-session-id"] == "abc"

    run(main())


@pytest.mark.parametrize("status", [202, 400, 404])
def test_what_is_no_result_keeps_its_status_even_for_a_client_of_streams(status: int) -> None:
    async def main() -> None:
        body = None if status == 202 else b'{"jsonrpc":"2.0","id":1,"error":{}}'

        async def work(posted: Posted, reply: Reply) -> Answer:
            return Answer(status, body)

        async with serving(FakeEntrance(work)) as served:
            answer = await asked(served, Accept="text/event-stream")
            assert (answer.status, answer.body) == (status, body or b"")

    run(main())


def test_after_silence_an_answer_becomes_a_stream_of_comments() -> None:
    """Case B71: proxies cut what says nothing."""

    async def main() -> None:
        done = asyncio.Event()

        async def work(posted: Posted, reply: Reply) -> Answer:
            await done.wait()
            return OK

        async with (
            serving(FakeEntrance(work), pulse=FAST) as served,
            connected(served) as client,
        ):
            client.post()
            assert (await client.head()).headers["content-type"] == "text/event-stream"
            for _ in range(4):
                assert await client.chunk() == b": keep-alive\n\n"
            done.set()
            rest = b""
            while chunk := await client.chunk():
                rest += chunk
            assert events(rest) == [RESULT]

    run(main())


@pytest.mark.parametrize("accept", ["application/json", "*/*", None])
def test_who_did_not_name_streams_is_not_given_one_for_waiting(accept: str | None) -> None:
    async def main() -> None:
        async def work(posted: Posted, reply: Reply) -> Answer:
            await asyncio.sleep(FAST["keep_alive_s"] * 4)  # comments would be due by now
            return OK

        async with serving(FakeEntrance(work), pulse=FAST) as served:
            assert (await asked(served, Accept=accept)).json == RESULT

    run(main())


def test_a_wildcard_is_enough_for_what_was_asked_for() -> None:
    async def main() -> None:
        async def work(posted: Posted, reply: Reply) -> Answer:
            reply.push(progress(1))
            return OK

        async with serving(FakeEntrance(work)) as served:
            assert len(events((await asked(served, Accept="*/*")).body)) == 2

    run(main())


def test_a_stream_asked_for_sends_its_head_and_a_first_byte_at_once() -> None:
    async def main() -> None:
        done = asyncio.Event()

        async def work(posted: Posted, reply: Reply) -> Answer:
            reply.stream()
            await done.wait()
            return Answer(200)

        async with serving(FakeEntrance(work)) as served, connected(served) as client:
            client.post()
            await client.head()
            assert (await client.chunk()).startswith(b":")
            done.set()
            assert await client.chunk() == b""

    run(main())


async def _read_events(client: Raw) -> list[dict[str, object]]:
    await client.head()
    body = b""
    while chunk := await client.chunk():
        body += chunk
    return events(body)


def _pushing(*messages: Notification | Request) -> FakeEntrance:
    async def work(posted: Posted, reply: Reply) -> Answer:
        for message in messages:  # at once: the writing task has no turn in between
            reply.push(message)
        return OK

    return FakeEntrance(work)


def test_of_too_much_progress_the_oldest_is_dropped_and_nothing_else() -> None:
    async def main() -> None:
        question = Request("q", "elicitation/create", {})
        flood = [progress(number) for number in range(MOST_EVENTS * 2)]
        async with (
            serving(_pushing(question, *flood)) as served,
            connected(served) as client,
        ):
            client.post()
            first, *between, last = await _read_events(client)
            assert first["id"] == "q"
            assert last == RESULT
            assert len(between) == MOST_EVENTS - 1
            assert between[-1]["params"] == {"progress": MOST_EVENTS * 2 - 1, "message": ""}

    run(main())


def test_bytes_are_bounded_as_well_as_numbers() -> None:
    async def main() -> None:
        flood = [log_line(f"{number:4}" + "x" * 2**20) for number in range(10)]
        async with serving(_pushing(*flood)) as served, connected(served) as client:
            client.post()
            *said, last = await _read_events(client)
            assert last == RESULT
            assert [line["params"]["data"][:4].strip() for line in said] == ["7", "8", "9"]  # type: ignore[index]

    run(main())


def test_what_has_gone_out_makes_room_again() -> None:
    async def main() -> None:
        taken = asyncio.Event()

        async def work(posted: Posted, reply: Reply) -> Answer:
            for number in range(10):
                reply.push(log_line(f"{number}a" + "x" * 2**19))
                reply.push(log_line(f"{number}b" + "x" * 2**19))
                taken.clear()
                await taken.wait()
            return OK

        async with serving(FakeEntrance(work)) as served, connected(served) as client:
            client.post()
            await client.head()
            for _ in range(10):
                for letter in "ab":
                    [line] = events(await client.chunk())
                    assert line["params"]["data"][1] == letter
                taken.set()
            assert events(await client.chunk()) == [RESULT]

    run(main())


def test_an_answer_of_any_size_ends_a_stream() -> None:
    async def main() -> None:
        big = b'{"jsonrpc":"2.0","id":1,"result":{"pad":"' + b"x" * (9 * 2**20) + b'"}}'

        async def work(posted: Posted, reply: Reply) -> Answer:
            reply.push(progress(1))
            return Answer(200, big)

        async with serving(FakeEntrance(work)) as served:
            assert events((await asked(served)).body)[1] == json.loads(big)

    run(main())


def test_the_same_news_over_and_over_cuts_off_nobody() -> None:
    """A client that reads slowly hears of each resource that changed once more at the end."""

    async def main() -> None:
        pair = [Notification("notifications/resources/updated", {"uri": uri}) for uri in "ab"]
        many = [Notification("notifications/resources/updated", {"uri": "b"})] * (2 * MOST_EVENTS)
        async with serving(_pushing(*pair, *many, pair[0])) as served:
            *told, answer = events((await asked(served)).body)
        assert answer == RESULT
        assert len(told) <= MOST_EVENTS
        assert [each["params"]["uri"] for each in told[-2:]] == ["b", "a"]

    run(main())


def test_a_stream_with_too_much_that_must_not_be_lost_is_cut() -> None:
    async def main() -> None:
        questions = [Request(number, "elicitation/create", {}) for number in range(MOST_EVENTS + 1)]
        async with serving(_pushing(*questions)) as served, connected(served) as client:
            client.post()
            assert b"result" not in await client.wait_closed_by_server()

    run(main())
