"""A server elsewhere that speaks 2026-07-28."""

import asyncio
import json
from pathlib import Path

from aiohttp import web

from tests.kit.http import Modern
from tests.kit.waiting import eventually_async, run
from tests.remote.far import Asked, Far, Message, refusal, served
from tests.servers.gate import failure, gate

REGION = {
    "inputSchema": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }
}


def test_each_request_carries_what_routing_needs_and_nothing_of_the_client(tmp_path: Path) -> None:
    """B79; 2026-07-28, Request Metadata: the name is the server's own, without our prefix."""

    async def converse() -> None:
        secret = {"Authorization": "Bearer far-secret"}
        async with (
            served(Far()) as far,
            gate(
                tmp_path, {"far": {"url": far.url, "headers": secret, "protocol": "modern"}}
            ) as it,
        ):
            await it.ready()
            told = {"Authorization": "Bearer canary", "Cookie": "canary=1", "Mcp-Param-X": "y"}
            async with Modern.to(it.url, told) as client:
                assert (await client.call("far__echo", {"text": "hi"})).text == "hi"
            (call,) = far.posts("tools/call")
            assert call.headers["Mcp-Name"] == "echo"
            assert call.headers["Mcp-Method"] == "tools/call"
            assert call.headers["Authorization"] == "Bearer far-secret"
            for seen in far.seen:
                assert seen.headers["MCP-Protocol-Version"] == "2026-07-28"
                assert "application/json" in seen.headers["Accept"]
                assert "text/event-stream" in seen.headers["Accept"]
                assert not {"Mcp-Session-Id", "Cookie", "Mcp-Param-X"} & seen.headers.keys()
                assert "canary" not in str(seen)
            assert "far-secret" not in str(it.log)
            assert (await it.report("far"))["command"] == [far.url.removesuffix("/mcp")]

    run(converse())


def test_arguments_are_repeated_in_headers_and_the_list_read_again_if_they_are_missed(
    tmp_path: Path,
) -> None:
    """The server changes its tool without a word: one refusal, one list, one more try."""
    far = Far(extras={"echo": REGION})

    async def wants_tenant(request: web.Request, message: Message) -> web.Response | None:
        missing = message["method"] == "tools/call" and "Mcp-Param-Tenant" not in request.headers
        return refusal(message, -32020, "Mcp-Param-Tenant is missing", 400) if missing else None

    async def converse() -> None:
        async with served(far), gate(tmp_path, {"far": {"url": far.url}}) as it:
            await it.ready()
            arguments = {"region": "Zürich", "text": "x"}
            async with it.modern() as client:
                headers = {"Mcp-Param-Region": "=?base64?WsO8cmljaA==?="}
                message = client.message(
                    "tools/call", {"name": "far__echo", "arguments": arguments}
                )
                await client.post(message, {**client.routing(message), **headers})
                assert far.posts("tools/call")[-1].headers["Mcp-Param-Region"] == (
                    "=?base64?WsO8cmljaA==?="
                )
                changed = json.loads(json.dumps(REGION).replace("Region", "Tenant"))
                far.extras, far.before = {"echo": changed}, wants_tenant
                lists = len(far.posts("tools/list"))
                answer = await client.post(message, {**client.routing(message), **headers})
                assert answer.text == "x"
                assert far.posts("tools/call")[-1].headers["Mcp-Param-Tenant"]
                assert len(far.posts("tools/call")) == 3
                await eventually_async(lambda: len(far.posts("tools/list")) == lists + 2)

    run(converse())


def test_a_tool_with_headers_that_no_client_may_send_is_left_out_and_said(tmp_path: Path) -> None:
    bad = {"inputSchema": {"type": "object", "properties": {"a": {"x-mcp-header": "A b"}}}}

    async def converse() -> None:
        tools = {"echo": Far().tools["echo"], "bad": Far().tools["echo"]}
        async with (
            served(Far(tools=tools, extras={"bad": bad})) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            async with it.modern() as client:
                listed = (await client.request("tools/list")).result["tools"]
                assert [tool["name"] for tool in listed] == ["far__echo"]
            assert [note["name"] for note in it.said("entry.left_out")] == ["bad"]

    run(converse())


def test_a_call_that_is_given_up_closes_its_stream_and_no_message_says_so(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def endless(asked: Asked) -> web.StreamResponse:
        told = await asked.stream()
        try:
            while True:
                await told.tell("notifications/progress", progressToken=asked.token, progress=1)
                await asyncio.sleep(0.01)
        except (asyncio.CancelledError, ConnectionError):
            ended.set()
            raise

    async def converse() -> None:
        async with (
            served(Far(tools={"endless": endless})) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            async with it.modern() as client:
                meta = {"_meta": {"progressToken": "mine"}}
                async with client.streaming(
                    "tools/call", {"name": "far__endless", "arguments": {}, **meta}
                ) as stream:
                    told = await stream.message()
                    assert told["params"]["progressToken"] == "mine"
                await eventually_async(ended.is_set)
            assert far.posts("notifications/cancelled") == []

    run(converse())


def test_what_comes_on_a_stream_belongs_to_its_call_alone(tmp_path: Path) -> None:
    """Two calls at once; log lines name no request, yet each reaches the right one."""
    both = asyncio.Barrier(2)

    async def chatty(asked: Asked) -> web.StreamResponse:
        told = await asked.stream()
        await both.wait()
        for _ in range(5):
            await told.tell("notifications/message", level="info", data=asked.arguments["me"])
        return await asked.answered(told, "done")

    async def one(client: Modern, me: str) -> None:
        meta = {f"{'io.modelcontextprotocol/'}logLevel": "info"}
        answer = await client.call("far__chatty", {"me": me}, _meta=meta)
        assert [notice["params"]["data"] for notice in answer.notices] == [me] * 5

    async def converse() -> None:
        async with (
            served(Far(tools={"chatty": chatty})) as far,
            gate(tmp_path, {"far": {"url": far.url}}) as it,
        ):
            await it.ready()
            async with it.modern() as ann, it.modern() as bob, asyncio.TaskGroup() as tasks:
                tasks.create_task(one(ann, "ann"))
                tasks.create_task(one(bob, "bob"))

    run(converse())


def test_changes_are_heard_and_a_broken_ear_is_replaced(tmp_path: Path) -> None:
    """After a gap whatever may have changed is read anew."""
    far = Far()

    async def names(client: Modern) -> list[str]:
        return [tool["name"] for tool in (await client.request("tools/list")).result["tools"]]

    async def converse() -> None:
        async with served(far), gate(tmp_path, {"far": {"url": far.url}}) as it:
            await it.ready()
            async with it.modern() as client:
                await eventually_async(lambda: far.streams)
                far.tools["second"] = far.tools["echo"]
                await far.tell("notifications/tools/list_changed")
                await eventually_async(_lists(client, names, 2))
                far.tools["third"] = far.tools["echo"]
                far.streams[-1].cut()
                await eventually_async(_lists(client, names, 3))
                assert len(far.posts("subscriptions/listen")) == 2
            assert it.server("far").restarts.total() == 0

    run(converse())


def test_another_wish_opens_a_new_ear_before_the_old_one_is_closed(tmp_path: Path) -> None:
    """B7: what changes in between is not missed."""
    far = Far(capabilities={"tools": {}, "resources": {"subscribe": True}})
    open_before: list[int] = []

    async def notes(request: web.Request, message: Message) -> web.Response | None:
        if message["method"] == "subscriptions/listen":
            open_before.append(len(far.streams))
        if message["method"] != "resources/list":
            return None
        resource = {"uri": "far://one", "name": "one"}
        result = far.finished(message, {"resources": [resource]})
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})

    far.before = notes

    async def converse() -> None:
        async with served(far), gate(tmp_path, {"far": {"url": far.url}}) as it:
            await it.ready()
            await eventually_async(lambda: far.streams)
            uris = ["far://one"]
            async with it.modern() as client, client.listening(resourceSubscriptions=uris) as ear:
                await eventually_async(lambda: len(far.posts("subscriptions/listen")) == 2)
                await eventually_async(lambda: len(far.streams) == 1)
                await far.tell("notifications/resources/updated", uri="far://one")
                assert (await ear.message())["params"]["uri"] == "far://one"
            assert open_before[:2] == [0, 1]

    run(converse())


def _lists(client: Modern, names, count: int):  # type: ignore[no-untyped-def]
    async def there() -> bool:
        return len(await names(client)) == count

    return there


def test_a_call_whose_stream_breaks_is_not_made_twice_unless_that_is_harmless(
    tmp_path: Path,
) -> None:
    """B63, B10."""
    counts = {"write": 0, "read": 0}

    async def write(asked: Asked) -> web.StreamResponse:
        counts["write"] += 1
        told = await asked.stream()
        told.cut()
        return told.http

    async def read(asked: Asked) -> web.StreamResponse:
        counts["read"] += 1
        if counts["read"] == 1:
            told = await asked.stream()
            told.cut()
            return told.http
        return asked.text("read")

    far = Far(
        tools={"write": write, "read": read},
        extras={"read": {"annotations": {"readOnlyHint": True}}},
    )

    async def converse() -> None:
        async with served(far), gate(tmp_path, {"far": {"url": far.url}}) as it:
            await it.ready()
            async with it.modern() as client:
                lost = await client.call("far__write")
                assert failure(lost) == {
                    "kind": "unavailable",
                    "server": "far",
                    "retryable": False,
                }
                assert "not known" in lost.text
                assert (await client.call("far__read")).text == "read"
            assert counts == {"write": 1, "read": 2}

    run(converse())
