"""The endpoint: paths and methods, sizes and slowness, and what a bug looks like outside."""

import asyncio
import gzip

import aiohttp
import pytest
from structlog.testing import capture_logs

from gateway.edge.endpoint import PATHS
from gateway.eras.sides import Answer, Posted, Reply
from tests.edge.serving import (
    OK,
    FakeEntrance,
    Secret,
    asked,
    connected,
    events,
    progress,
    serving,
)
from tests.kit.waiting import eventually_async, run

MIB = 2**20


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp?x=1", "/mcp/?x=1"])
def test_both_spellings_of_the_path_are_the_endpoint_without_a_redirect(path: str) -> None:
    async def main() -> None:
        async with serving(FakeEntrance()) as served:
            assert (await asked(served, path=path)).status == 200

    run(main())


@pytest.mark.parametrize("path", ["/", "/mcpx", "/mcp/x", "/MCP", "/sse", "//mcp", "/mcp%2f"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "OPTIONS", "PUT"])
def test_any_other_path_says_where_the_endpoint_is(path: str, method: str) -> None:
    async def main() -> None:
        async with serving(FakeEntrance()) as served, connected(served) as client:
            client.request(method, path)
            answer = await client.response()
            assert answer.status == 404
            assert "/mcp" in answer.error

    run(main())


@pytest.mark.parametrize("method", ["PUT", "PATCH", "TRACE"])
def test_any_other_method_says_which_there_are(method: str) -> None:
    async def main() -> None:
        async with serving(FakeEntrance()) as served, connected(served) as client:
            client.request(method, "/mcp")
            answer = await client.response()
            assert answer.status == 405
            assert answer.headers["allow"] == "post, get, delete, options"
            assert "POST" in answer.error

    run(main())


def test_delete_is_the_eras_to_answer() -> None:
    async def main() -> None:
        entrance = FakeEntrance()
        ann = Secret("ann", "t")
        async with serving(entrance, tokens=[ann]) as served, connected(served) as client:
            client.request("DELETE", "/mcp", Authorization="Bearer t")
            assert (await client.response()).status == 204
            assert entrance.deleted == ["ann"]

    run(main())


def test_an_answer_keeps_its_status_headers_and_bytes() -> None:
    async def main() -> None:
        async def work(posted: Posted, reply: Reply) -> Answer:
            return Answer(404, b'{"x": [1,\n 2]}', {"Mcp-Session-Id": "s-1"})

        async with serving(FakeEntrance(work)) as served:
            answer = await asked(served)
            assert (answer.status, answer.body) == (404, b'{"x": [1,\n 2]}')
            assert answer.headers["mcp-session-id"] == "s-1"
            assert answer.headers["content-type"] == "application/json"
            assert "aiohttp" not in answer.headers["server"]

    run(main())


def test_an_answer_without_a_body_has_no_content_type() -> None:
    async def main() -> None:
        async def work(posted: Posted, reply: Reply) -> Answer:
            return Answer(202)

        async with serving(FakeEntrance(work)) as served:
            answer = await asked(served)
            assert (answer.status, answer.body) == (202, b"")
            assert "content-type" not in answer.headers

    run(main())


def test_the_era_sees_headers_without_regard_to_case_and_every_value() -> None:
    async def main() -> None:
        entrance = FakeEntrance()
        async with serving(entrance) as served:
            await asked(served, MCP_Method="tools/call")
        [posted] = entrance.posted
        assert posted.headers.get("mcp-method") == "tools/call"
        assert list(posted.headers.getall("Mcp-Method")) == ["tools/call"]
        assert posted.headers.getall("absent", ()) == ()

    run(main())


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


def _chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)


def test_a_chunked_body_is_read_and_bounded_alike() -> None:
    async def main() -> None:
        entrance = FakeEntrance()
        async with serving(entrance, body_bytes=1000) as served, connected(served) as client:
            chunked: dict[str, str | None] = {
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
            await slow.wait_closed_by_server()
            await silent.wait_closed_by_server()
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
                await asyncio.sleep(0.2)  # longer than a first head may take

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
    headers: dict[str, str | None], status: int
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


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"HELLO\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: nine\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    ],
)
def test_what_is_no_http_gets_a_json_refusal_and_leaves_no_traceback(garbage: bytes) -> None:
    async def main() -> None:
        with capture_logs() as logs:
            async with serving(FakeEntrance()) as served, connected(served) as client:
                client.send(garbage)
                answer = await client.response()
                assert answer.status == 400
                assert "HTTP" in answer.error
                await client.wait_closed_by_server()
        assert not [line for line in logs if line["log_level"] in ("error", "warning")]

    run(main())


async def _crash(posted: Posted, reply: Reply) -> Answer:
    raise ZeroDivisionError("secret detail")


async def _crash_midway(posted: Posted, reply: Reply) -> Answer:
    reply.push(progress(1))
    await asyncio.sleep(0)
    raise ZeroDivisionError("secret detail")


def test_a_bug_is_an_internal_error_outside_and_a_traceback_inside() -> None:
    async def main() -> None:
        with capture_logs() as logs:
            async with serving(FakeEntrance(_crash)) as served, connected(served) as client:
                client.post()
                answer = await client.response()
                assert answer.status == 500
                assert answer.json["error"] == {"code": -32603, "message": "Internal error"}
                client.post()
                assert (await client.response()).status == 500
        crashes = [line for line in logs if line["event"] == "request.crashed"]
        assert len(crashes) == 2
        assert crashes[0]["exc_info"]

    run(main())


def test_a_bug_in_the_middle_of_a_stream_ends_it_with_an_error() -> None:
    async def main() -> None:
        with capture_logs() as logs:
            async with serving(FakeEntrance(_crash_midway)) as served:
                answer = await asked(served)
        assert events(answer.body)[-1]["error"]["message"] == "Internal error"
        assert b"secret" not in answer.body
        assert [line["event"] for line in logs] == ["request.crashed"]

    run(main())


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_bug_behind_another_method_is_contained_as_well(method: str) -> None:
    class Broken(FakeEntrance):
        async def get(self, *_: object) -> Answer:  # type: ignore[override]
            raise ZeroDivisionError

        async def delete(self, *_: object) -> Answer:  # type: ignore[override]
            raise ZeroDivisionError

    async def main() -> None:
        with capture_logs() as logs:
            async with serving(Broken()) as served, connected(served) as client:
                client.request(method, "/mcp")
                answer = await client.response()
                assert answer.status == 500
                assert answer.error == "Internal error"
        assert [line["event"] for line in logs] == ["request.crashed"]

    run(main())


def test_pipelined_requests_are_answered_in_order() -> None:
    async def main() -> None:
        async def work(posted: Posted, reply: Reply) -> Answer:
            return Answer(200, posted.body)

        async with serving(FakeEntrance(work)) as served, connected(served) as client:
            for number in range(50):
                client.post(b"%d" % number)
            for number in range(50):
                assert (await client.response()).body == b"%d" % number

    run(main())


def test_an_ordinary_client_library_is_served() -> None:
    async def main() -> None:
        async def work(posted: Posted, reply: Reply) -> Answer:
            reply.push(progress(1))
            return OK

        async with serving(FakeEntrance(work)) as served, aiohttp.ClientSession() as session:
            for _ in range(3):
                async with session.post(served.url, json={}) as answer:
                    assert len(events(await answer.read())) == 2
            await eventually_async(lambda: not served.pulse.open)

    run(main())


def test_the_endpoint_has_two_spellings_and_no_more() -> None:
    assert {"/mcp", "/mcp/"} == PATHS
