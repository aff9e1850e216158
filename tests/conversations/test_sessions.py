"""Sessions of legacy clients, from `initialize` to DELETE.

Source: 2025-11-25, basic/transports, "Session Management" and "Listening for Messages".
"""

import asyncio
import re

import pytest

from tests.conversations.talking import Gate, called, client_of
from tests.kit.http import Answer, Legacy, Modern, Stream, read
from tests.kit.waiting import eventually_async, run


async def asked(client: Legacy, verb: str) -> Answer:
    headers = {**client.headers, "Accept": "text/event-stream"}
    async with client.http.request(verb, client.url, headers=headers) as response:
        return await read(response)


def test_a_session_id_cannot_be_guessed_and_fits_a_header(gate: Gate) -> None:
    async def converse() -> list[str]:
        async with Legacy.to(gate.url) as client:
            ids = []
            for _ in range(20):
                await client.initialize()
                ids.append(str(client.session))
                await client.delete()
                del client.headers["Mcp-Session-Id"]
            return ids

    ids = run(converse())

    assert len(set(ids)) == 20
    assert all(re.fullmatch("[0-9a-f]{32,}", each) for each in ids), "128 bits, in hex"


@pytest.mark.parametrize("session", ["made-up", "0" * 32])
def test_a_session_nobody_knows_is_not_found(gate: Gate, session: str) -> None:
    """cases B65: by 404, and nothing else, a client knows that it has to initialize again."""

    async def converse() -> list[Answer]:
        async with Legacy.to(gate.url) as client:
            client.headers["Mcp-Session-Id"] = session
            return [
                await client.request("tools/list"),
                await client.notify("notifications/initialized"),
                await client.respond(1, {}),
                await asked(client, "GET"),
                await asked(client, "DELETE"),
            ]

    answers = run(converse())

    assert [answer.status for answer in answers] == [404] * 5
    assert [answer.error["code"] for answer in answers] == [-32600] * 5


def test_a_session_that_was_ended_is_as_unknown_as_any(gate: Gate) -> None:
    async def converse() -> tuple[int, list[int]]:
        async with Legacy.to(gate.url) as client:
            await client.initialize()
            ended = await client.delete()
            after = [
                (await client.request("tools/list")).status,
                (await asked(client, "GET")).status,
                await client.delete(),
            ]
            return ended, after

    assert run(converse()) == (204, [404, 404, 404])


def test_notifications_and_responses_are_accepted_without_a_word(gate: Gate) -> None:
    async def converse() -> list[Answer]:
        async with client_of("legacy", gate.url) as client:
            assert isinstance(client, Legacy)
            told = ("notifications/roots/list_changed", "notifications/unheard_of")
            return [
                *[await client.notify(method) for method in told],
                await client.respond("never asked", {"roots": []}),
            ]

    answers = run(converse())

    assert [(answer.status, answer.body) for answer in answers] == [(202, b"")] * 3


@pytest.mark.parametrize("version", [None, "2025-03-26", "2025-06-18", "2025-11-25"])
def test_the_version_header_may_be_missing_or_any_of_the_known(
    gate: Gate, version: str | None
) -> None:
    """cases B33: without one, 2025-03-26 is meant."""

    async def converse() -> Answer:
        async with client_of("legacy", gate.url) as client:
            del client.headers["MCP-Protocol-Version"]
            if version is not None:
                client.headers["MCP-Protocol-Version"] = version
            return await client.request("ping")

    answer = run(converse())

    assert (answer.status, answer.result) == (200, {})


def test_a_version_nobody_knows_is_refused_within_a_session(gate: Gate) -> None:
    async def converse() -> Answer:
        async with client_of("legacy", gate.url) as client:
            told = {"MCP-Protocol-Version": "2099-01-01"}
            return await client.post(client.message("ping"), told)

    assert run(converse()).status == 400


def test_the_gateway_itself_answers_what_concerns_the_session(gate: Gate) -> None:
    since = gate.mark()

    async def converse() -> list[Answer]:
        async with client_of("legacy", gate.url) as client:
            return [
                await client.request("ping"),
                await client.request("logging/setLevel", {"level": "info"}),
                await client.request("logging/setLevel", {"level": "loud"}),
                await client.request("logging/setLevel"),
            ]

    ping, level, loud, missing = run(converse())

    assert ping.result == level.result == {}
    assert (loud.status, loud.error["code"], missing.error["code"]) == (200, -32602, -32602)
    assert not since.heard("new", "ping")


def test_a_second_stream_takes_over_from_the_first(gate: Gate) -> None:
    """cases B70: a client that reconnects meets no 409, and hears nothing twice."""

    async def converse() -> tuple[list[str], bool]:
        async with client_of("legacy", gate.url) as client:
            assert isinstance(client, Legacy)
            async with client.listening() as first, client.listening() as second:
                with pytest.raises(AssertionError, match="the stream ended"):
                    await first.message()
                heard = await changes(client, second, 2)
                return heard, first.response.content.at_eof()

    heard, is_over = run(converse())

    assert heard == ["notifications/tools/list_changed"] * 2
    assert is_over


def test_a_stream_that_broke_can_be_opened_again(gate: Gate) -> None:
    async def converse() -> list[str]:
        async with client_of("legacy", gate.url) as client:
            assert isinstance(client, Legacy)
            for _ in range(3):
                async with client.listening() as stream:
                    await changes(client, stream, 1)
            async with client.listening() as stream:
                return await changes(client, stream, 1)

    assert run(converse()) == ["notifications/tools/list_changed"]


def test_changes_that_came_while_no_stream_was_open_are_told_when_one_is(gate: Gate) -> None:
    """2025-11-25: the stream is optional. Each list once, however often it changed."""

    async def converse() -> list[str]:
        async with client_of("legacy", gate.url) as client, Modern.to(gate.url) as other:
            assert isinstance(client, Legacy)
            async with other.listening(toolsListChanged=True) as witness:
                for _ in range(2):
                    await client.call("every__test_trigger_tool_change")
                    await witness.message()
            async with client.listening() as stream:
                pending = await stream.message()
                return [pending["method"], *(await changes(client, stream, 1, "prompt"))]

    assert run(converse()) == [
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
    ]


async def changes(client: Legacy, stream: Stream, times: int, kind: str = "tool") -> list[str]:
    """Have the list change so often; what the stream tells of it, one notification a change."""
    heard = []
    for _ in range(times):
        await client.call(f"every__test_trigger_{kind}_change")
        heard.append(str((await stream.message())["method"]))
    return heard


def test_ending_a_session_ends_its_stream(gate: Gate) -> None:
    async def converse() -> None:
        async with Legacy.to(gate.url) as client:
            await client.initialize()
            async with client.listening() as stream:
                assert await client.delete() == 204
                with pytest.raises(AssertionError, match="the stream ended"):
                    await stream.message()

    run(converse())


def test_ending_a_session_ends_its_calls_and_tells_the_servers(gate: Gate) -> None:
    """protocol 3.6. Other sessions' calls with the same ids go on."""

    async def converse() -> tuple[list[Answer], Answer]:
        since = gate.mark()
        async with Legacy.to(gate.url) as leaving, client_of("legacy", gate.url) as staying:
            await leaving.initialize()
            async with asyncio.TaskGroup() as tasks:
                ended = [
                    tasks.create_task(leaving.post(called(leaving, f"{server}__hang", id_=id_)))
                    for id_, server in enumerate(("old", "new", "dual"))
                ]
                stays = called(staying, "old__sleep", 0, arguments={"ms": 600})
                stayed = tasks.create_task(staying.post(stays))
                for server, number in (("old", 2), ("new", 1), ("dual", 1)):
                    await since.told(server, "tools/call", number=number)
                assert await leaving.delete() == 204
                for server in ("old", "new", "dual"):
                    await since.told(server, "notifications/cancelled")
            return [each.result() for each in ended], stayed.result()

    since = gate.mark()
    ended, stayed = run(converse())

    assert [answer.error["data"]["kind"] for answer in ended] == ["cancelled"] * 3
    assert stayed.text == "slept 600 ms"
    outcomes = sorted(record["outcome"] for record in since.records(number=4))
    assert outcomes == ["cancelled"] * 3 + ["ok"]


def test_sessions_are_counted(gate: Gate) -> None:
    async def converse() -> None:
        before = gate.number("onegate_sessions")
        async with client_of("legacy", gate.url), client_of("legacy", gate.url):
            assert gate.number("onegate_sessions") == before + 2
        await eventually_async(lambda: gate.number("onegate_sessions") == before)

    run(converse())
