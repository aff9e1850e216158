"""The stream that tells of a server's changes: refused, silent, broken, and dead."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gateway.downstream.transports import http
from tests.kit.waiting import eventually_async, run
from tests.remote.far import Far, Message, Seen, refusal, served
from tests.servers.gate import gate


def legacy(**more: Any) -> Far:
    return Far(eras=("legacy",), **more)


def listens(far: Far) -> list[Seen]:
    return far.posts("subscriptions/listen")


@pytest.mark.parametrize("when", ["first", "later"])
@pytest.mark.parametrize("how", ["busy", "internal", "cut"])
def test_a_server_that_cannot_be_listened_to_just_now_is_asked_again(
    tmp_path: Path, when: str, how: str
) -> None:
    """Behind a balancer that restarts its servers one stream or another is refused."""
    far = Far()
    refused = {"first": 1, "later": 2}[when]

    async def moody(request: web.Request, message: Message) -> web.StreamResponse | None:
        if message["method"] != "subscriptions/listen" or len(listens(far)) != refused:
            return None
        if how == "cut":
            assert request.transport is not None
            request.transport.abort()
        if how == "internal" and when == "later":
            return refusal(message, -32603, "Internal error", 500)
        return web.Response(status=503 if how == "busy" else 500)

    far.before = moody

    async def converse() -> None:
        async with served(far), gate(tmp_path, {"far": {"url": far.url}}) as it:
            await it.ready()
            if when == "later":
                await eventually_async(lambda: far.streams)
                far.streams[-1].cut()
            await eventually_async(lambda: len(listens(far)) > refused and far.streams)
            far.tools["new"] = far.tools["echo"]
            await far.tell("notifications/tools/list_changed")
            await eventually_async(lambda: len(it.server("far").listing.tools) == 2)
            assert it.server("far").restarts.total() == 0

    run(converse())


def test_a_server_that_has_no_listen_is_not_asked_again(tmp_path: Path) -> None:
    far = Far()

    async def none(_: web.Request, message: Message) -> web.Response | None:
        if message["method"] == "subscriptions/listen":
            return refusal(message, -32601, "Method not found", 404)
        return None

    far.before = none

    async def converse() -> None:
        async with served(far), gate(tmp_path, {"far": {"url": far.url}}) as it:
            await it.ready()
            await eventually_async(lambda: it.said("listen.refused"))
            async with it.modern() as client:
                assert (await client.call("far__echo", {"text": "1"})).text == "1"
            assert len(listens(far)) == 1

    run(converse())


def test_an_ear_that_is_renewed_for_its_silence_tells_nobody_of_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "SILENCE_S", 0.2)
    far = Far()

    async def converse() -> None:
        async with served(far), gate(tmp_path, {"far": {"url": far.url}}) as it:
            await it.ready()
            async with it.modern() as client, client.listening(toolsListChanged=True) as ear:
                await eventually_async(lambda: len(listens(far)) >= 4)
                listed = len(far.posts("tools/list"))
                far.tools["new"] = far.tools["echo"]
                await eventually_async(lambda: far.streams)
                await far.tell("notifications/tools/list_changed")
                assert (await ear.message())["method"] == "notifications/tools/list_changed"
                assert len(far.posts("tools/list")) == listed + 1
            assert listed == 1

    run(converse())


def test_changes_told_while_a_stream_without_ids_was_broken_are_found(tmp_path: Path) -> None:
    """2025-11-25: it cannot be resumed, and clients hear of it only if there is something."""
    far = legacy()

    async def converse() -> None:
        async with served(far), gate(tmp_path, {"far": {"url": far.url}}) as it:
            await it.ready()
            await eventually_async(lambda: far.streams)
            await far.tell("notifications/message", level="info", data="here")
            async with it.modern() as client, client.listening(toolsListChanged=True) as ear:
                far.tools["new"] = far.tools["echo"]
                far.streams[-1].cut()
                assert (await ear.message())["method"] == "notifications/tools/list_changed"
            assert len(it.server("far").listing.tools) == 2
            assert it.server("far").restarts.total() == 0

    run(converse())


def test_the_system_looks_whether_a_silent_server_is_there(tmp_path: Path) -> None:
    """A keep-alive timer, as /proc/net/tcp shows it: 02."""

    def watched(port: int) -> bool:
        rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        to = f":{port:04X}"
        return any(row[2].endswith(to) and row[5].startswith("02:") for row in rows)

    async def converse() -> None:
        async with served(legacy()) as far, gate(tmp_path, {"far": {"url": far.url}}) as it:
            await it.ready()
            await eventually_async(lambda: far.streams)
            port = int(far.url.rpartition(":")[2].partition("/")[0])
            await eventually_async(lambda: watched(port))

    run(converse())
