"""Streams that clients hold open, and readers that do not read."""

import asyncio
import json
from collections.abc import Callable

from structlog.testing import capture_logs

from gateway.edge.sse import MOST_EVENTS
from gateway.eras.sides import Answer, Posted, Reply, Stream
from tests.edge.conftest import OnLoop
from tests.edge.serving import (
    OK,
    FakeEntrance,
    Raw,
    asked,
    connected,
    events,
    serving,
)
from tests.kit.waiting import eventually_async, run

FAST = {"keep_alive_s": 0.08}
RESULT = json.loads(OK.body or b"")


def _holding(into: list[Stream]) -> FakeEntrance:
    async def hold(open_stream: Callable[[], Stream]) -> Stream:
        into.append(open_stream())
        return into[-1]

    return FakeEntrance(on_get=hold)


def test_a_held_stream_speaks_at_once_then_carries_messages_until_it_is_ended() -> None:
    async def main() -> None:
        held: list[Stream] = []
        async with serving(_holding(held)) as served, connected(served) as client:
            client.request("GET", "/mcp")
            head = await client.head()
            assert head.headers["content-type"] == "text/event-stream"
            assert (await client.chunk()).startswith(b":")
            held[0].push(b'{"a":\n1}')
            assert events(await client.chunk()) == [{"a": 1}]
            held[0].end(b'{"last":true}')
            assert events(await client.chunk()) == [{"last": True}]
            assert await client.chunk() == b""
            held[0].push(b"{}")  # too late, and harmless
            await held[0].wait_ended()
            assert not served.pulse.open

    run(main())


def test_a_held_stream_is_kept_alive() -> None:
    async def main() -> None:
        async with (
            serving(_holding([]), pulse=FAST) as served,
            connected(served) as client,
        ):
            client.request("GET", "/mcp")
            await client.head()
            for _ in range(6):
                assert await client.chunk() == b": keep-alive\n\n"

    run(main())


def test_a_held_stream_ends_when_its_client_goes() -> None:
    async def main() -> None:
        held: list[Stream] = []
        entrance = _holding(held)
        async with serving(entrance) as served, connected(served) as client:
            client.request("GET", "/mcp")
            await client.head()
            client.vanish()
            async with asyncio.timeout(5):
                await held[0].wait_ended()
            held[0].push(b"{}")
            await eventually_async(lambda: not served.pulse.open)
            assert entrance.ended == held  # and the era is told
            await eventually_async(lambda: served.listener.connections == 0)

    run(main())


def test_a_held_stream_whose_queue_is_full_is_cut_and_nobody_waits() -> None:
    async def main() -> None:
        held: list[Stream] = []
        async with serving(_holding(held)) as served, connected(served) as client:
            client.request("GET", "/mcp")
            await client.head()
            with capture_logs() as logs:
                for number in range(MOST_EVENTS * 2):
                    held[0].push(b'{"number":%d,"pad":"%b"}' % (number, b"x" * 1000))
                async with asyncio.timeout(5):
                    await held[0].wait_ended()
            assert [(line["event"], line["waiting"]) for line in logs] == [
                ("stream.cut", MOST_EVENTS)
            ]
            assert not (await client.wait_closed_by_server()).endswith(b"0\r\n\r\n")
            await eventually_async(lambda: not served.pulse.open)
            await eventually_async(lambda: served.listener.connections == 0)

    run(main())


def test_a_get_may_be_refused_by_the_era() -> None:
    async def main() -> None:
        async def refuse(open_stream: Callable[[], Stream]) -> Answer:
            return Answer(405, b"{}", {"Allow": "POST"})

        async with serving(FakeEntrance(on_get=refuse)) as served, connected(served) as client:
            client.request("GET", "/mcp")
            answer = await client.response()
            assert (answer.status, answer.headers["allow"]) == (405, "post")

    run(main())


def test_a_get_that_cannot_take_a_stream_is_refused() -> None:
    async def main() -> None:
        async with serving(FakeEntrance()) as served, connected(served) as client:
            client.request("GET", "/mcp", Accept="application/json")
            answer = await client.response()
            assert answer.status == 406
            assert "MCP endpoint" in answer.error

    run(main())


def test_a_client_that_stops_reading_is_cut_and_others_do_not_notice(on_loop: OnLoop) -> None:
    """Case B69: without this a stalled reader holds its memory for ever."""

    async def main() -> None:
        async def work(posted: Posted, reply: Reply) -> Answer:
            if posted.body == b'"big"':
                return Answer(200, b'{"pad":"' + b"x" * 50_000_000 + b'"}')
            return OK

        async with (
            serving(FakeEntrance(work), pulse={"stall_s": 0.3}) as served,
            connected(served) as stalled,
        ):
            stalled.writer.transport.pause_reading()  # type: ignore[attr-defined]
            stalled.post(b'"big"')
            for _ in range(20):
                assert (await asked(served)).json == RESULT
            await eventually_async(lambda: served.listener.connections == 0)
            assert not served.pulse.open

    on_loop(main())


def test_a_slow_reader_that_does_read_is_waited_for() -> None:
    async def main() -> None:
        size = 30_000_000  # more than the kernel takes off our hands

        async def work(posted: Posted, reply: Reply) -> Answer:
            return Answer(200, b"x" * size)

        async with serving(FakeEntrance(work), pulse={"stall_s": 0.5}) as served:
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=2**19)
            client = Raw(reader, writer)
            client.post()
            await client.head()
            began_s, got = served.pulse.now_s, 0
            while got < size:  # slow but steady: some at each look, longer in all than a stall
                looked_s = served.pulse.now_s
                got += len(await reader.readexactly(min(3 * 2**20, size - got)))
                await eventually_async(lambda at=looked_s: served.pulse.now_s > at)  # type: ignore[misc]
            assert served.pulse.now_s - began_s > 2 * served.pulse.stall_s
            writer.close()

    run(main())
