"""The endpoint: paths and methods, sizes and slowness, and what a bug looks like outside."""

import asyncio

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
        async def get(self, *_: object) -> Answer:
            raise ZeroDivisionError

        async def delete(self, *_: object) -> Answer:
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


def test_a_url_written_out_whole_is_the_endpoint_too() -> None:
    """RFC 9112, 3.2.2: what clients behind a proxy send."""

    async def main() -> None:
        async with serving(FakeEntrance()) as served:
            assert (await asked(served, path=served.url)).status == 200
            assert (await asked(served, path=served.url + "x")).status == 404

    run(main())


def test_an_http_1_0_client_gets_answers_and_streams_that_end_with_the_connection() -> None:
    async def main() -> None:
        async def work(posted: Posted, reply: Reply) -> Answer:
            reply.push(progress(1))
            return OK

        async with serving(FakeEntrance(work)) as served, connected(served) as client:
            client.send(
                f"POST /mcp HTTP/1.0\r\nHost: 127.0.0.1:{served.port}\r\n"
                "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}".encode()
            )
            head = await client.head()
            assert "transfer-encoding" not in head.headers
            assert len(events(await client.wait_closed_by_server())) == 2

    run(main())


def test_a_failing_disk_behind_the_era_is_a_bug_and_not_a_client_gone() -> None:
    class Broken(FakeEntrance):
        async def delete(self, *_: object) -> Answer:
            raise OSError("disk")

    async def main() -> None:
        with capture_logs() as logs:
            async with serving(Broken()) as served, connected(served) as client:
                client.request("DELETE", "/mcp")
                assert (await client.response()).status == 500
        assert [line["event"] for line in logs] == ["request.crashed"]

    run(main())
