"""What bounds sessions: whose they are, how many there may be, how long they may be idle.

Source: 2025-11-25 basic/security_best_practices, "Session Hijacking"; cases B65, B68, B69, B80.
"""

import asyncio
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.conversations.talking import (
    Gate,
    Message,
    called,
    client_of,
    each_era,
    opened_gate,
    recorded,
)
from tests.kit.http import Answer, Legacy, Modern, Wire, read
from tests.kit.waiting import eventually_async, run

TOKENS = {"ann": "CANARY-of-ann", "bob": "CANARY-of-bob"}


def bearing(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[name]}"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    """A gateway that asks for tokens, and knows two."""
    folder = tmp_path_factory.mktemp("guarded")
    known = [
        {"name": name, "sha256": sha256(token.encode()).hexdigest()}
        for name, token in TOKENS.items()
    ]
    servers = {"old": recorded(folder, "old", required=True), "new": recorded(folder, "new")}
    limits = {"sessions": 3}
    with opened_gate(folder, servers, auth={"tokens": known}, limits=limits) as gate:
        yield gate


async def tried(client: Legacy) -> list[Answer]:
    """Every way to use a session, in an order that ends with its end."""
    answers = [
        await client.request("tools/list"),
        await client.notify("notifications/cancelled", {"requestId": 1}),
        await client.respond("x", {}),
    ]
    for verb in ("GET", "DELETE"):
        told = {**client.headers, "Accept": "text/event-stream"}
        async with client.http.request(verb, client.url, headers=told) as response:
            answers.append(await read(response))
    return answers


def test_a_session_is_of_no_use_to_anybody_else(guarded: Gate) -> None:
    """The answer is that of a session nobody has ever opened, to the letter."""

    async def converse() -> tuple[list[Answer], list[Answer], Answer]:
        async with client_of("legacy", guarded.url, bearing("ann")) as ann:
            assert isinstance(ann, Legacy)
            async with Legacy.to(guarded.url, bearing("bob")) as bob:
                bob.headers["Mcp-Session-Id"] = str(ann.session)
                stolen = await tried(bob)
            async with Legacy.to(guarded.url, bearing("bob")) as bob:
                bob.headers["Mcp-Session-Id"] = "0" * 32
                unknown = await tried(bob)
            return stolen, unknown, await ann.request("ping")

    stolen, unknown, ping = run(converse())

    assert [answer.status for answer in stolen] == [404] * 5
    assert [answer.body for answer in stolen] == [answer.body for answer in unknown]
    assert ping.result == {}, "and its owner still has it"


@pytest.mark.parametrize("token", [None, "wrong"])
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE"])
def test_without_a_known_token_there_is_a_challenge_and_no_word_of_sessions(
    guarded: Gate, token: str | None, verb: str
) -> None:
    """401 comes before 404: who may not knock does not learn what is inside (RFC 6750)."""

    async def converse() -> Answer:
        told = {} if token is None else {"Authorization": f"Bearer {token}"}
        told |= {"Mcp-Session-Id": "0" * 32, "Content-Type": "application/json"}
        async with (
            Wire.to(guarded.url) as wire,
            wire.http.request(verb, wire.url, headers=told) as response,
        ):
            return await read(response)

    answer = run(converse())

    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@each_era
def test_a_clients_token_goes_no_further(guarded: Gate, era: str) -> None:
    """cases B79: neither to servers nor into the record, where its owner's name is."""
    since = guarded.mark()

    async def converse() -> str:
        async with client_of(era, guarded.url, bearing("ann")) as client:
            await client.call("old__echo", {"text": "x"})
            return (await client.call("old__env")).text

    environment = run(converse())

    record = since.records(number=2)[0]
    assert record["principal"] == "ann"
    written = [file.read_text() for file in guarded.folder.glob("*.heard")]
    for text in (environment, *written, str(record), guarded.gateway.text):
        assert "CANARY" not in text


def test_at_the_bound_the_session_idle_for_longest_makes_room(guarded: Gate) -> None:
    """Those with a call or a stream are spared; all others are used again by initializing."""

    async def opened(wire: Wire) -> Legacy:
        client = Legacy(wire.http, guarded.url, bearing("ann"))
        await client.initialize()
        return client

    async def converse() -> list[int]:
        async with Wire.to(guarded.url) as wire:
            listening, first, second = [await opened(wire) for _ in range(3)]
            async with listening.listening():
                await first.request("ping")
                third = await opened(wire)
                assert guarded.number("onegate_sessions") == 3
                everyone = (listening, first, second, third)
                found = [(await client.request("ping")).status for client in everyone]
            for client in everyone:
                await client.delete()
            return found

    assert run(converse()) == [200, 200, 404, 200]


def test_where_all_have_calls_under_way_nobody_loses_one_to_a_newcomer(tmp_path: Path) -> None:
    servers = {"old": recorded(tmp_path, "old", "--era", "legacy", protocol="legacy")}
    told = {"arguments": {"ms": 700}}

    async def converse(gate: Gate) -> tuple[Answer, int, Answer]:
        since = gate.mark()
        async with client_of("legacy", gate.url) as first, Wire.to(gate.url) as wire:
            newcomer = Legacy(wire.http, gate.url)
            async with asyncio.TaskGroup() as tasks:
                working = tasks.create_task(first.post(called(first, "old__sleep", 1, **told)))
                await since.told("old", "tools/call")
                params = {"protocolVersion": "2025-11-25", "capabilities": {}}
                refused = await newcomer.request("initialize", params)
                origin = gate.url.removesuffix("/mcp")
                headers = {"Accept": "text/event-stream"}
                async with wire.http.get(f"{origin}/sse", headers=headers) as answer:
                    old = answer.status
            await newcomer.initialize()
            await newcomer.delete()
            return refused, old, working.result()

    with opened_gate(tmp_path, servers, limits={"sessions": 1}, legacy_sse=True) as gate:
        gate.gateway.wait_tools("old__sleep")
        refused, old, worked = run(converse(gate))

    assert (refused.status, old) == (503, 503)
    assert refused.error["data"] == {"kind": "throttled", "limit": "limits.sessions"}
    assert "`limits.sessions`" in refused.error["message"]
    assert worked.text == "slept 700 ms"


def test_a_session_is_idle_from_the_end_of_its_last_call_on(tmp_path: Path) -> None:
    servers = {"old": recorded(tmp_path, "old", "--era", "legacy", protocol="legacy")}

    async def converse(gate: Gate) -> tuple[str, int]:
        async with client_of("legacy", gate.url) as client:
            slept = await client.call("old__sleep", {"ms": 1500})
            return slept.text, (await client.request("ping")).status

    limits = {"session_idle": "600ms"}
    with opened_gate(tmp_path, servers, limits=limits) as gate:
        gate.gateway.wait_tools("old__sleep")
        assert run(converse(gate)) == ("slept 1500 ms", 200)


def test_a_session_ends_when_it_is_idle_unless_something_is_open(tmp_path: Path) -> None:
    servers = {"old": recorded(tmp_path, "old", "--era", "legacy", protocol="legacy")}

    async def converse(gate: Gate) -> list[Any]:
        async with Wire.to(gate.url) as wire:
            idle, listening = Legacy(wire.http, gate.url), Legacy(wire.http, gate.url)
            await listening.initialize()
            async with listening.listening():
                await idle.initialize()
                await idle.request("resources/subscribe", {"uri": "fake://plain"})
                since = gate.mark()
                await eventually_async(lambda: gate.number("onegate_sessions") == 1, 15)
                await since.told("old", "resources/unsubscribe")
                return [(await each.request("ping")).status for each in (idle, listening)]

    with opened_gate(tmp_path, servers, limits={"session_idle": "400ms"}) as gate:
        gate.gateway.wait_tools("old__echo")
        assert run(converse(gate)) == [404, 200]


def test_modern_clients_have_no_sessions_to_count(guarded: Gate) -> None:
    before = guarded.number("onegate_sessions")

    async def converse() -> Message:
        async with Modern.to(guarded.url, bearing("ann")) as client:
            for _ in range(5):
                await client.call("old__echo")
            return (await client.request("tools/list")).result

    assert run(converse())["tools"]
    assert guarded.number("onegate_sessions") == before
