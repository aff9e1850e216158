"""How much a client may send, and how slowly."""

import gzip
from typing import Any

import pytest

from tests.edge.serving import (
    FakeEntrance,
    asked,
    connected,
    serving,
)
from tests.kit.waiting import eventually_async, run

MIB = 2**20


@pytest.mark.parametrize("size", [2, 900 * 1024, 5 * MIB])
def test_bodies_up_to_the_bound_arrive_whole(size: int) -> None:
    """Case B83: aiohttp's own bound is 1 MiB."""

    async def main() -> None:
        entrance = FakeEntrance()
        body = b'"' + b"x" * (size - 2) + b'"'
        async with serving(entrance, body_bytes=5 * MIB) as served:
            assert (await asked(served, body)).status == 200
        assert entrance.posted[0].body == body

    run(main())


def test_a_declared_body_over_the_bound_is_refused_unread_and_the_answer_arrives() -> None:
    async def main() -> None:
        entrance = FakeEntrance()
        async with serving(entrance) as served:
            answer = await asked(served, b"x" * (5 * MIB))
            assert answer.status == 413
            assert "limits.body" in answer.error
            assert "4MiB" in answer.error
            assert (await asked(served)).status == 200
        assert len(entrance.posted) == 1

    run(main())


def test_a_body_that_came_with_its_head_is_bounded_as_well() -> None:
    async def main() -> None:
        entrance = FakeEntrance()
        async with serving(entrance, body_bytes=1000) as served, connected(served) as client:
            usual = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
            usual += "Content-Type: application/json\r\nContent-Length: 1001\r\n\r\n"
            client.send(usual.encode() + b"x" * 1001)
            assert (await client.response()).status == 413
        assert entrance.posted == []

    run(main())


def _chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)


def test_a_chunked_body_is_read_and_bounded_alike() -> None:
    async def main() -> None:
        entrance = FakeEntrance()
        async with serving(entrance, body_bytes=1000) as served, connected(served) as client:
            chunked: dict[str, Any] = {
                "Content_Length": None,
                "Transfer_Encoding": "chunked",
            }
            client.post(_chunked(b'{"a":', b"1}", b""), **chunked)
            assert (await client.response()).status == 200
            assert entrance.posted[0].body == b'{"a":1}'

            client.post(_chunked(*[b"x" * 100] * 11), **chunked)  # and no end in sight
            answer = await client.response()
            assert answer.status == 413
            assert "limits.body" in answer.error

    run(main())


def test_a_body_is_measured_after_decompression() -> None:
    async def main() -> None:
        entrance = FakeEntrance()
        async with serving(entrance, body_bytes=100_000) as served:
            answer = await asked(served, gzip.compress(b"{}"), Content_Encoding="gzip")
            assert (answer.status, entrance.posted[0].body) == (200, b"{}")
            bomb = gzip.compress(b" " * 50_000_000)
            assert (await asked(served, bomb, Content_Encoding="gzip")).status == 413
            broken = await asked(served, b"no gzip at all", Content_Encoding="gzip")
            assert broken.status == 400
            assert "cannot be read" in broken.error

    run(main())


def test_a_client_that_waits_for_leave_to_send_its_body_gets_it() -> None:
    """curl does so above a mebibyte, and otherwise loses a second."""

    async def main() -> None:
        entrance = FakeEntrance()
        async with serving(entrance) as served, connected(served) as client:
            client.request(
                "POST",
                "/mcp",
                Expect="100-continue",
                Content_Length="2",
                Content_Type="application/json",
            )
            assert (await client.head()).status == 100
            client.send(b"{}")
            assert (await client.response()).status == 200
            assert entrance.posted[0].body == b"{}"

    run(main())


def test_no_leave_is_given_for_a_body_that_is_refused() -> None:
    async def main() -> None:
        async with serving(FakeEntrance()) as served, connected(served) as client:
            client.request(
                "POST",
                "/mcp",
                Expect="100-continue",
                Content_Length=str(9 * MIB),
                Content_Type="application/json",
            )
            assert (await client.head()).status == 413

    run(main())


def test_a_request_head_that_never_ends_is_cut_off() -> None:
    async def main() -> None:
        async with (
            serving(FakeEntrance(), pulse={"head_s": 0.2}) as served,
            connected(served) as slow,
            connected(served) as silent,
        ):
            slow.send(b"POST /mcp HTTP/1.1\r\nHost: x")
            assert await slow.wait_closed_by_server() == b""
            assert await silent.wait_closed_by_server() == b""
            await eventually_async(lambda: served.listener.connections == 0)
            assert (await asked(served)).status == 200

    run(main())


def test_a_connection_between_requests_is_not_mistaken_for_a_slow_one() -> None:
    async def main() -> None:
        async with (
            serving(FakeEntrance(), pulse={"head_s": 0.1}) as served,
            connected(served) as client,
        ):
            for _ in range(3):
                client.post()
                assert (await client.response()).status == 200
                first_head_s = served.pulse.now_s + 2 * served.pulse.head_s
                await eventually_async(lambda at=first_head_s: served.pulse.now_s > at)  # type: ignore[misc]
            assert (served.listener.connections, served.listener.direct) == (1, 1)

    run(main())


def test_a_body_that_never_ends_is_given_up() -> None:
    async def main() -> None:
        entrance = FakeEntrance()
        async with serving(entrance, request_s=0.2) as served, connected(served) as client:
            client.post(b"{", Content_Length="100")
            answer = await client.response()
            assert answer.status == 408
            assert "limits.request" in answer.error
            assert entrance.posted == []

    run(main())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X": "y" * 3000}, 431),
        ({f"X{number}": "y" for number in range(200)}, 431),
        ({"X": "y" * 900}, 200),
    ],
)
def test_headers_are_bounded_and_the_refusal_can_be_read(
    headers: dict[str, Any], status: int
) -> None:
    async def main() -> None:
        async with serving(FakeEntrance(), header_bytes=1000) as served:
            answer = await asked(served, **headers)
            assert answer.status == status
            assert answer.headers["content-type"] == "application/json"
            assert status == 200 or "too large" in answer.error

    run(main())


def test_a_long_url_is_refused_like_a_long_header() -> None:
    async def main() -> None:
        async with serving(FakeEntrance(), header_bytes=1000) as served:
            assert (await asked(served, path="/mcp?" + "y" * 5000)).status == 431

    run(main())
