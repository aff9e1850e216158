"""A token is taken out of the configuration: what was opened with it ends, calls excepted."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.fakes import fake
from tests.kit.http import Legacy, Message, Modern, Stream
from tests.kit.waiting import eventually_async, run
from tests.operations.changing import Changing, changing
from tests.operations.test_reload_rules import bearer, token
from tests.questions.talking import ALL, Heard, asker, client_of, parked
from tests.resume.listener import listening

SERVERS = {"a": fake("--only", "echo,sleep,progress")}
BOTH = {"tokens": [token("ann"), token("bob")]}
BOB = {"tokens": [token("bob")]}
OTHER = {"tokens": [{**token("new"), "name": "ann"}, token("bob")]}
"""Ann has another token: whoever has found the old one is out."""


def held(
    conversation: Callable[[Changing], Awaitable[None]],
    folder: Path,
    servers: Message = SERVERS,
    auth: Any = BOTH,
) -> None:
    """Hold a conversation with a gateway that knows Ann and Bob, at first."""

    async def conversed() -> None:
        async with changing(folder, servers, auth=auth, legacy_sse=True) as it:
            await conversation(it)

    run(conversed())


@asynccontextmanager
async def legacy(it: Changing, name: str, can: Message | None = None) -> AsyncIterator[Legacy]:
    async with Legacy.to(it.gate.url, bearer(name)) as client:
        await client.initialize(capabilities=can)
        yield client


async def rest_of(stream: Stream) -> list[Message]:
    """What still comes, once the stream has ended."""
    async with asyncio.timeout(10):
        return [json.loads(event.data) async for event in stream.events if event.data]


async def is_told(stream: Stream, it: Changing) -> None:
    """That it is still open: news come over it."""
    await it.change(default_decision="deny")
    async with asyncio.timeout(10):
        assert "list_changed" in (await stream.message())["method"]


@pytest.mark.parametrize("auth", [BOB, OTHER], ids=["removed", "replaced"])
def test_a_listen_ends_with_its_result_and_that_of_others_goes_on(
    tmp_path: Path, auth: Message
) -> None:
    async def conversation(it: Changing) -> None:
        async with (
            Modern.to(it.gate.url, bearer("ann")) as ann,
            Modern.to(it.gate.url, bearer("bob")) as bob,
            ann.listening(toolsListChanged=True) as hers,
            bob.listening(toolsListChanged=True) as his,
        ):
            await it.change(auth=auth)

            (closing,) = await rest_of(hers)
            assert closing["result"]["resultType"] == "complete"
            assert (await ann.request("tools/list")).status == 401
            await is_told(his, it)

    held(conversation, tmp_path)


@pytest.mark.parametrize("auth", [BOB, OTHER], ids=["removed", "replaced"])
def test_a_session_ends_with_its_stream_and_that_of_others_goes_on(
    tmp_path: Path, auth: Message
) -> None:
    async def conversation(it: Changing) -> None:
        async with (
            legacy(it, "ann") as ann,
            legacy(it, "bob") as bob,
            ann.listening() as hers,
            bob.listening() as his,
        ):
            await it.change(auth=auth)

            assert await rest_of(hers) == []
            assert (await ann.request("ping")).status == 401
            assert len(it.gate.gateway.sessions) == 1
            await is_told(his, it)
            await it.change(auth=BOTH)
            assert (await ann.request("ping")).status == 404
            assert (await bob.request("ping")).result == {}

    held(conversation, tmp_path)


def test_whoever_came_while_nobody_was_asked_for_a_token_is_out_as_well(tmp_path: Path) -> None:
    async def conversation(it: Changing) -> None:
        async with (
            Modern.to(it.gate.url) as modern,
            legacy(it, "") as old,
            modern.listening(toolsListChanged=True) as listen,
            old.listening() as stream,
            listening(it.gate.url) as oldest,
        ):
            await it.change(auth=BOTH)

            (closing,) = await rest_of(listen)
            assert "result" in closing
            assert await rest_of(stream) == []
            assert await rest_of(Stream(oldest.response, oldest.incoming)) == []

    held(conversation, tmp_path, auth="none")


def test_calls_under_way_come_to_their_end(tmp_path: Path) -> None:
    async def conversation(it: Changing) -> None:
        async with (
            Modern.to(it.gate.url, bearer("ann")) as modern,
            legacy(it, "ann") as old,
            legacy(it, "ann") as streaming,
            listening(it.gate.url, bearer("ann")) as oldest,
        ):
            await oldest.initialize()
            await oldest.call(1, "a__sleep", ms=1000)
            async with asyncio.TaskGroup() as tasks:
                new = tasks.create_task(modern.call("a__sleep", {"ms": 1000}))
                plain = tasks.create_task(old.call("a__sleep", {"ms": 1000}))
                steps = {"steps": 20, "ms": 50}
                told = streaming.call("a__progress", steps, _meta={"progressToken": "p"})
                streamed = tasks.create_task(told)
                await eventually_async(lambda: it.gate.server("a").in_flight == 4)
                await it.change(auth=BOB)
                assert not any(task.done() for task in (new, plain, streamed))

            assert new.result().text == plain.result().text == "slept 1000 ms"
            assert streamed.result().text == "20 steps"
            assert len(streamed.result().notices) == 20
            (answer,) = await rest_of(Stream(oldest.response, oldest.incoming))
            assert answer["result"]["content"][0]["text"] == "slept 1000 ms"
            await eventually_async(lambda: len(it.gate.gateway.sessions) == 0, 15)

    held(conversation, tmp_path)


def test_who_may_not_answer_any_more_is_waited_for_no_longer(tmp_path: Path) -> None:
    heard = Heard(tmp_path / "heard")

    async def conversation(it: Changing) -> None:
        async with legacy(it, "ann", ALL) as ann:
            asking = ann.message("tools/call", {"name": "asks__q_ask", "arguments": {}})
            async with ann.opened(asking) as stream:
                asked = await stream.message()
                assert asked["method"] == "elicitation/create"
                await it.change(auth=BOB)

                told = await heard.wait(lambda line: "error" in line)
                *_, last = await rest_of(stream)

            assert told["error"]["code"] == -32601
            assert last["id"] == asking["id"]

    servers = {**SERVERS, "asks": asker("legacy", "--record", heard.file)}
    held(conversation, tmp_path, servers)


@pytest.mark.parametrize(("auth", "left"), [(BOB, 0), (OTHER, 1)], ids=["removed", "replaced"])
def test_a_call_whose_client_cannot_come_back_waits_no_longer(
    tmp_path: Path, auth: Message, left: int
) -> None:
    """Protocol 3.8, 6. With another token she can."""
    heard = Heard(tmp_path / "heard")

    async def conversation(it: Changing) -> None:
        async with client_of("modern", it.gate.url, headers=bearer("ann")) as ann:
            assert isinstance(ann, Modern)
            await parked(ann, "asks__q_ask")
            await it.change(auth=auth)

            assert len(it.gate.server("asks").apart.parked) == left
            if not left:
                await heard.wait(lambda line: line.get("method") == "notifications/cancelled")

    servers = {**SERVERS, "asks": asker("legacy", "--record", heard.file)}
    held(conversation, tmp_path, servers)


@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_a_token_is_asked_for_again_if_it_went_while_the_body_came_in(
    tmp_path: Path, framing: str
) -> None:
    async def conversation(it: Changing) -> None:
        async with Modern.to(it.gate.url, bearer("ann")) as ann:
            wanted = {"notifications": {"toolsListChanged": True}}
            message = ann.message("subscriptions/listen", wanted)
            data = json.dumps(message).encode()
            is_half_out, is_over = asyncio.Event(), asyncio.Event()

            async def body() -> AsyncIterator[bytes]:
                yield data[:10]
                is_half_out.set()
                await is_over.wait()
                yield data[10:]

            headers = {**ann.headers, **ann.routing(message)}
            if framing == "length":
                headers["Content-Length"] = str(len(data))

            async def posted() -> int:
                async with ann.http.post(ann.url, data=body(), headers=headers) as answer:
                    return answer.status

            async with asyncio.TaskGroup() as tasks:
                status = tasks.create_task(posted())
                await is_half_out.wait()
                await ann.request("tools/list")  # by now the head is there as well
                await it.change(auth=BOB)
                is_over.set()
            assert status.result() == 401

    held(conversation, tmp_path)
