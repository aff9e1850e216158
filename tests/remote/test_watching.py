"""Resources of servers elsewhere that clients watch: far away, late, and changing hands."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gateway.downstream import fleet
from tests.kit.http import Stream
from tests.kit.waiting import eventually_async, run
from tests.remote.far import Far, Message, served
from tests.servers.gate import gate

UPDATED = "notifications/resources/updated"
SUBSCRIBE = "resources/subscribe"


class Library:
    """What a server elsewhere has to read, and who watches what."""

    def __init__(self, *uris: str, late_s: float = 0.0) -> None:
        self.uris = list(uris)
        self.late_s = late_s
        self.watched: list[str] = []

    def far(self, era: str = "legacy") -> Far:
        capabilities = {"tools": {}, "resources": {"subscribe": True, "listChanged": True}}
        return Far(eras=(era,), capabilities=capabilities, before=self.before)

    async def before(self, _: web.Request, message: Message) -> web.Response | None:
        result: Message
        match message.get("method"):
            case "resources/list":
                result = {"resources": [{"uri": uri, "name": uri} for uri in self.uris]}
            case "resources/templates/list":
                result = {"resourceTemplates": []}
            case "resources/subscribe":
                await asyncio.sleep(self.late_s)
                self.watched.append(message["params"]["uri"])
                result = {}
            case _:
                return None
        if "io.modelcontextprotocol/protocolVersion" in message["params"].get("_meta", {}):
            result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})


async def updated(ear: Stream) -> str:
    while True:
        message = await ear.message()
        if message["method"] == UPDATED:
            return str(message["params"]["uri"])


def test_many_resources_are_all_watched_however_far_their_server_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients wait for so long that they surely hear of the next change; the rest comes after.
    So it is when the server has forgotten them all."""
    monkeypatch.setattr(fleet, "WATCHED_WITHIN_S", 0.05)
    uris = [f"far://{n}" for n in range(60)]
    library = Library(*uris, late_s=0.02)

    async def converse() -> None:
        async with (
            served(library.far()) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            async with it.modern() as client, client.listening(resourceSubscriptions=uris):
                await eventually_async(lambda: sorted(library.watched) == sorted(uris))
                library.watched.clear()
                far.known.clear()
                far.streams[-1].cut()
                await eventually_async(lambda: sorted(library.watched) == sorted(uris))

    run(converse())


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_resource_that_comes_later_is_watched_when_it_does(tmp_path: Path, era: str) -> None:
    library = Library("far://one")

    async def converse() -> None:
        async with (
            served(library.far(era)) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            await eventually_async(lambda: far.streams)
            wanted = {"resourceSubscriptions": ["far://two"]}
            async with it.modern() as client, client.listening(**wanted) as ear:
                library.uris.append("far://two")
                await far.tell("notifications/resources/list_changed")
                await eventually_async(lambda: "far://two" in _watched(far, library))
                await eventually_async(lambda: len(far.streams) == 1)
                await far.tell(UPDATED, uri="far://two")
                assert await updated(ear) == "far://two"

    run(converse())


def _read_times(far: Far, times: int) -> bool:
    return len(far.posts("resources/list")) > times


def _watched(far: Far, library: Library) -> list[Any]:
    listens = far.posts("subscriptions/listen")
    wished = [each.message["params"]["notifications"] for each in listens]
    return [*library.watched, *(uri for one in wished for uri in one["resourceSubscriptions"])]


def test_a_resource_that_passes_to_another_server_is_watched_there(tmp_path: Path) -> None:
    first, second = Library("far://one"), Library("far://one")

    async def converse() -> None:
        async with served(first.far()) as one, served(second.far()) as two:
            servers = {"one": {"url": one.url}, "two": {"url": two.url}}
            async with gate(tmp_path, servers) as it:
                await it.ready("one", "two")
                wanted = {"resourceSubscriptions": ["far://one"]}
                async with it.modern() as client, client.listening(**wanted) as ear:
                    assert (first.watched, second.watched) == (["far://one"], [])
                    first.uris.clear()
                    await eventually_async(lambda: one.streams and two.streams)
                    await one.tell("notifications/resources/list_changed")
                    await eventually_async(lambda: second.watched == ["far://one"])
                    await two.tell(UPDATED, uri="far://one")
                    assert await updated(ear) == "far://one"

    run(converse())


def test_what_changed_while_a_listen_was_broken_is_told(tmp_path: Path) -> None:
    library = Library("far://one")

    async def converse() -> None:
        async with (
            served(library.far("modern")) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            wanted = {"resourceSubscriptions": ["far://one"]}
            async with it.modern() as client, client.listening(**wanted) as ear:
                await eventually_async(lambda: len(far.streams) == 1)
                far.streams[-1].cut()
                assert await updated(ear) == "far://one"
            assert it.server("far").restarts.total() == 0

    run(converse())


@pytest.mark.parametrize("client", ["modern", "legacy"])
def test_an_update_of_a_part_reaches_who_watches_the_whole(tmp_path: Path, client: str) -> None:
    """The schemas speak of "a sub-resource of the one that the client actually subscribed to"."""
    library = Library("far://one", "far://on")

    async def converse() -> None:
        async with (
            served(library.far("modern")) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
            it.modern() as modern,
            it.legacy() as legacy,
        ):
            await it.ready()
            if client == "modern":
                listening = modern.listening(resourceSubscriptions=["far://one"])
            else:
                await legacy.request(SUBSCRIBE, {"uri": "far://one"})
                listening = legacy.listening()
            async with listening as ear:
                await eventually_async(lambda: "far://one" in _watched(far, library))
                await eventually_async(lambda: len(far.streams) == 1)
                for uri in ("far://ones", "far://on", "far://one/part?n=1"):
                    await far.tell(UPDATED, uri=uri)
                assert await updated(ear) == "far://one/part?n=1"

    run(converse())


def test_a_server_whose_reading_is_a_change_is_read_less_and_less(tmp_path: Path) -> None:
    """It announces one whenever its list is read."""
    library = Library("far://one")

    async def converse() -> None:
        far = library.far()

        async def restless(request: web.Request, message: Message) -> web.Response | None:
            if message.get("method") == "resources/list" and far.streams:
                await far.tell("notifications/resources/list_changed")
            return await library.before(request, message)

        far.before = restless
        async with served(far), gate(tmp_path, {"far": {"url": far.url}}) as it:
            await it.ready()
            await eventually_async(lambda: far.streams)
            await far.tell("notifications/resources/list_changed")
            waits = []
            loop = asyncio.get_running_loop()
            for n in range(1, 10):
                began = loop.time()
                await eventually_async(partial(_read_times, far, n))
                waits.append(loop.time() - began)
            assert waits[-1] > 3 * waits[1]

    run(converse())
