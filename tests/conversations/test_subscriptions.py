"""Resources that clients watch: told to their server once, fanned out to whoever asked.

Source: 2025-11-25 server/resources, "Subscriptions"; 2026-07-28 basic/patterns/subscriptions.
A server keeps a set of URIs, not a count.
"""

import asyncio
import json
import os
import signal
from collections.abc import Iterator, Sequence

import pytest

from tests.conversations.talking import (
    SERVERS,
    Gate,
    Message,
    arrived,
    client_of,
    each_server,
    exposed,
    heard_by,
    opened_gate,
    recorded,
)
from tests.kit.http import Answer, Legacy, Modern
from tests.kit.waiting import eventually_async, run

UPDATED = "notifications/resources/updated"
SUBSCRIBE, UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"
PLAIN = "fake://plain"


def uris(heard: Sequence[Message]) -> list[str]:
    return [each["params"]["uri"] for each in heard if each["method"] == UPDATED]


async def touch(client: Modern | Legacy, server: str, uri: str = PLAIN) -> None:
    """Have a server's resource change, in the process that is watched."""
    await client.call(f"{server}__touch", {"uri": uri})


@each_server
def test_an_update_reaches_who_watches_and_nobody_else(gate: Gate, server: str) -> None:
    watched = exposed(server, PLAIN)

    async def converse() -> tuple[list[Message], ...]:
        async with (
            Modern.to(gate.url) as modern,
            client_of("legacy", gate.url) as legacy,
            client_of("legacy", gate.url) as other,
        ):
            assert isinstance(legacy, Legacy)
            assert isinstance(other, Legacy)
            assert (await legacy.request(SUBSCRIBE, {"uri": watched})).result == {}
            async with (
                modern.listening(resourceSubscriptions=[watched]) as listen,
                modern.listening(resourceSubscriptions=[exposed(server, "fake://blob")]) as wrong,
                legacy.listening() as stream,
                other.listening() as silent,
                heard_by(listen) as by_modern,
                heard_by(wrong) as by_wrong,
                heard_by(stream) as by_legacy,
                heard_by(silent) as by_other,
            ):
                for _ in range(2):
                    await touch(modern, server)
                await eventually_async(lambda: len(by_modern) == len(by_legacy) == 2)
                await touch(modern, server, "fake://blob")
                await arrived(by_wrong)
            await legacy.request(UNSUBSCRIBE, {"uri": watched})
            return by_modern, by_legacy, by_wrong, by_other

    by_modern, by_legacy, by_wrong, by_other = run(converse())

    assert uris(by_modern) == uris(by_legacy) == [watched] * 2, "under the name they know"
    assert uris(by_wrong) == [exposed(server, "fake://blob")]
    assert by_other == []
    assert "_meta" not in by_legacy[0]["params"]


def test_one_listen_may_watch_resources_of_several_servers(gate: Gate) -> None:
    watched = [exposed(server, PLAIN) for server in SERVERS]

    async def converse() -> list[str]:
        async with Modern.to(gate.url) as client:
            async with (
                client.listening(resourceSubscriptions=watched) as stream,
                heard_by(stream) as heard,
            ):
                for number, server in enumerate(SERVERS, 1):
                    await touch(client, server)
                    await arrived(heard, number)
            return uris(heard)

    assert run(converse()) == watched


def test_a_resource_of_a_template_can_be_watched(gate: Gate) -> None:
    async def converse() -> list[str]:
        async with client_of("legacy", gate.url) as client:
            assert isinstance(client, Legacy)
            await client.request(SUBSCRIBE, {"uri": "fake://item/9"})
            async with client.listening() as stream, heard_by(stream) as heard:
                await touch(client, "old", "fake://item/9")
                await arrived(heard)
            return uris(heard)

    assert run(converse()) == ["fake://item/9"]


def test_updates_without_a_stream_wait_for_one_once_each(gate: Gate) -> None:
    async def converse() -> list[str]:
        async with client_of("legacy", gate.url) as client, Modern.to(gate.url) as other:
            assert isinstance(client, Legacy)
            await client.request(SUBSCRIBE, {"uri": PLAIN})
            async with (
                other.listening(resourceSubscriptions=[PLAIN]) as witness,
                heard_by(witness) as seen,
            ):
                for number in (1, 2, 3):
                    await touch(client, "old")
                    await arrived(seen, number)
            async with client.listening() as stream, heard_by(stream) as heard:
                await touch(client, "old")
                await arrived(heard, 2)
            return uris(heard)

    assert run(converse()) == [PLAIN] * 2


def test_a_server_hears_of_the_first_watcher_and_of_the_last(gate: Gate) -> None:
    """Any of them may leave in any way; the others go on hearing."""

    async def converse() -> tuple[list[str], list[str]]:
        since = gate.mark()
        async with client_of("legacy", gate.url) as first, Legacy.to(gate.url) as second:
            await second.initialize()
            for client in (first, second, first):
                await client.request(SUBSCRIBE, {"uri": "fake://blob"})
            async with Modern.to(gate.url) as third:
                async with third.listening(resourceSubscriptions=["fake://blob"]):
                    pass
                await first.request(UNSUBSCRIBE, {"uri": "fake://blob"})
                await first.request(UNSUBSCRIBE, {"uri": "fake://blob"})
                async with third.listening(resourceSubscriptions=["fake://blob"]) as stream:
                    await touch(third, "old", "fake://blob")
                    assert uris([await stream.message()]) == ["fake://blob"]
            between = [each["method"] for each in watching(since.heard("old"))]
            await second.delete()
            await since.told("old", UNSUBSCRIBE)
            return between, [each["method"] for each in watching(since.heard("old"))]

    between, after = run(converse())

    assert between == [SUBSCRIBE]
    assert after == [SUBSCRIBE, UNSUBSCRIBE]


def watching(heard: list[Message]) -> list[Message]:
    return [
        each
        for each in heard
        if each.get("method") in (SUBSCRIBE, UNSUBSCRIBE) and each["params"]["uri"] == "fake://blob"
    ]


@pytest.mark.parametrize("uri", ["no://where", "", None, 7])
def test_a_resource_nobody_has_cannot_be_subscribed_to(gate: Gate, uri: object) -> None:
    """2025-11-25 server/resources: -32002, with the URI."""

    async def converse() -> Answer:
        async with client_of("legacy", gate.url) as client:
            return await client.request(SUBSCRIBE, {} if uri is None else {"uri": uri})

    error = run(converse()).error

    if isinstance(uri, str):
        assert (error["code"], error["data"]["uri"]) == (-32002, uri)
    else:
        assert error["code"] == -32602


def test_unsubscribing_from_what_is_not_watched_is_fine(gate: Gate) -> None:
    async def converse() -> Answer:
        async with client_of("legacy", gate.url) as client:
            return await client.request(UNSUBSCRIBE, {"uri": "no://where"})

    assert run(converse()).result == {}


def test_a_modern_server_is_listened_to_without_a_gap(gate: Gate) -> None:
    """What is watched is fixed for each listen: the next is open before the last one ends."""

    async def converse() -> list[Message]:
        since = gate.mark()
        watched = exposed("new", "fake://item/gap")
        async with Modern.to(gate.url) as client:
            async with client.listening(resourceSubscriptions=[watched]):
                await since.told("new", "notifications/cancelled")
            await since.told("new", "notifications/cancelled", number=2)
            return since.heard("new")

    heard = run(converse())

    told = ("subscriptions/listen", "notifications/cancelled")
    listens = [each for each in heard if each["method"] in told]
    assert [each["method"] for each in listens] == [*told, *told]
    first, _, second, ended = listens
    wanted = [each["params"]["notifications"] for each in (first, second)]
    assert "fake://item/gap" in wanted[0]["resourceSubscriptions"]
    assert "fake://item/gap" not in wanted[1]["resourceSubscriptions"]
    assert all(each["toolsListChanged"] for each in wanted)
    assert ended["params"]["requestId"] == first["id"], "the one before, not the new one"


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    """A gateway with servers that are killed here."""
    folder = tmp_path_factory.mktemp("mortal")
    servers = {
        "old": recorded(folder, "old", "--era", "legacy", protocol="legacy"),
        "new": recorded(folder, "new", "--era", "modern", protocol="modern"),
        "mute": recorded(folder, "mute", protocol="legacy", stop_grace="200ms"),
    }
    with opened_gate(folder, servers) as gate:
        gate.gateway.wait_tools(*(f"{server}__touch" for server in servers))
        yield gate


@pytest.mark.parametrize("server", ["old", "new"])
def test_a_server_that_comes_back_is_told_again(mortal: Gate, server: str) -> None:
    gate, watched = mortal, exposed(server, PLAIN)

    async def converse() -> list[str]:
        async with client_of("legacy", gate.url) as legacy, Modern.to(gate.url) as modern:
            assert isinstance(legacy, Legacy)
            await legacy.request(SUBSCRIBE, {"uri": watched})
            async with (
                legacy.listening() as stream,
                modern.listening(resourceSubscriptions=[watched]) as listen,
                heard_by(stream) as by_legacy,
                heard_by(listen) as by_modern,
            ):
                since = gate.mark()
                await modern.call(f"{server}__crash")
                told = SUBSCRIBE if server == "old" else "subscriptions/listen"
                await since.told(server, told)
                await eventually_async(lambda: uris(by_modern) and uris(by_legacy))
                await touch(modern, server)
                await eventually_async(lambda: len(uris(by_modern)) == len(uris(by_legacy)) == 2)
            return [*uris(by_modern), *uris(by_legacy)]

    assert run(converse()) == [watched] * 4, "the first for what nobody could be told meanwhile"


def test_a_watcher_that_vanishes_while_its_server_is_told_is_not_counted_for_ever(
    mortal: Gate,
) -> None:
    """The server does not confirm, and the client gives up before it would. When the server is
    back nobody watches anything, so it is told of nothing."""
    gate, watched = mortal, exposed("mute", PLAIN)

    async def give_up(client: Modern) -> None:
        wanted = {"notifications": {"resourceSubscriptions": [watched]}}
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await client.request("subscriptions/listen", wanted)

    async def converse() -> list[Message]:
        async with Modern.to(gate.url) as client:
            pid = json.loads((await client.call("mute__whoami")).text)["pid"]
            await client.call("mute__stop_reading")
            await give_up(client)
            since = gate.mark()
            os.kill(pid, signal.SIGKILL)
            await since.told("mute", "resources/templates/list")
            assert (await client.call("mute__echo", {"text": "back"})).text == "back"
            await client.call("mute__echo")
            return [each for each in since.heard("mute") if each.get("method") == SUBSCRIBE]

    assert run(converse()) == []
