"""Servers elsewhere that do what no specification foresees: each harms itself alone."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gateway.downstream.transports import http, streams, under_way
from gateway.downstream.transports.failures import LONGEST_S
from tests.kit.ports import free_port
from tests.kit.waiting import eventually_async, run
from tests.remote.far import (
    EVENTS,
    LEGACY,
    Asked,
    Far,
    Message,
    Seen,
    Told,
    listening,
    refusal,
    served,
)
from tests.servers.gate import Gate, failure, gate


def legacy(**more: Any) -> Far:
    return Far(eras=("legacy",), **more)


async def said_of(it: Gate, name: str = "far") -> str:
    """Why the server is not ready, once that is known."""
    await eventually_async(lambda: it.server(name).main.last_error)
    return it.server(name).main.last_error


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "Bad Request: Server not initialized"),  # the TypeScript SDK, with one session
        (401, "Unauthorized: Session not found"),  # the Rust SDK
        (400, "Bad Request: No valid session ID provided"),  # server-everything
        (400, "Invalid or missing session ID"),
    ],
)
def test_a_lost_session_is_known_by_what_sdks_say_of_it(
    tmp_path: Path, status: int, text: str
) -> None:
    async def forgetful(request: web.Request, message: Message) -> web.Response | None:
        if request.headers.get("Mcp-Session-Id") == "s1" and message["method"] == "tools/call":
            return refusal({"id": None}, -32000, text, status)
        return None

    async def converse() -> None:
        async with (
            served(legacy(before=forgetful)) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            async with it.modern() as client:
                assert (await client.call("far__echo", {"text": "hi"})).text == "hi"
            assert len(far.posts("initialize")) == 2

    run(converse())


def test_a_refusal_that_merely_speaks_of_sessions_loses_none(tmp_path: Path) -> None:
    async def no_browser(asked: Asked) -> web.StreamResponse:
        return web.Response(status=400, text="cannot open a browser session")

    async def converse() -> None:
        async with (
            served(legacy(tools={"open": no_browser})) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            async with it.modern() as client:
                assert "cannot open a browser" in (await client.call("far__open")).text
            assert len(far.posts("tools/call")) == 1
            assert len(far.posts("initialize")) == 1

    run(converse())


def test_a_server_with_sessions_that_has_no_get_is_a_server(tmp_path: Path) -> None:
    """Frameworks say 404 where nothing is routed, not 405: no session is lost by that."""

    async def converse() -> None:
        far = legacy()
        app = web.Application()
        app.router.add_post("/mcp", far.post)

        async def nothing(request: web.Request) -> web.Response:
            far.seen.append(Seen("GET", request.headers))
            return web.Response(status=404, text="Cannot GET /mcp")

        app.router.add_get("/mcp", nothing)
        async with listening(app) as port:
            server = {"url": f"http://127.0.0.1:{port}/mcp"}
            async with gate(tmp_path, {"far": server}) as it:
                await it.ready()
                await eventually_async(far.gets)
                async with it.modern() as client:
                    assert (await client.call("far__echo", {"text": "1"})).text == "1"
                assert it.server("far").restarts.total() == 0
                assert len(far.posts("initialize")) == 1

    run(converse())


def test_a_stream_that_ends_at_once_is_asked_for_less_and_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[int] = []

    def counted(retry_ms: int | None, tries: int) -> float:
        pauses.append(tries)
        return 0.01

    monkeypatch.setattr(streams, "pause_s", counted)

    async def converse() -> None:
        far = legacy()
        app = web.Application()
        app.router.add_post("/mcp", far.post)

        async def empty(request: web.Request) -> web.Response:
            return web.Response(content_type=EVENTS, body=b": nothing\n\nretry: 0\n\n")

        app.router.add_get("/mcp", empty)
        async with (
            listening(app) as port,
            gate(tmp_path, {"far": {"url": f"http://127.0.0.1:{port}/mcp"}}),
        ):
            await eventually_async(lambda: len(pauses) >= 5)
        assert pauses[:5] == [1, 2, 3, 4, 5]

    run(converse())


def test_what_is_told_to_a_server_that_never_answers_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else every call that is given up would cost a connection for good."""
    monkeypatch.setattr(http, "TOLD_WITHIN_S", 0.1)
    silent, gone = asyncio.Event(), asyncio.Event()

    async def mute(_: web.Request, message: Message) -> web.Response | None:
        if message.get("method") != "notifications/initialized":
            return None
        silent.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        return None

    async def converse() -> None:
        async with (
            served(legacy(before=mute)) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            assert silent.is_set()
            await gone.wait()

    run(converse())


def test_credentials_that_a_server_quotes_are_hidden(tmp_path: Path) -> None:
    async def quoting(asked: Asked) -> web.StreamResponse:
        return web.Response(status=500, text=f"bad {asked.http.headers['Authorization']}!")

    async def converse() -> None:
        headers = {"Authorization": "Bearer canary-7"}
        async with (
            served(Far(tools={"quote": quoting})) as far,
            gate(tmp_path, {"far": {"url": far.url, "headers": headers}}) as it,
        ):
            await it.ready()
            async with it.modern() as client:
                text = (await client.call("far__quote")).text
            assert "bad ***!" in text
            assert "canary" not in str(it.log)

    run(converse())


@pytest.mark.parametrize("given", [None, "Bearer mine"])
def test_a_password_in_the_address_is_a_header_unless_there_is_one(
    tmp_path: Path, given: str | None
) -> None:
    async def converse() -> None:
        async with served(Far()) as far:
            url = far.url.replace("//", "//ann:canary@")
            headers = {"Authorization": given} if given else {}
            async with gate(tmp_path, {"far": {"url": url, "headers": headers}}) as it:
                await it.ready()
                assert "canary" not in str(await it.reports())
            basic = f"Basic {base64.b64encode(b'ann:canary').decode()}"
            assert {seen.headers["Authorization"] for seen in far.seen} == {given or basic}

    run(converse())


def test_an_event_id_that_no_header_can_carry_resumes_nothing(tmp_path: Path) -> None:
    async def odd(asked: Asked) -> web.StreamResponse:
        told = await asked.stream()
        await told.http.write(b"id: \x01\nretry: 0\ndata: \n\n")
        return told.http

    async def converse() -> None:
        async with (
            served(legacy(tools={"odd": odd})) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            async with it.modern() as client:
                answer = await client.call("far__odd")
            assert failure(answer)["kind"] == "unavailable"
            assert not [line for line in it.log if line["event"] == "work.crashed"]

    run(converse())


def test_an_address_of_web_pages_is_said_to_be_one(tmp_path: Path) -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<h1>Welcome</h1>", content_type="text/html")

    async def converse() -> None:
        app = web.Application()
        app.router.add_route("*", "/mcp", page)
        async with listening(app) as port:
            server = {"url": f"http://127.0.0.1:{port}/mcp"}
            async with gate(tmp_path, {"far": server}) as it:
                assert "answers with a web page" in await said_of(it)

    run(converse())


@pytest.mark.parametrize("date", [False, True])
def test_a_server_that_asks_to_be_left_alone_is(tmp_path: Path, date: bool) -> None:
    after = "Wed, 21 Oct 2099 07:28:00 GMT" if date else "120"

    async def busy(_: web.Request, __: Message) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": after})

    async def converse() -> None:
        async with (
            served(Far(before=busy)) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            assert "HTTP 429; it asks to come again in" in await said_of(it)
            main = it.server("far").main
            assert 100 < main.next_start - main.clock() <= 300

    run(converse())


def test_a_proxy_that_is_away_or_wants_a_password_is_said_to(tmp_path: Path) -> None:
    async def locked(_: web.Request) -> web.Response:
        return web.Response(status=407, headers={"Proxy-Authenticate": "Basic"})

    async def converse() -> None:
        app = web.Application()
        app.router.add_route("*", "/{any:.*}", locked)
        async with listening(app) as port:
            there = {"url": "http://far.example/mcp", "proxy": f"http://a:canary@127.0.0.1:{port}"}
            away = {**there, "proxy": f"http://127.0.0.1:{free_port()}"}
            async with gate(tmp_path, {"there": there, "away": away}) as it:
                assert "the proxy on the way wants other" in await said_of(it, "there")
                assert "its `proxy` cannot be reached" in await said_of(it, "away")
                assert "canary" not in str(it.log)

    run(converse())


def test_a_server_that_asks_without_end_costs_few_connections(tmp_path: Path) -> None:
    """And it never takes what it is answered."""
    taken = 0

    async def mute(_: web.Request, message: Message) -> web.Response | None:
        nonlocal taken
        if "method" in message:
            return None
        taken += 1
        await asyncio.Event().wait()
        return None

    async def converse() -> None:
        async with (
            served(legacy(before=mute)) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            await eventually_async(lambda: far.streams)
            ping = b'data: {"jsonrpc":"2.0","id":"%d","method":"ping"}\n\n'
            await far.streams[-1].http.write(b"".join(ping % n for n in range(3000)))
            await eventually_async(lambda: it.said("message.dropped"))
            async with it.modern() as client:
                assert (await client.call("far__echo", {"text": "hi"})).text == "hi"
            assert 0 < taken <= under_way.AT_ONCE

    run(converse())


def test_a_handshake_may_be_answered_on_a_second_stream(tmp_path: Path) -> None:
    """2025-11-25: a server may close a stream to be polled; the first head names the session."""
    far = legacy()
    asked: list[Message] = []

    async def polled(request: web.Request, message: Message) -> web.StreamResponse | None:
        if message["method"] != "initialize":
            return None
        asked.append(message)
        far.known.add("mine")
        head = {"Content-Type": EVENTS, "Mcp-Session-Id": "mine"}
        return web.Response(headers=head, body=b"id: 1\nretry: 20\ndata: \n\n")

    async def resumed(_: str, told: Told) -> None:
        result = {"protocolVersion": LEGACY, "capabilities": far.capabilities}
        await told.answer(asked[-1]["id"], result)

    far.before, far.resumed = polled, resumed

    async def converse() -> None:
        async with served(far), gate(tmp_path, {"far": {"url": far.url}}) as it:
            await it.ready()
            async with it.modern() as client:
                assert (await client.call("far__echo", {"text": "hi"})).text == "hi"
            assert {seen.headers["Mcp-Session-Id"] for seen in far.posts("tools/call")} == {"mine"}

    run(converse())


def test_many_calls_that_lack_a_header_read_the_list_once(tmp_path: Path) -> None:
    async def strict(asked: Asked) -> web.StreamResponse:
        if "Mcp-Param-Team" not in asked.http.headers:
            return refusal(asked.message, -32020, "Mcp-Param-Team is missing", 400)
        return asked.text("fine")

    async def converse() -> None:
        async with (
            served(Far(tools={"strict": strict})) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            team = {"type": "string", "x-mcp-header": "Team"}
            schema = {"type": "object", "properties": {"team": team}}
            far.extras["strict"] = {"inputSchema": schema}
            async with it.modern() as client, asyncio.TaskGroup() as tasks:
                calls = [
                    tasks.create_task(client.call("far__strict", {"team": "a"})) for _ in range(20)
                ]
            assert {call.result().text for call in calls} == {"fine"}
            assert len(far.posts("tools/list")) <= 3

    run(converse())


def test_a_server_that_asks_to_be_left_alone_for_years_is_asked_sooner() -> None:
    assert streams.pause_s(999_999_999, 0) == LONGEST_S
