"""What changes in a process that somebody has alone is told to that one, and to nobody else.

Everybody watches everything here; each client has something of its own happen.
"""

import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tests.conversations.talking import heard_by
from tests.kit.fakes import fake
from tests.kit.gateway import Gateway, running_gateway
from tests.kit.http import Modern
from tests.kit.waiting import eventually_async, run
from tests.questions.inside import bearer
from tests.questions.talking import Client, Message, client_of

UPDATED = "notifications/resources/updated"
CHANGED = "notifications/{}/list_changed"
WHO = ("ann modern", "ann legacy", "bob modern", "bob legacy")
ALONE = {who: {who} for who in WHO}
PRINCIPALS = {who: {f"{who[:3]} modern", f"{who[:3]} legacy"} for who in WHO}

SERVERS = {
    "principal": fake("--era", "legacy", protocol="legacy", isolation="principal"),
    "session": fake("--era", "legacy", protocol="legacy", isolation="session"),
    "lease": fake("--era", "legacy", protocol="legacy", isolation="auto"),
    "modern": fake("--era", "modern", protocol="modern", isolation="principal"),
}
HEARERS = {"principal": PRINCIPALS, "session": ALONE, "lease": ALONE, "modern": PRINCIPALS}
"""By server and by whose process it was: who hears of it."""


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def gateway(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    tokens = [
        {"name": name, "sha256": hashlib.sha256(name.encode()).hexdigest()}
        for name in ("ann", "bob")
    ]
    section = {**SERVERS[server], "required": True}
    with running_gateway(
        tmp_path_factory.mktemp("private"), {server: section}, auth={"tokens": tokens}
    ) as gateway:
        yield gateway


def item(who: str) -> str:
    """The resource that this client has changed."""
    return f"fake://item/{who.replace(' ', '-')}"


@asynccontextmanager
async def everybody(
    gateway: Gateway, server: str
) -> AsyncIterator[tuple[Mapping[str, Client], Mapping[str, list[Message]]]]:
    """All clients, and what each of them hears."""
    clients: dict[str, Client] = {}
    heard: dict[str, list[Message]] = {}
    uris = [item(who) for who in WHO]
    kinds = dict.fromkeys(("toolsListChanged", "promptsListChanged", "resourcesListChanged"), True)
    async with AsyncExitStack() as stack:
        for who in WHO:
            name, era = who.split()
            client = await stack.enter_async_context(
                client_of(era, gateway.url, headers=bearer(name))
            )
            assert (await client.call(f"{server}__whoami")).text
            if isinstance(client, Modern):
                ear = client.listening(resourceSubscriptions=uris, **kinds)
            else:
                for uri in uris:
                    assert (await client.request("resources/subscribe", {"uri": uri})).result == {}
                ear = client.listening()
            stream = await stack.enter_async_context(ear)
            heard[who] = await stack.enter_async_context(heard_by(stream))
            clients[who] = client
        yield clients, heard


async def until_heard(
    client: Client, tool: str, arguments: Message, by: Sequence[list[Message]], what: Message
) -> None:
    """Have something happen until these have heard of it: a process is watched a moment after
    it is there."""

    async def happens() -> bool:
        await client.call(tool, arguments)
        return all(any(what.items() <= told(each).items() for each in heard) for heard in by)

    await eventually_async(happens, what=f"{what} in {by}")


def told(message: Message) -> Message:
    return {"method": message["method"], "uri": message.get("params", {}).get("uri")}


@pytest.mark.parametrize("tool", ["touch", "notify"], ids=["watched", "unasked"])
def test_an_update_is_for_the_owner_of_the_process(
    gateway: Gateway, server: str, tool: str
) -> None:
    async def conversation() -> dict[str, set[Any]]:
        async with everybody(gateway, server) as (clients, heard):
            for who, client in clients.items():
                uri = item(who)
                by = [heard[each] for each in HEARERS[server][who]]
                what = {"method": UPDATED, "uri": uri}
                said = {"uri": uri, "method": UPDATED, "params": {"uri": uri}}
                await until_heard(client, f"{server}__{tool}", said, by, what)
            return {who: {told(each)["uri"] for each in heard[who]} - {None} for who in WHO}

    found = run(conversation())

    for who in WHO:
        hears = HEARERS[server]
        assert found[who] == {item(each) for each in WHO if who in hears[each]}


def test_a_change_of_lists_is_for_the_owner_of_the_process(gateway: Gateway, server: str) -> None:
    """The lists are as they were, so it is nobody else's."""
    kinds = dict(zip(WHO[:3], ("tools", "prompts", "resources"), strict=True))

    async def conversation() -> dict[str, set[str]]:
        async with everybody(gateway, server) as (clients, heard):
            for who, kind in kinds.items():
                by = [heard[each] for each in HEARERS[server][who]]
                what = {"method": CHANGED.format(kind)}
                await until_heard(clients[who], f"{server}__notify", what, by, what)
            return {who: {each["method"] for each in heard[who]} for who in WHO}

    found = run(conversation())

    for who in WHO:
        hears = HEARERS[server]
        assert found[who] == {CHANGED.format(kinds[each]) for each in kinds if who in hears[each]}
