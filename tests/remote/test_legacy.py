"""A server elsewhere that speaks the revisions up to 2025-11-25."""

import asyncio
import time
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.kit.waiting import eventually_async, run
from tests.remote.far import EVENTS, Asked, Far, Message, Told, served, text_of
from tests.servers.gate import failure, gate


def far_legacy(**more: Any) -> Far:
    return Far(eras=("legacy",), **more)


def test_a_session_is_opened_once_named_in_all_requests_and_ended(tmp_path: Path) -> None:
    async def converse() -> None:
        async with served(far_legacy()) as far:
            async with gate(tmp_path, {"far": {"url": far.url}}) as it:
                await it.ready()
                async with it.legacy() as client:
                    assert (await client.call("far__echo", {"text": "hi"})).text == "hi"
                await eventually_async(far.gets)
                mine = [seen for seen in far.seen if "Mcp-Session-Id" in seen.headers]
                methods = [seen.method for seen in mine if seen.verb == "POST"]
                assert methods[0] == "notifications/initialized"
                assert {seen.headers["Mcp-Session-Id"] for seen in mine} == {"s1"}
                assert {seen.headers["MCP-Protocol-Version"] for seen in mine} == {"2025-11-25"}
                assert len(far.posts("initialize")) == 1
            assert far.seen[-1].verb == "DELETE"
            assert far.known == set()

    run(converse())


def test_a_server_without_sessions_or_streams_is_asked_for_one_once(tmp_path: Path) -> None:
    """B70: 405 means that there is none, not that it should be tried again."""

    async def converse() -> None:
        async with (
            served(far_legacy(sessions=False, has_stream=False)) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            async with it.modern() as client:
                for _ in range(3):
                    assert (await client.call("far__echo", {"text": "hi"})).text == "hi"
            assert len(far.gets()) == 1
            assert not [seen for seen in far.seen if "Mcp-Session-Id" in seen.headers]

    run(converse())


def test_a_server_that_forgot_the_session_gets_one_new_handshake_for_all(tmp_path: Path) -> None:
    """B67: ten calls at once, all succeed, each is served once; what changed is read."""
    calls: list[str] = []

    async def count(asked: Asked) -> web.StreamResponse:
        calls.append(asked.arguments["n"])
        return asked.text("counted")

    async def converse() -> None:
        async with (
            served(far_legacy(tools={"count": count})) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            async with it.modern() as client:
                await client.call("far__count", {"n": "first"})
                far.known.clear()
                far.tools["new"] = count
                async with asyncio.TaskGroup() as tasks:
                    asked = [
                        tasks.create_task(client.call("far__count", {"n": str(n)}))
                        for n in range(10)
                    ]
                assert [task.result().text for task in asked] == ["counted"] * 10
                assert sorted(calls) == sorted(["first", *map(str, range(10))])
                assert len(far.posts("initialize")) == 2
                listed = (await client.request("tools/list")).result["tools"]
                assert [tool["name"] for tool in listed] == ["far__count", "far__new"]
            assert it.server("far").restarts == {"session": 1}

    run(converse())


def test_a_client_with_a_connection_of_its_own_gets_another_when_its_session_is_lost(
    tmp_path: Path,
) -> None:
    """Its own session at the gateway stays."""

    async def converse() -> None:
        async with (
            served(far_legacy()) as far,
            gate(tmp_path, {"far": {"url": far.url, "isolation": "session"}}) as it,
        ):
            await it.ready()
            async with it.legacy() as client:
                assert (await client.call("far__echo", {"text": "1"})).text == "1"
                first = far.posts("tools/call")[-1].headers["Mcp-Session-Id"]
                far.known.discard(first)
                assert (await client.call("far__echo", {"text": "2"})).text == "2"
                last = far.posts("tools/call")[-1].headers["Mcp-Session-Id"]
                assert last != first
                async with asyncio.TaskGroup() as tasks:
                    for n in range(5):
                        tasks.create_task(client.call("far__echo", {"text": str(n)}))
            used = {seen.headers["Mcp-Session-Id"] for seen in far.posts("tools/call")}
            assert used == {first, last}

    run(converse())


def test_a_session_lost_while_nobody_calls_is_opened_anew(tmp_path: Path) -> None:
    """The stream that is held open tells, and changes are not missed."""

    async def converse() -> None:
        async with served(far_legacy()) as far, gate(tmp_path, {"far": {"url": far.url}}) as it:
            await it.ready()
            await eventually_async(lambda: far.streams)
            far.known.clear()
            far.streams[-1].cut()
            await eventually_async(lambda: len(far.posts("initialize")) == 2)
            await it.ready()
            await eventually_async(lambda: far.streams)
            far.tools["new"] = far.tools["echo"]
            await far.tell("notifications/tools/list_changed")
            await eventually_async(lambda: len(it.server("far").listing.tools) == 2)

    run(converse())


def test_a_broken_stream_is_taken_up_where_it_broke_when_the_server_wants(tmp_path: Path) -> None:
    """2025-11-25, Resumability: `Last-Event-ID` by GET, not before `retry` has passed."""
    asked_at: list[float] = []

    async def breaks(asked: Asked) -> web.StreamResponse:
        asked_at.append(time.monotonic())
        told = await asked.stream()
        await told.event(id="s-0", retry=300)
        await told.tell("notifications/progress", progressToken=asked.token, progress=1)
        await told.event({"jsonrpc": "2.0", "method": "notifications/x"}, id="s-1")
        far.last = asked  # type: ignore[attr-defined]
        told.cut()
        return told.http

    async def resume(last: str, told: Told) -> None:
        asked_at.append(time.monotonic())
        assert last == "s-1"
        asked = far.last  # type: ignore[attr-defined]
        await told.tell("notifications/progress", progressToken=asked.token, progress=2)
        await told.answer(asked.id, text_of("at last"))

    class Lasting(Far):
        """With room for the call that is to be resumed."""

    far = Lasting(eras=("legacy",), tools={"breaks": breaks}, resumed=resume)

    async def converse() -> None:
        async with served(far), gate(tmp_path, {"far": {"url": far.url}}) as it:
            await it.ready()
            async with it.modern() as client:
                answer = await client.call("far__breaks", _meta={"progressToken": 7})
                assert answer.text == "at last"
                assert [each["params"]["progress"] for each in answer.notices] == [1, 2]
            began, resumed = asked_at
            assert 0.25 < resumed - began < 1.0
            assert len(far.posts("tools/call")) == 1

    run(converse())


def test_a_stream_that_names_no_event_cannot_be_taken_up(tmp_path: Path) -> None:
    async def breaks(asked: Asked) -> web.StreamResponse:
        told = await asked.stream()
        told.cut()
        return told.http

    async def converse() -> None:
        async with (
            served(far_legacy(tools={"breaks": breaks}, has_stream=False)) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            async with it.modern() as client:
                lost = await client.call("far__breaks")
                assert failure(lost)["kind"] == "unavailable"
                assert "the stream ended" in lost.text
            assert len(far.gets()) == 1
            assert len(far.posts("tools/call")) == 1

    run(converse())


def test_a_call_that_is_given_up_is_cancelled_by_a_message(tmp_path: Path) -> None:
    """A lost connection cancels nothing before 2026-07-28."""

    async def endless(asked: Asked) -> web.StreamResponse:
        await asyncio.Event().wait()
        return asked.text("never")

    async def converse() -> None:
        rules = [{"match": "*", "timeout": "200ms"}]
        async with (
            served(far_legacy(tools={"endless": endless})) as far,
            gate(tmp_path, {"far": {"url": far.url}}, tools=rules) as it,
        ):
            await it.ready()
            async with it.modern() as client:
                late = await client.call("far__endless")
                assert failure(late)["kind"] == "timeout"
            (call,) = far.posts("tools/call")
            await eventually_async(lambda: far.posts("notifications/cancelled"))
            (told,) = far.posts("notifications/cancelled")
            assert told.message["params"]["requestId"] == call.message["id"]

    run(converse())


def test_answers_come_in_every_form_that_servers_use(tmp_path: Path) -> None:
    """B87, and arrays of 2025-03-26."""

    async def array(asked: Asked) -> web.StreamResponse:
        told = {"jsonrpc": "2.0", "method": "notifications/x"}
        answer = {"jsonrpc": "2.0", "id": asked.id, "result": text_of("array")}
        return web.json_response([told, answer])

    async def charset(asked: Asked) -> web.StreamResponse:
        told = await asked.stream({"Content-Type": f"{EVENTS}; charset=utf-8"})
        return await asked.answered(told, "charset")

    async def commented(asked: Asked) -> web.StreamResponse:
        told = await asked.stream()
        await told.http.write(b": hello\r\n\r\nevent: ping\r\ndata: {}\r\n\r\n")
        await told.event(id=1)
        return await asked.answered(told, "commented")

    async def number_as_text(asked: Asked) -> web.StreamResponse:
        body = {"jsonrpc": "2.0", "id": str(asked.id), "result": text_of("number_as_text")}
        return web.json_response(body, status=201)

    async def lingering(asked: Asked) -> web.StreamResponse:
        told = await asked.stream()
        http = await asked.answered(told, "lingering")
        await asyncio.Event().wait()
        return http

    async def accepted(_: web.Request, message: Message) -> web.Response | None:
        if message.get("method") == "notifications/initialized":
            return web.json_response({"fine": True}, status=202)
        return None

    forms = [array, charset, commented, number_as_text, lingering]

    async def converse() -> None:
        tools = {form.__name__: form for form in forms}
        async with (
            served(far_legacy(tools=tools, before=accepted)) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            async with it.modern() as client:
                for form in forms:
                    answer = await client.call(f"far__{form.__name__}")
                    assert answer.text == form.__name__

    run(converse())


def test_what_is_no_answer_fails_the_call_at_once(tmp_path: Path) -> None:
    async def empty(asked: Asked) -> web.StreamResponse:
        return web.Response(status=202)

    async def page(asked: Asked) -> web.StreamResponse:
        return web.Response(text="<h1>hello</h1>", content_type="text/html")

    async def broken(asked: Asked) -> web.StreamResponse:
        return web.Response(text="no such thing", status=500)

    async def busy(asked: Asked) -> web.StreamResponse:
        return web.Response(status=503, headers={"Retry-After": "7"})

    async def locked(asked: Asked) -> web.StreamResponse:
        return web.Response(status=401)

    wrong = {
        empty: ("server_error", "without an answer"),
        page: ("server_error", "a web page"),
        broken: ("server_error", "HTTP 500: no such thing"),
        busy: ("unavailable", "come again in 7 s"),
        locked: ("unavailable", "does not accept the credentials"),
    }

    async def converse() -> None:
        tools = {form.__name__: form for form in wrong}
        async with (
            served(far_legacy(tools=tools)) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            async with it.modern() as client:
                for form, (kind, words) in wrong.items():
                    answer = await client.call(f"far__{form.__name__}")
                    assert failure(answer)["kind"] == kind
                    assert words in answer.text
                    assert failure(answer)["retryable"] == (form is busy)
            assert it.server("far").restarts.total() == 0

    run(converse())
