"""Clients of the oldest transport: `/sse` and `/messages`, where they are switched on.

Source: 2024-11-05, basic/transports, "HTTP with SSE".
"""

import asyncio
import hashlib
import signal
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from tests.conversations.talking import Gate, opened_gate, recorded
from tests.kit.gateway import fetch
from tests.kit.http import Legacy
from tests.kit.waiting import eventually_async, run
from tests.resume.listener import Listener, listening

TOKENS = {"ann": "ann-token-0123456789", "bob": "bob-token-0123456789"}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("pair")
    servers = {"old": recorded(folder, "old", "--era", "legacy", protocol="legacy")}
    with opened_gate(folder, servers, legacy_sse=True, limits={"body": "64KiB"}) as gate:
        gate.gateway.wait_tools("old__echo")
        yield gate


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("guarded")
    tokens = [
        {"name": name, "sha256": hashlib.sha256(token.encode()).hexdigest()}
        for name, token in TOKENS.items()
    ]
    servers = {"old": recorded(folder, "old", "--era", "legacy", protocol="legacy")}
    with opened_gate(folder, servers, legacy_sse=True, auth={"tokens": tokens}) as gate:
        yield gate


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[name]}"}


async def status(verb: str, url: str, **headers: str) -> int:
    async with (
        aiohttp.ClientSession() as http,
        http.request(verb, url, data=b"{}", headers=headers) as response,
    ):
        return response.status


def test_without_the_switch_there_is_nothing_there(gate: Gate) -> None:
    origin = gate.url.removesuffix("/mcp")

    assert fetch(f"{origin}/sse")[0] == 404
    assert fetch(f"{origin}/messages", b"{}")[0] == 404


def test_the_first_event_says_where_to_post(pair: Gate) -> None:
    async def converse() -> tuple[str, str]:
        async with listening(pair.url) as one, listening(pair.url) as other:
            return one.path, other.path

    one, other = run(converse())

    assert one.startswith("/messages?sessionId=")
    assert one != other


def test_everything_is_answered_on_the_stream(pair: Gate) -> None:
    async def converse() -> list[Any]:
        async with listening(pair.url) as client:
            welcome = await client.initialize()
            await client.request("a", "ping")
            pong = await client.message()
            await client.call(7, "old__echo", text="hi")
            return [welcome["protocolVersion"], pong, await client.message()]

    version, pong, echoed = run(converse())

    assert version == "2024-11-05"
    assert pong == {"jsonrpc": "2.0", "id": "a", "result": {}}
    assert echoed["id"] == 7
    assert echoed["result"]["content"][0]["text"] == "hi"


def test_its_events_have_no_ids_since_nothing_can_be_resumed(pair: Gate) -> None:
    async def converse() -> list[str | None]:
        async with listening(pair.url) as client:
            await client.initialize()
            await client.request("resources/subscribe", "ping")
            answered = await client.event()
            await client.request(1, "resources/subscribe", {"uri": "fake://plain"})
            await client.event()
            await client.call(2, "old__touch", uri="fake://plain")
            told = [await client.event(), await client.event()]
            return [answered.id, *(each.id for each in told)]

    assert run(converse()) == [None, None, None]


def test_calls_run_side_by_side_and_can_be_cancelled(pair: Gate) -> None:
    async def converse() -> list[Any]:
        async with listening(pair.url) as client:
            await client.initialize()
            await client.call(1, "old__hang")
            await client.call(2, "old__echo", text="not held up")
            quick = await client.message()
            await client.notify("notifications/cancelled", {"requestId": 1})
            return [quick["id"], await client.message()]

    quick, cancelled = run(converse())

    assert quick == 2
    assert cancelled["id"] == 1
    assert "error" in cancelled


def test_a_server_may_ask_in_mid_call(pair: Gate) -> None:
    """Questions go out on the one stream too, and their answers are posted."""

    async def converse() -> Any:
        async with listening(pair.url) as client:
            await client.initialize({"roots": {}})
            await client.call(1, "old__ask", method="roots/list")
            question = await client.message()
            assert question["method"] == "roots/list"
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}
            assert await client.post(answer) == 202
            return await client.message()

    answered = run(converse())

    assert answered["id"] == 1
    assert "roots" in answered["result"]["content"][0]["text"]


def test_a_session_ends_with_its_stream_and_its_calls_with_it(pair: Gate) -> None:
    async def converse() -> tuple[int, list[Any]]:
        since = pair.mark()
        async with listening(pair.url) as client:
            await client.initialize()
            await client.call(1, "old__hang")
            await since.told("old", "tools/call")
            path, origin = client.path, client.origin
        cancelled = await since.told("old", "notifications/cancelled")
        headers = {"Content-Type": "application/json"}
        return await status("POST", origin + path, **headers), cancelled

    gone, cancelled = run(converse())

    assert gone == 404
    assert len(cancelled) == 1


def test_what_cannot_be_read_is_refused_at_once(pair: Gate) -> None:
    async def converse() -> list[int]:
        async with listening(pair.url) as client:
            await client.initialize()
            return [
                await client.post(b"{broken"),
                await client.post([]),
                await client.post({"jsonrpc": "2.0", "id": 1}),
                await client.post({}, "/messages?sessionId=made-up"),
                await client.post({}, "/messages"),
            ]

    assert run(converse()) == [400, 400, 400, 404, 404]


def test_its_sessions_are_nothing_to_the_endpoint_and_the_other_way_round(pair: Gate) -> None:
    async def converse() -> list[int]:
        async with listening(pair.url) as client, Legacy.to(pair.url) as legacy:
            await client.initialize()
            await legacy.initialize()
            crossed = await client.post({}, f"/messages?sessionId={legacy.session}")
            legacy.headers["Mcp-Session-Id"] = client.path.partition("=")[2]
            return [crossed, (await legacy.request("ping")).status, await legacy.delete()]

    assert run(converse()) == [404, 404, 404]


@pytest.mark.parametrize(
    ("verb", "path", "headers", "expected"),
    [
        ("GET", "/sse", {"Host": "evil.example"}, 403),
        ("GET", "/sse", {"Origin": "http://evil.example"}, 403),
        ("GET", "/sse", {"Accept": "application/json"}, 406),
        ("POST", "/sse", {}, 405),
        ("GET", "/messages", {}, 405),
        ("POST", "/messages", {"Content-Type": "text/plain"}, 415),
        ("POST", "/messages", {"Content-Type": "application/json", "Origin": "null"}, 403),
    ],
)
def test_it_is_guarded_like_the_endpoint(
    pair: Gate, verb: str, path: str, headers: dict[str, str], expected: int
) -> None:
    url = pair.url.removesuffix("/mcp") + path

    assert run(status(verb, url, **headers)) == expected


def test_a_body_is_bounded_as_everywhere(pair: Gate) -> None:
    async def converse() -> int:
        async with listening(pair.url) as client:
            return await client.post(b" " * (64 * 2**10 + 1))

    assert run(converse()) == 413


def test_who_may_not_enter_may_not_listen(guarded: Gate) -> None:
    url = guarded.url.removesuffix("/mcp") + "/sse"

    assert run(status("GET", url)) == 401
    assert run(status("GET", url, Authorization="Bearer wrong")) == 401


def test_a_session_belongs_to_whoever_opened_it(guarded: Gate) -> None:
    async def converse() -> tuple[int, int]:
        async with listening(guarded.url, bearer("ann")) as client:
            await client.initialize()
            message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            mine = await client.post(message)
            client.headers = bearer("bob")
            return mine, await client.post(message)

    assert run(converse()) == (202, 404)


def test_a_stream_that_broke_is_nothing_to_another_principal(guarded: Gate) -> None:
    """The same holds for streams of the endpoint: not even that they exist can be seen."""

    async def converse() -> int:
        async with Legacy.to(guarded.url, bearer("ann")) as client:
            await client.initialize()
            told = {**client.headers, **bearer("bob")}
            told |= {"Accept": "text/event-stream", "Last-Event-ID": "0-0"}
            async with client.http.get(client.url, headers=told) as response:
                return response.status

    assert run(converse()) == 404


def test_a_hundred_clients_that_vanish_leave_no_session(pair: Gate) -> None:
    sessions = 'onegate_sessions{era="legacy"}'

    async def one(gone: asyncio.Event) -> None:
        async with listening(pair.url) as client:
            await client.initialize()
            client.response.close()
        gone.set()

    async def converse() -> None:
        before = pair.number(sessions)
        for _ in range(5):
            events = [asyncio.Event() for _ in range(20)]
            await asyncio.gather(*(one(event) for event in events))
        await eventually_async(lambda: pair.number(sessions) <= before, 10)

    run(converse(), 60)


def test_what_is_being_served_is_answered_before_the_gateway_stops(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("drained")
    servers = {"old": recorded(folder, "old", "--era", "legacy", protocol="legacy")}

    async def converse(gate: Gate) -> Any:
        async with listening(gate.url) as client:
            await client.initialize()
            since = gate.mark()
            await client.call(1, "old__sleep", ms=600)
            await since.told("old", "tools/call")
            gate.gateway.program.send(signal.SIGTERM)
            return await last_message(client)

    with opened_gate(folder, servers, legacy_sse=True) as gate:
        gate.gateway.wait_tools("old__sleep")
        answer = run(converse(gate))
        code = gate.gateway.program.wait_exit()

    assert answer["id"] == 1
    assert "result" in answer
    assert code == 0


async def last_message(client: Listener) -> Any:
    message = await client.message()
    with pytest.raises(AssertionError, match="the stream ended"):
        await client.message()
    return message
