"""How connections end that aiohttp's handler has not got; most as if it had."""

import asyncio
from typing import Any, cast

import pytest

from gateway.edge.sse import EventStream
from gateway.eras.sides import Answer, Posted, Reply, Stream
from tests.edge.conftest import OnLoop
from tests.edge.holding import BOTH, Held, holding, post
from tests.edge.serving import (
    FakeEntrance,
    connected,
    events,
    serving,
)
from tests.kit.waiting import eventually_async, run


class Leaving:
    """Keeps a reply's stream as a session would that can be resumed."""

    primes = False

    def __init__(self) -> None:
        self.stream: EventStream | None = None

    def begin(self, stream: Stream) -> "Leaving":
        self.stream = cast(EventStream, stream)
        return self

    def push(self, message: bytes, *, may_drop: bool = False) -> None:
        assert self.stream is not None
        self.stream.push(message, may_drop=may_drop)

    def finish(self, last: bytes | None) -> None: ...

    def delivered(self) -> None: ...


@BOTH
def test_a_connection_whose_stream_goes_on_elsewhere_is_closed_and_not_deaf(
    on_loop: OnLoop, *, direct: bool
) -> None:
    """Its client may take it for free, and the request that is still served would be in the
    way of whatever it sends over it."""

    async def main() -> None:
        tracks, work = Leaving(), Held(says=1)

        async def kept(posted: Posted, reply: Reply) -> Answer:
            reply.keep(tracks)
            return await work(posted, reply)

        async with (
            serving(FakeEntrance(kept), direct=direct) as served,
            connected(served) as client,
        ):
            client.post(b'"held"')
            await client.head()
            assert events(await client.chunk())
            assert tracks.stream is not None
            tracks.stream.leave()
            assert await client.wait_closed_by_server() == b"0\r\n\r\n"
            assert work.ended == []  # and the request goes on
            work.finish.set()
            await eventually_async(lambda: not served.pulse.open)
            assert work.ended == ["finished"]

    on_loop(main())


@BOTH
@pytest.mark.parametrize("ends_with_client", [True, False], ids=["modern", "legacy"])
@pytest.mark.parametrize("phase", ["silent", "streaming", "half closed", "answering"])
def test_a_client_that_goes_leaves_nothing_behind(
    on_loop: OnLoop, *, direct: bool, ends_with_client: bool, phase: str
) -> None:
    async def main() -> None:
        large = Answer(200, b"x" * (20_000_000 if phase == "answering" else 2))
        work = Held(says=phase == "streaming", ends_with_client=ends_with_client, answer=large)
        before = len(asyncio.all_tasks())
        async with holding(work, direct=direct) as (served, client):
            if phase == "answering":
                work.finish.set()
                await client.head()
            if phase == "half closed":
                client.writer.write_eof()
            else:
                client.vanish()
            if direct:  # aiohttp counts a connection until its request is over
                await eventually_async(lambda: served.listener.connections == 0)
            if phase != "answering" and ends_with_client:
                await eventually_async(lambda: work.ended == ["cancelled"])
            else:
                work.finish.set()
                await eventually_async(lambda: work.ended == ["finished"])
            await eventually_async(lambda: not served.pulse.open)
            await eventually_async(lambda: served.listener.connections == 0)
        await eventually_async(lambda: len(asyncio.all_tasks()) <= before)

    on_loop(main())


@BOTH
@pytest.mark.parametrize("sent", [0, 1, 40, -1], ids=["nothing", "a byte", "head", "body"])
def test_a_client_that_goes_in_its_request_is_nobodys_business(*, direct: bool, sent: int) -> None:
    async def main() -> None:
        entrance = FakeEntrance()
        async with serving(entrance, direct=direct) as served, connected(served) as client:
            client.post()
            await client.response()
            client.send(post(served)[:sent])
            await asyncio.sleep(0)
            client.vanish()
            await eventually_async(lambda: served.listener.connections == 0)
        assert len(entrance.posted) == 1

    run(main())


def test_a_body_that_stops_is_told_so_once_and_the_connection_closed() -> None:
    async def main() -> None:
        entrance = FakeEntrance()
        async with serving(entrance, request_s=0.2) as served, connected(served) as client:
            client.post()
            await client.response()
            client.send(post(served)[:-1])
            answer = await client.response()
            assert (answer.status, answer.headers["connection"]) == (408, "close")
            assert {"date", "server"} <= set(answer.headers)
            assert "limits.request" in answer.error
            assert await client.wait_closed_by_server() == b""
        assert len(entrance.posted) == 1

    run(main())


def test_a_second_head_that_stops_is_given_up_as_well() -> None:
    async def main() -> None:
        async with serving(FakeEntrance(), request_s=0.2) as served, connected(served) as client:
            client.post()
            await client.response()
            client.send(post(served)[:20])
            assert await client.wait_closed_by_server() == b""
            assert served.listener.connections == 0

    run(main())


def test_what_a_client_has_yet_to_read_still_goes_out_when_the_gateway_stops(
    on_loop: OnLoop,
) -> None:
    """Answered is not yet read: a rest may still be here when there is nothing more to do."""

    async def main() -> None:
        async with serving(FakeEntrance()) as served, connected(served) as client:
            client.post()
            await client.response()
            transport = client.writer.transport
            transport.pause_reading()  # type: ignore[attr-defined]
            [one] = served.listener._directs.open  # type: ignore[union-attr]
            assert one.transport is not None
            sent = 0
            while one.transport.get_write_buffer_size() == 0:
                one.transport.write(b"x" * 2**16)
                sent += 2**16
            async with asyncio.TaskGroup() as tasks:
                drained = tasks.create_task(served.listener.drain(0.05))
                await eventually_async(lambda: cast(Any, one.transport).is_closing())
                transport.resume_reading()  # type: ignore[attr-defined]
                assert len(await client.wait_closed_by_server()) == sent
                await drained

    on_loop(main())


@BOTH
def test_the_last_answers_say_that_they_are(*, direct: bool) -> None:
    async def main() -> None:
        work = Held()
        async with holding(work, direct=direct) as (served, client):
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(served.listener.drain(5.0))
                await asyncio.sleep(0)
                work.finish.set()
                answer = await client.response()
            assert (answer.status, answer.headers["connection"]) == (200, "close")
            assert await client.wait_closed_by_server() == b""

    run(main())
