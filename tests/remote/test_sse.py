"""A server elsewhere that has only the transport of 2024-11-05, and how it is found out."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.kit.waiting import eventually_async, run
from tests.remote.far import EVENTS, Message, Seen, Told, listening, text_of
from tests.servers.gate import failure, gate, remembered


class Pair:
    """`GET /sse` names where to post; every answer comes on that stream."""

    def __init__(self, endpoint: str = "/messages") -> None:
        self.endpoint = endpoint
        self.seen: list[Seen] = []
        self.streams: dict[str, Told] = {}
        """By session."""
        self.forgotten: set[str] = set()
        """Sessions that messages are refused for, though their streams are open."""
        self._sessions = 0
        self.url = ""

    def app(self) -> web.Application:
        app = web.Application(client_max_size=2**26)
        app.router.add_get("/sse", self.get)
        app.router.add_post("/messages", self.post)
        return app

    async def get(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(Seen("GET", request.headers))
        http = web.StreamResponse(headers={"Content-Type": EVENTS})
        await http.prepare(request)
        self._sessions += 1
        session = str(self._sessions)
        self.streams[session] = Told(http)
        await http.write(f"event: endpoint\ndata: {self.endpoint}?session={session}\n\n".encode())
        await asyncio.Event().wait()
        return http

    async def post(self, request: web.Request) -> web.Response:
        message = await request.json()
        self.seen.append(Seen("POST", request.headers, message, request.path_qs))
        if request.query["session"] in self.forgotten:
            return web.Response(status=404, text="Could not find session")
        if (result := self.result(message)) is not None:
            await self.stream(request).answer(message["id"], result)
        return web.Response(status=202, text="Accepted")

    def stream(self, request: web.Request) -> Told:
        return self.streams[request.query["session"]]

    def result(self, message: Message) -> Message | None:
        match message.get("method"):
            case "initialize":
                return {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}}
            case "tools/list":
                return {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                arguments = message["params"]["arguments"]
                return None if arguments.get("never") else text_of(arguments["text"])
        return {} if "id" in message else None


@asynccontextmanager
async def paired(pair: Pair) -> AsyncIterator[Pair]:
    async with listening(pair.app()) as port:
        pair.url = f"http://127.0.0.1:{port}/sse"
        yield pair


def test_the_older_transport_is_found_out_used_and_remembered(tmp_path: Path) -> None:
    """2025-11-25, Backwards Compatibility: POST `initialize` first, GET after 400, 404, 405."""

    async def converse() -> None:
        async with paired(Pair()) as pair:
            server = {"url": pair.url, "headers": {"Authorization": "Bearer mine"}}
            async with gate(tmp_path, {"far": server}) as it:
                await it.ready()
                async with it.modern() as client:
                    assert (await client.call("far__echo", {"text": "hi"})).text == "hi"
                assert (await remembered(it, "far"))["transport"] == "sse"
                assert len(it.said("transport.changed")) == 1
                posts = [seen for seen in pair.seen if seen.verb == "POST"]
                methods = [seen.method for seen in posts]
                assert methods[:2] == ["initialize", "notifications/initialized"]
                assert {seen.headers["Authorization"] for seen in pair.seen} == {"Bearer mine"}
                assert {seen.path for seen in posts} == {"/messages?session=1"}
            pair.seen.clear()
            async with gate(tmp_path, {"far": server}) as it:
                await it.ready()
                assert it.said("transport.changed") == []
                assert pair.seen[0].verb == "GET"

    run(converse())


def test_the_end_of_the_stream_ends_every_call_on_it_and_the_next_one_works(
    tmp_path: Path,
) -> None:
    async def converse() -> None:
        async with (
            paired(Pair()) as pair,
            gate(tmp_path, {"far": {"url": pair.url, "transport": "sse"}}) as it,
        ):
            await it.ready()
            async with it.modern() as client, asyncio.TaskGroup() as tasks:
                lost = tasks.create_task(client.call("far__echo", {"never": True}))
                await eventually_async(lambda: pair.seen[-1].method == "tools/call")
                pair.streams["1"].cut()
                answer = await lost
                assert failure(answer)["retryable"] is False
                assert "closed its stream" in answer.text
                assert (await client.call("far__echo", {"text": "again"})).text == "again"

    run(converse())


def test_a_session_that_is_forgotten_while_its_stream_is_open_costs_no_call(
    tmp_path: Path,
) -> None:
    async def converse() -> None:
        async with paired(Pair()) as pair, gate(tmp_path, {"far": {"url": pair.url}}) as it:
            await it.ready()
            async with it.modern() as client:
                assert (await client.call("far__echo", {"text": "1"})).text == "1"
                pair.forgotten.add("1")
                assert (await client.call("far__echo", {"text": "2"})).text == "2"

    run(converse())


def test_an_address_at_another_origin_is_given_nothing(tmp_path: Path) -> None:
    """Whoever names the address would get our credentials sent there."""

    async def converse() -> None:
        async with (
            paired(Pair()) as other,
            paired(Pair(other.url)) as pair,
            gate(tmp_path, {"far": {"url": pair.url, "transport": "sse"}}) as it,
        ):
            await eventually_async(lambda: it.server("far").main.last_error)
            assert "an address elsewhere" in it.server("far").main.last_error
            assert other.seen == []

    run(converse())


def test_what_speaks_neither_transport_is_said_to_speak_neither(tmp_path: Path) -> None:
    async def converse() -> None:
        async with (
            listening(web.Application()) as port,
            gate(
                tmp_path, {"far": {"url": f"http://127.0.0.1:{port}/mcp", "protocol": "legacy"}}
            ) as it,
        ):
            await eventually_async(lambda: it.server("far").main.last_error)
            said = it.server("far").main.last_error
            assert "does not speak Streamable HTTP (HTTP 404)" in said
            assert "does not speak HTTP+SSE (HTTP 404)" in said

    run(converse())


def test_a_long_answer_and_one_that_is_too_long(tmp_path: Path) -> None:
    async def converse() -> None:
        limits = {"line": "64KiB"}
        async with (
            paired(Pair()) as pair,
            gate(tmp_path, {"far": {"url": pair.url, "transport": "sse"}}, limits=limits) as it,
        ):
            await it.ready()
            async with it.modern() as client:
                text = "x" * 60_000
                assert (await client.call("far__echo", {"text": text})).text == text
                refused = await client.call("far__echo", {"text": text + text})
                assert failure(refused)["kind"] == "server_error"
                assert (await client.call("far__echo", {"text": "on"})).text == "on"

    run(converse())


def test_a_question_in_the_middle_of_a_call_is_put_to_its_client(tmp_path: Path) -> None:
    class Asking(Pair):
        waiting: Any = None

        def result(self, message: Message) -> Message | None:
            if message.get("method") == "tools/call":
                self.waiting = message["id"]
                return None
            return super().result(message) if "method" in message else None

        async def post(self, request: web.Request) -> web.Response:
            answer = await super().post(request)
            message = json.loads(await request.text())
            if message.get("method") == "tools/call":
                params = {"message": "Who?", "requestedSchema": {"type": "object"}}
                question = {"jsonrpc": "2.0", "id": 0, "method": "elicitation/create"}
                await self.stream(request).event({**question, "params": params})
            elif "result" in message:
                said = message["result"]["content"]["name"]
                await self.stream(request).answer(self.waiting, text_of(said))
            return answer

    async def converse() -> None:
        async with (
            paired(Asking()) as pair,
            gate(tmp_path, {"far": {"url": pair.url, "transport": "sse"}}) as it,
        ):
            await it.ready()
            async with it.modern() as client:
                client.envelope.capabilities = {"elicitation": {}}
                asked = (await client.call("far__echo", {"text": ""})).result
                (key,) = asked["inputRequests"]
                told = {key: {"action": "accept", "content": {"name": "Ann"}}}
                done = await client.call(
                    "far__echo", {"text": ""}, inputResponses=told,
                    requestState=asked["requestState"],
                )  # fmt: skip
                assert done.text == "Ann"

    run(converse())
