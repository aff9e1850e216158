"""A client that goes away. On a real listener: aiohttp's own test server behaves otherwise."""

import asyncio
from typing import cast

import pytest
from structlog.testing import capture_logs

from gateway.edge.connections import Connection
from gateway.eras.sides import Answer, Posted, Reply
from tests.edge.conftest import OnLoop
from tests.edge.holding import Held
from tests.edge.serving import OK, FakeEntrance, asked, connected, progress, serving
from tests.kit.waiting import eventually_async, run


@pytest.mark.parametrize("says", [0, 1], ids=["silent", "streaming"])
def test_a_call_that_ends_with_its_client_is_cancelled_when_that_goes_away(
    on_loop: OnLoop, says: int
) -> None:
    """2026-07-28 transports: closing the response stream cancels, before any head too."""

    async def main() -> None:
        work = Held(ends_with_client=True, says=says)
        async with serving(FakeEntrance(work)) as served, connected(served) as client:
            client.post(b'"held"')
            await work.started.wait()
            client.vanish()
            await eventually_async(lambda: work.ended == ["cancelled"])
            await eventually_async(lambda: not served.pulse.open)
            await eventually_async(lambda: served.listener.connections == 0)
            assert (await asked(served, path="/nowhere")).status == 404

    on_loop(main())


@pytest.mark.parametrize("says", [0, 1], ids=["silent", "streaming"])
def test_a_call_that_did_not_ask_for_it_goes_on_without_its_client(
    on_loop: OnLoop, says: int
) -> None:
    """Up to 2025-11-25 a lost connection is no cancellation."""

    async def main() -> None:
        work = Held(ends_with_client=False, says=says)
        async with serving(FakeEntrance(work)) as served, connected(served) as client:
            client.post(b'"held"')
            await work.started.wait()
            client.vanish()
            await eventually_async(lambda: served.listener.connections == 0)
            assert work.ended == []
            work.finish.set()
            await eventually_async(lambda: work.ended == ["finished"])
            await eventually_async(lambda: not served.pulse.open)

    on_loop(main())


def test_a_client_that_closes_politely_counts_as_gone() -> None:
    async def main() -> None:
        work = Held(ends_with_client=True)
        async with serving(FakeEntrance(work)) as served, connected(served) as client:
            client.post(b'"held"')
            await work.started.wait()
            client.writer.close()
            await eventually_async(lambda: bool(work.ended))
            assert work.ended == ["cancelled"]

    run(main())


def test_a_client_gone_before_the_era_asks_is_noticed_when_it_does() -> None:
    async def main() -> None:
        ended: list[str] = []
        started, go_on = asyncio.Event(), asyncio.Event()

        async def late(posted: Posted, reply: Reply) -> Answer:
            started.set()
            await go_on.wait()
            reply.end_with_client()
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
            return OK

        async with serving(FakeEntrance(late)) as served, connected(served) as client:
            client.post()
            await started.wait()
            client.vanish()
            await eventually_async(lambda: served.listener.connections == 0)
            go_on.set()
            await eventually_async(lambda: ended == ["cancelled"])

    run(main())


def test_a_client_that_leaves_while_its_answer_is_on_the_way_cancels_nothing() -> None:
    """The answer is there: a disconnect after `input_required` is no cancellation."""

    async def main() -> None:
        ended: list[str] = []
        big = b'{"pad":"' + b"x" * 20_000_000 + b'"}'

        async def work(posted: Posted, reply: Reply) -> Answer:
            reply.end_with_client()
            ended.append("answered")
            return Answer(200, big)

        async with serving(FakeEntrance(work)) as served, connected(served) as client:
            client.post()
            await client.head()
            client.vanish()
            await eventually_async(lambda: served.listener.connections == 0)
            assert ended == ["answered"]

    run(main())


def test_the_next_request_on_a_connection_is_not_bound_by_the_one_before() -> None:
    async def main() -> None:
        modern = Held(ends_with_client=True)
        legacy = Held(ends_with_client=False)
        turns = [modern, legacy]

        async def work(posted: Posted, reply: Reply) -> Answer:
            return await turns.pop(0)(posted, reply)

        async with serving(FakeEntrance(work)) as served, connected(served) as client:
            client.post(b'"held"')
            modern.finish.set()
            assert (await client.response()).status == 200
            client.post(b'"held"')
            await legacy.started.wait()
            client.vanish()
            await eventually_async(lambda: served.listener.connections == 0)
            assert legacy.ended == []
            legacy.finish.set()
            await eventually_async(lambda: legacy.ended == ["finished"])

    run(main())


def test_a_hundred_clients_that_vanish_leave_nothing_behind() -> None:
    """Case B61."""

    async def main() -> None:
        cancelled = 0

        async def work(posted: Posted, reply: Reply) -> Answer:
            nonlocal cancelled
            reply.end_with_client()
            reply.push(progress(1))
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled += 1
                raise
            return OK

        async with serving(FakeEntrance(work)) as served:
            before = len(asyncio.all_tasks())
            for _ in range(100):
                async with connected(served) as client:
                    client.post()
                    await client.head()
                    client.vanish()
            await eventually_async(lambda: cancelled == 100)
            await eventually_async(lambda: len(asyncio.all_tasks()) <= before)
            assert served.listener.connections == 0
            assert not served.pulse.open

    run(main())


def test_a_client_that_leaves_in_the_middle_of_its_body_is_nobodys_business() -> None:
    async def main() -> None:
        entrance = FakeEntrance()
        with capture_logs() as logs:
            async with serving(entrance, direct=False) as served, connected(served) as client:
                client.post(b"{", Content_Length="100")
                server = served.listener._connections
                await eventually_async(
                    lambda: any(cast(Connection, one).is_serving for one in server.connections)
                )
                client.vanish()
                await eventually_async(lambda: served.listener.connections == 0)
        assert entrance.posted == []
        assert [line for line in logs if line["log_level"] != "debug"] == []

    run(main())
