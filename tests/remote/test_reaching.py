"""The way to a server elsewhere: redirects, TLS, proxies, and servers that are not there."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.kit.ports import free_port
from tests.kit.waiting import eventually_async, run
from tests.remote.certificates import Authority
from tests.remote.far import Far, Message, listening, served
from tests.servers.gate import PATIENT, Gate, failure, gate, remembered

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")


async def trouble(it: Gate, name: str = "far") -> str:
    """Why the server is not ready, once that is known."""
    await eventually_async(lambda: it.server(name).main.last_error)
    return it.server(name).main.last_error


def test_a_redirect_at_the_same_origin_is_followed_and_keeps_the_body(tmp_path: Path) -> None:
    far = Far()

    async def move(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": f"/mcp?{request.query_string}"})

    async def converse() -> None:
        app = far.app()
        app.router.add_post("/old/", move)
        async with listening(app) as port:
            url = f"http://127.0.0.1:{port}/old/?team=7"
            secret = {"Authorization": "Bearer mine"}
            async with gate(tmp_path, {"far": {"url": url, "headers": secret}}) as it:
                await it.ready()
                async with it.modern() as client:
                    assert (await client.call("far__echo", {"text": "hi"})).text == "hi"
        assert {seen.headers["Authorization"] for seen in far.seen} == {"Bearer mine"}
        assert {seen.path for seen in far.seen} == {"/mcp?team=7"}

    run(converse())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_origin_is_refused_and_said(tmp_path: Path, status: int) -> None:
    """B79: credentials for one origin are not for another."""

    async def converse() -> None:
        async with served(Far()) as other:

            async def move(request: web.Request) -> web.Response:
                return web.Response(status=status, headers={"Location": other.url})

            app = web.Application()
            app.router.add_post("/mcp", move)
            async with listening(app) as port:
                url = f"http://127.0.0.1:{port}/mcp"
                async with gate(tmp_path, {"far": {"url": url, "protocol": "modern"}}) as it:
                    said = await trouble(it)
                    assert f"HTTP {status}, which leads elsewhere" in said
            assert other.seen == []

    run(converse())


def test_a_server_that_is_not_there_is_waited_for_and_comes(tmp_path: Path) -> None:
    port = free_port()

    async def converse() -> None:
        server = {"url": f"http://127.0.0.1:{port}/mcp?key=canary"}
        async with gate(tmp_path, {"far": server}) as it:
            said = await trouble(it)
            assert f"cannot be reached at 127.0.0.1:{port}" in said
            async with served(Far(), port):
                await it.ready()
            assert "canary" not in str(it.log)
            assert "canary" not in str(await it.reports())

    run(converse())


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_server_that_restarts_loses_nobody_who_comes_later(tmp_path: Path, era: str) -> None:
    port = free_port()

    async def converse() -> None:
        async with gate(tmp_path, {"far": {"url": f"http://127.0.0.1:{port}/mcp"}}) as it:
            async with served(Far(eras=(era,)), port):
                await it.ready()
                async with it.modern() as client:
                    assert (await client.call("far__echo", {"text": "1"})).text == "1"
            await eventually_async(lambda: not it.server("far").is_ready)
            async with it.modern() as client, asyncio.TaskGroup() as tasks:
                waiting = tasks.create_task(client.call("far__echo", {"text": "2"}))
                async with served(Far(eras=(era,)), port):
                    assert (await waiting).text == "2"

    run(converse())


def test_whoever_calls_a_server_that_is_away_is_told_so_at_once(tmp_path: Path) -> None:
    async def converse() -> None:
        server: dict[str, Any] = {}
        async with served(Far()) as far:
            server["far"] = {"url": far.url}
            async with gate(tmp_path, server) as it:
                await it.ready()
                await remembered(it, "far")
        async with gate(tmp_path, server, policy=PATIENT) as it:
            assert "cannot be reached" in await trouble(it)
            async with it.modern() as client:
                answer = await client.call("far__echo", {"text": "hi"})
                assert failure(answer)["kind"] == "unavailable"
                assert failure(answer)["retryable"] is True
                assert "cannot be reached" in answer.text

    run(converse())


def test_credentials_that_are_refused_fail_the_server_visibly(tmp_path: Path) -> None:
    async def locked(request: web.Request, message: Message) -> web.Response | None:
        return web.Response(status=401, headers={"WWW-Authenticate": "Bearer"})

    async def converse() -> None:
        async with (
            served(Far(before=locked)) as far,
            gate(
                tmp_path, {"far": {"url": far.url, "headers": {"Authorization": "Bearer canary"}}}
            ) as it,
        ):
            report = await it.becomes("failed", "far")
            assert "HTTP 401" in report["last_error"]
            assert "canary" not in str(it.log)

    run(converse())


def test_a_handshake_that_is_never_answered_is_given_up(tmp_path: Path) -> None:
    async def mute(request: web.Request, message: Message) -> web.Response | None:
        await asyncio.Event().wait()
        return None

    async def converse() -> None:
        async with (
            served(Far(before=mute)) as far,
            gate(
                tmp_path, {"far": {"url": far.url, "protocol": "modern", "start_timeout": "200ms"}}
            ) as it,
        ):
            assert "did not answer modern handshake within 0.2 s" in await trouble(it)

    run(converse())


def test_a_connection_that_does_not_come_about_is_given_up(tmp_path: Path) -> None:
    """TLS to a server that says nothing: `connect_timeout` bounds all of it."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def converse() -> None:
        mute = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = mute.sockets[0].getsockname()[1]
        server = {"url": f"https://127.0.0.1:{port}/mcp", "connect_timeout": "200ms"}
        async with gate(tmp_path, {"far": server}) as it:
            assert "no connection within `connect_timeout`" in await trouble(it)
        mute.close()

    run(converse())


@needs_openssl
def test_an_authority_of_ones_own_and_a_certificate_to_show(tmp_path: Path) -> None:
    authority = Authority.new(tmp_path / "certificates")
    mine = authority.sign("client")

    async def converse() -> None:
        async with served(Far(), tls=authority.server(wants_client=True)) as far:
            known = {"ca": str(authority.file), "cert": str(mine)}
            servers: dict[str, Any] = {
                "far": {"url": far.url, **known},
                "stranger": {"url": far.url},
                "nameless": {"url": far.url, "ca": str(authority.file)},
                "lost": {"url": far.url, "ca": str(tmp_path / "nowhere.pem")},
                "garbage": {"url": far.url, "ca": __file__},
            }
            async with gate(tmp_path, servers, policy=PATIENT) as it:
                await it.ready("far")
                async with it.modern() as client:
                    assert (await client.call("far__echo", {"text": "hi"})).text == "hi"
                assert "its certificate cannot be trusted" in await trouble(it, "stranger")
                assert await trouble(it, "nameless")
                assert "nowhere.pem" in await trouble(it, "lost")
                assert "certificate" in await trouble(it, "garbage")

    run(converse())


def test_a_proxy_is_used_where_it_is_configured_and_never_on_the_way_to_this_machine(
    tmp_path: Path,
) -> None:
    """B97: nor is one taken from the environment."""
    through: list[str] = []
    far = Far()

    async def proxy(request: web.Request) -> web.StreamResponse:
        through.append(str(request.url.with_path("/")))
        return await far.post(request)

    async def converse() -> None:
        app = web.Application()
        app.router.add_route("POST", "/{anything:.*}", proxy)
        dead = f"http://127.0.0.1:{free_port()}"
        around = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"), dead)
        async with listening(app) as port, served(Far()) as near:
            servers = {
                "far": {"url": "http://far.example/mcp", "proxy": f"http://127.0.0.1:{port}"},
                "near": {"url": near.url, "proxy": dead},
            }
            with pytest.MonkeyPatch.context() as patch:
                for name, value in around.items():
                    patch.setenv(name, value)
                async with gate(tmp_path, servers, environ=around) as it:
                    await it.ready()
                    async with it.modern() as client:
                        assert (await client.call("far__echo", {"text": "hi"})).text == "hi"
                        assert (await client.call("near__echo", {"text": "hi"})).text == "hi"
            assert set(through) == {"http://far.example/"}

    run(converse())
