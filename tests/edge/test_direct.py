"""Connections that aiohttp's handler has not got: which they are, and whose turn it is."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from gateway.edge import parsing
from gateway.edge.parsing import MOST_BYTES
from tests.edge.conftest import OnLoop
from tests.edge.holding import BOTH, Held, holding, post
from tests.edge.serving import (
    FakeEntrance,
    Raw,
    connected,
    events,
    serving,
)
from tests.kit.waiting import eventually_async, run

CHUNKED = {"Content-Length": None, "Transfer-Encoding": "chunked"}


# --- whose connection it is ---


def test_whole_small_posts_are_served_directly(on_loop: OnLoop) -> None:
    """A gateway that lost this to a new aiohttp would still work, three times as slowly."""

    async def main() -> None:
        async with (
            serving(FakeEntrance(Held(says=1))) as served,
            connected(served) as client,
        ):
            for body in (b"{}", b"", b"x" * 60_000):
                client.post(body)
                assert (await client.response()).status == 200
            client.post(b"{}", Accept="image/png")
            assert (await client.response()).status == 406
            whole = post(served)
            for piece in (whole[:9], whole[9:-1], whole[-1:]):
                client.send(piece)
                await asyncio.sleep(0)
            assert (await client.response()).status == 200
            client.post(b"{}", Accept="text/event-stream")
            assert events((await client.response()).body)
            assert (served.listener.connections, served.listener.direct) == (1, 1)

    on_loop(main())


@pytest.mark.parametrize(
    ("method", "path", "body", "headers"),
    [
        ("POST", "/mcp", b"x" * MOST_BYTES, {}),
        ("POST", "/mcp", b"2\r\n{}\r\n0\r\n\r\n", CHUNKED),
        ("POST", "/mcp", b"{}", {"Expect": "100-continue"}),
        ("POST", "/mcp?a=b", b"{}", {}),
        ("DELETE", "/mcp", b"", {}),
        ("OPTIONS", "/mcp", b"", {}),
        ("GET", "/nowhere", b"", {}),
    ],
    ids=["large", "chunks", "leave to send", "query", "delete", "options", "elsewhere"],
)
def test_everything_else_goes_to_the_handler_which_keeps_the_connection(
    on_loop: OnLoop, method: str, path: str, body: bytes, headers: dict[str, Any]
) -> None:
    async def main() -> None:
        entrance = FakeEntrance()
        async with serving(entrance) as served, connected(served) as client:
            for number in range(2):
                client.post(b"%d" % number)
                assert (await client.response()).status == 200
            assert served.listener.direct == 1
            client.request(method, path, body, **headers)
            assert (await client.response()).status in (200, 204, 404)
            client.post(b'"after"')
            assert (await client.response()).status == 200
            assert (served.listener.connections, served.listener.direct) == (1, 0)
        assert [posted.body for posted in entrance.posted][:2] == [b"0", b"1"]
        assert entrance.posted[-1].body == b'"after"'

    on_loop(main())


@pytest.mark.parametrize("more", [0, 1], ids=["to the bound", "beyond"])
def test_a_request_is_small_up_to_64_kib_with_its_head(more: int) -> None:
    async def main() -> None:
        entrance = FakeEntrance()
        async with serving(entrance) as served, connected(served) as client:
            size = MOST_BYTES - len(post(served, b"x" * 60_000)) + 60_000 + more
            whole = post(served, b"x" * size)
            assert len(whole) == MOST_BYTES + more
            client.send(whole)
            assert (await client.response()).status == 200
            assert served.listener.direct == 1 - more
        assert entrance.posted[0].body == b"x" * size

    run(main())


@pytest.mark.parametrize("failure", [TypeError, AttributeError, ValueError])
def test_a_parser_that_is_used_otherwise_makes_it_slower_and_not_broken(
    monkeypatch: pytest.MonkeyPatch, failure: type[Exception]
) -> None:
    def changed(*_: object, **__: object) -> None:
        raise failure("this is another aiohttp")

    monkeypatch.setattr(parsing, "HttpRequestParser", changed)

    async def main() -> None:
        async with serving(FakeEntrance()) as served, connected(served) as client:
            for _ in range(3):
                client.post()
                assert (await client.response()).status == 200
            assert (served.listener.connections, served.listener.direct) == (1, 0)

    run(main())


def test_a_unix_socket_is_served_directly_as_well(on_loop: OnLoop, tmp_path: Path) -> None:
    path = tmp_path / "gate.sock"

    async def main() -> None:
        async with serving(FakeEntrance(), address=f"unix:{path}") as served:
            reader, writer = await asyncio.open_unix_connection(path)
            client = Raw(reader, writer)
            for _ in range(2):
                client.send(post(served).replace(b"127.0.0.1:%d" % served.port, b"localhost"))
                assert (await client.response()).status == 200
            assert served.listener.direct == 1
            writer.close()
            await eventually_async(lambda: served.listener.connections == 0)

    on_loop(main())


# --- requests ahead of their turn ---


@BOTH
@pytest.mark.parametrize("says", [0, 2], ids=["silent", "streaming"])
@pytest.mark.parametrize("early", [1, 3, 200])
def test_what_comes_early_is_served_in_its_turn(
    on_loop: OnLoop, *, direct: bool, says: int, early: int
) -> None:
    async def main() -> None:
        work = Held(says=says)
        async with holding(work, direct=direct) as (_, client):
            for number in range(early):
                client.post(b"%d" % number)
            await client.writer.drain()
            work.finish.set()
            for _ in range(1 + early):
                assert (await client.response()).status == 200
            client.post()
            assert (await client.response()).status == 200

    on_loop(main())


def test_a_flood_of_early_requests_waits_in_the_socket_and_nothing_of_it_is_lost(
    on_loop: OnLoop,
) -> None:
    async def main() -> None:
        work = Held()
        async with holding(work) as (served, client):
            flood = [post(served, b"%06d" % number + b"x" * 50_000) for number in range(1000)]
            for whole in flood:
                client.send(whole)
            waiting = client.writer.transport.get_write_buffer_size
            [one] = served.listener._directs.open  # type: ignore[union-attr]
            await eventually_async(lambda: not cast(Any, one.transport).is_reading())
            assert len(one._early) < MOST_BYTES + 2**18 + 1
            assert waiting() > 0
            work.finish.set()
            for _ in range(1 + len(flood)):
                assert (await client.response()).status == 200

    on_loop(main())


@BOTH
@pytest.mark.parametrize("says", [0, 1], ids=["silent", "streaming"])
def test_a_client_that_goes_with_a_request_waiting_is_noticed(
    on_loop: OnLoop, *, direct: bool, says: int
) -> None:
    """What it sent early must not keep the gateway from reading that it has gone."""

    async def main() -> None:
        work = Held(says=says, ends_with_client=True)
        entrance = FakeEntrance(work)
        async with holding(work, direct=direct) as (served, client):
            client.post(b'"early"')
            await client.writer.drain()
            await asyncio.sleep(0)
            client.vanish()
            await eventually_async(lambda: work.ended == ["cancelled"])
            await eventually_async(lambda: served.listener.connections == 0)
        assert b'"early"' not in [posted.body for posted in entrance.posted]

    on_loop(main())
