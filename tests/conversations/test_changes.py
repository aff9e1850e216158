"""Changes of lists, told to clients of both eras.

Source: 2025-11-25 server/tools ("List Changed Notification"); 2026-07-28
basic/patterns/subscriptions.
"""

import asyncio
import json
from typing import Any

import pytest

from tests.conversations.talking import (
    Gate,
    Message,
    P,
    arrived,
    client_of,
    each_server,
    heard_by,
)
from tests.kit.http import Answer, Legacy, Modern
from tests.kit.waiting import eventually_async, run

ALL = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
}
CHANGED = "notifications/tools/list_changed"
SUBSCRIPTION = f"{P}subscriptionId"


async def fence(client: Modern, *heard: list[Message]) -> None:
    """Wait for a change of prompts: what was said before it has arrived by then."""
    before = [len(each) for each in heard]
    await client.call("every__test_trigger_prompt_change")
    for each, length in zip(heard, before, strict=True):

        def is_there(each: list[Message] = each, length: int = length) -> bool:
            told = [one["method"] for one in each[length:]]
            return "notifications/prompts/list_changed" in told

        await eventually_async(is_there, what=f"the fence among {each}")


@each_server
def test_a_new_tool_is_told_listed_and_callable(gate: Gate, server: str) -> None:
    """cases B53."""

    async def converse() -> tuple[list[str], list[str], str]:
        async with Modern.to(gate.url) as modern, client_of("legacy", gate.url) as legacy:
            assert isinstance(legacy, Legacy)
            async with (
                modern.listening(**ALL) as new,
                legacy.listening() as old,
                heard_by(new) as by_new,
                heard_by(old) as by_old,
            ):
                await modern.call(f"{server}__add_tool", {"name": "fresh"})
                await eventually_async(lambda: by_new and by_old)
                listed = (await legacy.request("tools/list")).result["tools"]
                called = await legacy.call(f"{server}__fresh", {"text": "it works"})
                await modern.call(f"{server}__remove_tool", {"name": "fresh"})
                await eventually_async(lambda: len(by_new) > 1 and len(by_old) > 1)
                await fence(modern, by_new, by_old)
            names = [tool["name"] for tool in listed]
            told = [each["method"] for each in (*by_new[:-1], *by_old[:-1])]
            return told, names, called.text if "result" in called.final else str(called.error)

    told, names, text = run(converse())

    assert told == [CHANGED] * 4, "once for each change, to each client"
    assert f"{server}__fresh" in names
    if server != "dual":  # of a server with two processes, only the first has changed
        assert text == "it works"


def test_a_change_that_leaves_no_trace_is_told_all_the_same(gate: Gate) -> None:
    """The server said so; a client may have seen what came and went."""

    async def converse() -> list[str]:
        async with Modern.to(gate.url) as client:
            async with client.listening(**ALL) as stream, heard_by(stream) as heard:
                await client.call("every__test_trigger_tool_change")
                await fence(client, heard)
            return [each["method"] for each in heard]

    assert CHANGED in run(converse())


def test_a_storm_of_changes_is_a_handful_of_notifications(gate: Gate) -> None:
    """cases B54: 200 announcements with the list as it was."""
    since = gate.mark()
    storm = "\n".join(json.dumps({"jsonrpc": "2.0", "method": CHANGED}) for _ in range(200))

    async def converse() -> list[str]:
        async with Modern.to(gate.url) as client:
            async with client.listening(**ALL) as stream, heard_by(stream) as heard:
                assert (await client.call("old__raw", {"text": storm})).text == "written"
                await arrived(heard)
                await fence(client, heard)
            return [each["method"] for each in heard]

    told = run(converse())

    assert 1 <= told.count(CHANGED) <= 3
    assert 1 <= len(since.heard("old", "tools/list")) <= 3


def test_only_what_was_asked_for_is_told(gate: Gate) -> None:
    """Kinds not requested MUST NOT be sent."""

    async def converse() -> tuple[list[str], list[str]]:
        async with Modern.to(gate.url) as client:
            async with (
                client.listening(toolsListChanged=True) as tools,
                client.listening(promptsListChanged=True, toolsListChanged=False) as prompts,
                client.listening(**ALL) as every,
                heard_by(tools) as by_tools,
                heard_by(prompts) as by_prompts,
                heard_by(every) as by_all,
            ):
                for _ in range(2):
                    await client.call("every__test_trigger_tool_change")
                    await fence(client, by_prompts, by_all)
                    await arrived(by_tools)
            kinds = [sorted({each["method"] for each in heard}) for heard in (by_tools, by_prompts)]
            return kinds[0], kinds[1]

    assert run(converse()) == ([CHANGED], ["notifications/prompts/list_changed"])


@pytest.mark.parametrize("id_", ["text", "7", 7, 0, ""])
def test_all_that_a_listen_carries_bears_its_id(gate: Gate, id_: Any) -> None:
    """In the same JSON type, on the acknowledgement, and on every notification."""

    async def converse() -> list[Message]:
        async with Modern.to(gate.url) as client:
            wanted = {"notifications": {"toolsListChanged": True}}
            async with client.streaming("subscriptions/listen", wanted, id_=id_) as stream:
                first = await stream.message()
                await client.call("every__test_trigger_tool_change")
                return [first, await stream.message()]

    messages = run(converse())

    ids = [message["params"]["_meta"][SUBSCRIPTION] for message in messages]
    assert [(type(each), each) for each in ids] == [(type(id_), id_)] * 2


@pytest.mark.parametrize(
    ("wanted", "honoured"),
    [
        ({}, {}),
        (ALL, ALL),
        ({"toolsListChanged": False, "promptsListChanged": True}, {"promptsListChanged": True}),
        (
            {"resourceSubscriptions": ["fake://plain", "no://where"]},
            {"resourceSubscriptions": ["fake://plain", "no://where"]},
        ),
        ({"resourceSubscriptions": [], "unheardOf": True}, {"resourceSubscriptions": []}),
    ],
)
def test_a_listen_is_acknowledged_with_what_it_gets(
    gate: Gate, wanted: Message, honoured: Message
) -> None:
    """First of all, and always as a stream; unsupported kinds are left out."""

    async def converse() -> tuple[Message, str]:
        async with Modern.to(gate.url) as client:
            told = {"notifications": wanted}
            async with client.streaming("subscriptions/listen", told) as stream:
                return await stream.message(), stream.response.headers["Content-Type"]

    first, kind = run(converse())

    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"]["notifications"] == honoured
    assert kind.startswith("text/event-stream")


@pytest.mark.parametrize(
    "wanted",
    [[], 7, {"resourceSubscriptions": "fake://plain"}, {"resourceSubscriptions": [7]}],
)
def test_a_filter_that_is_none_is_refused_before_any_stream(gate: Gate, wanted: Any) -> None:
    async def converse() -> Answer:
        async with Modern.to(gate.url) as client:
            return await client.request("subscriptions/listen", {"notifications": wanted})

    assert run(converse()).error["code"] == -32602


def test_who_takes_no_stream_cannot_listen(gate: Gate) -> None:
    """There is no other answer to it, and an open connection without a word helps nobody."""

    async def converse() -> Answer:
        async with Modern.to(gate.url) as client:
            message = client.message("subscriptions/listen", {"notifications": ALL})
            told = {**client.routing(message), "Accept": "application/json"}
            return await client.post(message, told)

    answer = run(converse(), within_s=5)

    assert (answer.status, answer.error["code"]) == (406, -32600)


def test_streams_held_open_hold_up_nobody(gate: Gate) -> None:
    """Two listens and a session's stream, and a call on the same connection pool beside them."""

    async def converse() -> list[str]:
        async with Modern.to(gate.url) as client, client_of("legacy", gate.url) as legacy:
            assert isinstance(legacy, Legacy)
            async with (
                client.listening(**ALL),
                client.listening(**ALL),
                legacy.listening(),
            ):
                calls = [client.call("new__echo", {"text": str(n)}) for n in range(20)]
                return [answer.text for answer in await asyncio.gather(*calls)]

    assert run(converse()) == [str(n) for n in range(20)]


def test_a_stream_is_not_to_be_buffered_or_kept(gate: Gate) -> None:
    """cases B75."""

    async def converse() -> list[str]:
        told = {"Accept-Encoding": "gzip"}
        async with Modern.to(gate.url, told) as client, client.listening(**ALL) as stream:
            headers = stream.response.headers
            names = ("X-Accel-Buffering", "Cache-Control", "Content-Encoding")
            return [headers.get(name, "") for name in names]

    assert run(converse()) == ["no", "no-cache, no-transform", ""]
