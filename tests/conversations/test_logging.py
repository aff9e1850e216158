"""Log lines of servers: to the caller alone, from the level it asked for.

Source: server/utilities/logging of 2025-11-25 (a level for each session) and 2026-07-28 (a level
for each request, none by default). On a pipe no line names its request, so it goes to the call
that alone can have caused it, or to nobody.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.conversations.talking import (
    Client,
    Gate,
    P,
    called,
    client_of,
    each_era,
    each_pair,
    each_server,
    opened_gate,
    recorded,
)
from tests.kit.http import Answer, Modern
from tests.kit.waiting import run

MESSAGE = "notifications/message"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def lines(answer: Answer) -> list[Any]:
    return [each["params"]["data"] for each in answer.notices if each["method"] == MESSAGE]


@each_server
def test_a_legacy_client_hears_its_calls_lines_in_order_before_the_result(
    gate: Gate, server: str
) -> None:
    """Without setLevel it is for the server to decide what to send."""

    async def converse() -> Answer:
        async with client_of("legacy", gate.url) as client:
            return await client.call(f"{server}__log", {"count": 5})

    answer = run(converse())

    assert lines(answer) == [f"line {n}" for n in range(5)]
    assert "result" in answer.messages[-1]
    assert answer.notices[0]["params"] == {
        "level": "info",
        "logger": f"{server}.fake",
        "data": "line 0",
    }


@each_server
def test_a_modern_client_hears_nothing_unless_its_request_asks(gate: Gate, server: str) -> None:
    async def converse() -> Answer:
        async with Modern.to(gate.url) as client:
            return await client.call(f"{server}__log", {"level": "emergency"})

    answer = run(converse())

    assert (answer.notices, answer.text) == ([], "logged")


@each_server
@pytest.mark.parametrize("wanted", LEVELS)
def test_a_modern_client_hears_from_the_level_of_its_request_on(
    gate: Gate, server: str, wanted: str
) -> None:
    async def converse() -> list[bool]:
        async with Modern.to(gate.url) as client:
            client.envelope.log_level = wanted
            said = [await client.call(f"{server}__log", {"level": level}) for level in LEVELS]
            return [bool(lines(answer)) for answer in said]

    place = LEVELS.index(wanted)

    assert run(converse()) == [index >= place for index in range(len(LEVELS))]


@each_server
def test_a_legacy_client_hears_from_the_level_it_set_on(gate: Gate, server: str) -> None:
    """And nobody else's session is concerned by it."""

    async def heard(client: Client) -> list[str]:
        said = [await client.call(f"{server}__log", {"level": level}) for level in LEVELS]
        return [level for level, answer in zip(LEVELS, said, strict=True) if lines(answer)]

    async def converse() -> tuple[list[str], list[str]]:
        async with (
            client_of("legacy", gate.url) as client,
            client_of("legacy", gate.url) as other,
        ):
            await client.request("logging/setLevel", {"level": "error"})
            return await heard(client), await heard(other)

    strict, usual = run(converse())

    assert strict == ["error", "critical", "alert", "emergency"]
    assert {"info", "error"} <= set(usual)


def test_a_modern_server_is_told_the_level_of_the_session(gate: Gate) -> None:
    """Before the session sets one it is `info`: else such servers are silent."""

    async def converse() -> list[str]:
        async with client_of("legacy", gate.url) as client:
            since = gate.mark()
            await client.call("new__echo")
            await client.request("logging/setLevel", {"level": "debug"})
            await client.call("new__echo")
            calls = since.heard("new", "tools/call")
            return [each["params"]["_meta"][f"{P}logLevel"] for each in calls]

    assert run(converse()) == ["info", "debug"]


@each_pair
def test_a_line_that_could_be_anybodys_is_nobodys(gate: Gate, era: str, server: str) -> None:
    """Two calls in flight: the wrong client might read what is not meant for it."""
    since = gate.mark()

    async def converse() -> tuple[Answer, Answer]:
        async with client_of(era, gate.url) as client, client_of(era, gate.url) as other:
            for each in (client, other):
                if isinstance(each, Modern):
                    each.envelope.log_level = "debug"
            async with asyncio.TaskGroup() as tasks:
                told = {"ms": 300}
                message = called(other, f"{server}__sleep", arguments=told)
                headers = other.routing(message) if isinstance(other, Modern) else {}
                slept = tasks.create_task(other.post(message, headers))
                await since.told(server, "tools/call")
                logged = await client.call(f"{server}__log", {"count": 3})
            return logged, slept.result()

    logged, slept = run(converse())

    assert lines(logged) == lines(slept) == []
    assert (logged.text, slept.text) == ("logged", "slept 300 ms")


def test_a_modern_call_that_wants_no_lines_does_not_make_those_of_another_doubtful(
    gate: Gate,
) -> None:
    """2026-07-28: a server sends lines only for requests that asked, so the one that did is it."""
    since = gate.mark()

    async def converse() -> Answer:
        async with Modern.to(gate.url) as client, Modern.to(gate.url) as other:
            client.envelope.log_level = "debug"
            async with asyncio.TaskGroup() as tasks:
                message = called(other, "new__sleep", arguments={"ms": 300})
                tasks.create_task(other.post(message, other.routing(message)))
                await since.told("new", "tools/call")
                return await client.call("new__log")

    assert lines(run(converse())) == ["line 0"]


@each_era
def test_lines_outside_of_any_call_go_to_nobody(gate: Gate, era: str) -> None:
    async def converse() -> Answer:
        async with client_of(era, gate.url) as client:
            if isinstance(client, Modern):
                client.envelope.log_level = "debug"
            return await client.call("every__test_trigger_tool_change")

    assert lines(run(converse())) == []


def test_a_legacy_server_is_set_to_what_the_most_talkative_client_wants(tmp_path: Path) -> None:
    """The last word would win otherwise, and a client that never set a level would lose lines
    by another's wish for quiet. The same when the server comes back."""
    servers = {"old": recorded(tmp_path, "old", "--era", "legacy", protocol="legacy")}

    async def converse(gate: Gate) -> tuple[list[str], str]:
        since = gate.mark()
        async with (
            client_of("legacy", gate.url) as quiet,
            client_of("legacy", gate.url) as curious,
        ):
            await quiet.request("logging/setLevel", {"level": "error"})
            await curious.request("logging/setLevel", {"level": "debug"})
            await since.told("old", "logging/setLevel", number=2)
            await quiet.request("logging/setLevel", {"level": "critical"})
            await quiet.call("old__echo")
            told = since.heard("old", "logging/setLevel")
            levels = [each["params"]["level"] for each in told]
            since = gate.mark()
            await quiet.call("old__crash")
            again = (await since.told("old", "logging/setLevel"))[0]
            return levels, again["params"]["level"]

    with opened_gate(tmp_path, servers) as gate:
        gate.gateway.wait_tools("old__log")
        assert run(converse(gate)) == (["info", "debug"], "debug")
