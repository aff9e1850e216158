"""Calls given up between a question and its answer: their servers are told, and free."""

import asyncio
from pathlib import Path

from tests.kit.http import Legacy, Modern
from tests.kit.waiting import eventually_async, run
from tests.operations.changing import changing
from tests.questions.talking import (
    Heard,
    Message,
    answer_to,
    asker,
    client_of,
    parked,
    retry_of,
)

ASK: Message = {"name": "it__q_ask", "arguments": {"words": "w"}}


def test_a_client_that_leaves_while_its_retry_stands_in_line_releases_the_server(
    tmp_path: Path,
) -> None:
    """2026-07-28, basic/patterns/cancellation: closing the stream cancels, wherever the call is."""
    tool = "it__q_works_on"
    told: Message = {"name": tool, "arguments": {"seconds": 2}}
    heard = Heard(tmp_path / "heard")

    async def conversation() -> None:
        rules = [{"match": tool, "concurrency": 1}]
        servers = {"it": asker("legacy", "--record", heard.file)}
        async with (
            changing(tmp_path, servers, tools=rules) as it,
            client_of("modern", it.gate.url) as first,
            client_of("modern", it.gate.url) as second,
        ):
            assert isinstance(first, Modern)
            assert isinstance(second, Modern)
            mine = {**told, **retry_of(await parked(first, tool, told["arguments"]))}
            hers = {**told, **retry_of(await parked(second, tool, told["arguments"]))}
            async with asyncio.TaskGroup() as tasks:
                working = tasks.create_task(first.request("tools/call", mine))
                await heard.wait(lambda line: line.get("result", {}).get("action") == "accept")
                leaving = tasks.create_task(second.request("tools/call", hers))
                await eventually_async(it.gate.gateway.operator.throttle.waiting)
                leaving.cancel()

                await heard.wait(lambda line: line.get("method") == "notifications/cancelled")
                assert len(it.gate.server().apart.parked) == 1, "what is worked on"
                assert not working.done()
            assert working.result().text == "worked"

    run(conversation())


def test_a_server_that_is_configured_no_more_does_not_wait_for_clients_that_cannot_come_back(
    tmp_path: Path,
) -> None:
    heard = Heard(tmp_path / "heard")
    servers = {"it": asker("legacy", "--record", heard.file), "two": asker("modern")}

    async def conversation() -> None:
        async with (
            changing(tmp_path, servers) as it,
            client_of("modern", it.gate.url) as client,
        ):
            assert isinstance(client, Modern)
            asked = await parked(client, ASK["name"], ASK["arguments"])
            await it.change(servers={"two": servers["two"]})

            await heard.wait(lambda line: line.get("method") == "notifications/cancelled")
            retry = await client.request("tools/call", {**ASK, **retry_of(asked)})
            assert retry.error["code"] == -32602
            leaving = it.gate.gateway.fleet.succession.leaving
            await eventually_async(lambda: not leaving, 15)

    run(conversation())


def test_a_question_whose_tool_is_none_any_more_releases_the_server_when_it_is_answered(
    tmp_path: Path,
) -> None:
    """A retry is judged anew: by the rules there are by then."""

    async def conversation() -> None:
        async with (
            changing(tmp_path, {"it": asker("legacy")}) as it,
            client_of("legacy", it.gate.url) as client,
        ):
            assert isinstance(client, Legacy)
            async with client.opened(client.message("tools/call", ASK)) as stream:
                asked = await stream.message()
                await it.change(default_decision="deny")
                await client.respond(asked["id"], answer_to(asked))

                assert (await stream.message())["error"]["code"] == -32602
            assert not len(it.gate.server().apart.parked)

    run(conversation())
