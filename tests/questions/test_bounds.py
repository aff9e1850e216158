"""The bounds of questions as a configuration sets them, and what is said where each is reached."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.kit.waiting import eventually_async, run
from tests.questions.bounded import answered, bounded, events, metrics, modern, refusal
from tests.questions.inside import ANN, BOB
from tests.questions.talking import asker, client_of, converse, parked, retry_of
from tests.questions.test_parked import WORDS, two_tokens
from tests.servers.gate import failure

each_client = pytest.mark.parametrize("client", ["legacy", "modern"])
each_server = pytest.mark.parametrize("server", ["legacy", "modern"])


def test_parked_calls_of_a_server_are_bounded_and_the_bound_can_be_raised(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with bounded(tmp_path, {"parked": 1}) as it, modern(it) as client:
            await parked(client, "it__q_ask", WORDS)
            told = await metrics(it)
            assert told['onegate_calls_parked{server="it"}'] == 1
            assert told['onegate_parked_bytes{server="it"}'] > 0
            assert (await it.gate.report())["parked"] == 1

            text = refusal(await client.call("it__q_ask", WORDS), "limits.parked")
            assert "it asked something in the middle of this call" in text
            assert "1 calls wait for answers of their clients already" in text
            await it.change(limits={"parked": 2})
            await parked(client, "it__q_ask", WORDS)
            assert await events(it) == {"parked": 2, "refused": 1}

    run(conversation())


def test_parked_calls_of_a_principal_are_bounded(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with (
            bounded(tmp_path, {"parked_per_principal": 1}, **two_tokens()) as it,
            modern(it, ANN) as ann,
            modern(it, BOB) as bob,
        ):
            asked = await parked(ann, "it__q_ask", WORDS)
            text = refusal(await ann.call("it__q_ask", WORDS), "limits.parked_per_principal")
            assert "1 are this client's" in text
            await parked(bob, "it__q_ask", WORDS)
            assert (await answered(ann, asked)).text

    run(conversation())


def test_what_a_parked_call_holds_is_bounded(tmp_path: Path) -> None:
    async def conversation() -> None:
        limits = {"parked_call": "4KiB"}
        async with bounded(tmp_path, limits) as it, modern(it) as client:
            large = {"words": "w" * 5000}
            text = refusal(await client.call("it__q_ask", large), "limits.parked_call")
            assert "more than can be kept for one call (4KiB)" in text
            assert failure(await client.call("it__q_ask", large))["retryable"] is False
            await it.change(limits={"parked_call": "8KiB"})
            await parked(client, "it__q_ask", large)

    run(conversation())


def test_what_parked_calls_of_all_servers_hold_is_bounded(tmp_path: Path) -> None:
    async def conversation() -> None:
        servers, limits = (
            {"it": asker("legacy"), "other": asker("legacy")},
            {"parked_total": "8KiB"},
        )
        async with bounded(tmp_path, limits, servers=servers) as it, modern(it) as client:
            large = {"words": "w" * 5000}
            await parked(client, "other__q_ask", large)
            text = refusal(await client.call("it__q_ask", large), "limits.parked_total")
            assert "beside what other calls hold (8KiB)" in text
            await it.change(limits={"parked_total": "16KiB"})
            await parked(client, "it__q_ask", large)

    run(conversation())


@each_client
@each_server
def test_rounds_of_questions_are_bounded(tmp_path: Path, client: str, server: str) -> None:
    """A modern server and a modern client see to it themselves: the gateway holds nothing."""

    async def conversation() -> None:
        arguments = {**WORDS, "rounds": 3, "stateful": server == "modern"}
        async with (
            bounded(tmp_path, {"rounds": 2}, servers={"it": asker(server)}) as it,
            client_of(client, it.gate.url) as asked,
        ):
            talk = await converse(asked, "it__q_ask", arguments)
            if client == server == "modern":
                assert len(talk.answers) == 3
                return
            text = talk.result["content"][0]["text"]
            assert "asked for input more than 2 times in one call (`limits.rounds`)" in text
            told = talk.result["_meta"]["onegate/error"]
            assert (told["kind"], told["limit"]) == ("refused", "limits.rounds")
            await it.change(limits={"rounds": 3})
            more = await converse(asked, "it__q_ask", arguments)
            assert len(more.answers) == 3

    run(conversation())


@each_server
def test_a_legacy_client_has_as_long_to_answer_as_the_configuration_says(
    tmp_path: Path, server: str
) -> None:
    async def conversation() -> None:
        async with (
            bounded(tmp_path, servers={"it": asker(server)}) as it,
            client_of("legacy", it.gate.url) as client,
        ):
            await it.change(limits={"answer": "200ms"})
            talk = await converse(client, "it__q_ask", WORDS, lambda _: None)
            text = talk.result["content"][0]["text"]
            assert "did not answer the server's question in time" in text
            assert "200ms (`limits.answer`)" in text
            if server == "legacy":
                assert await events(it) == {"parked": 1, "abandoned": 1}

    run(conversation())


def test_a_modern_client_has_as_long_to_come_back_as_the_configuration_says(
    tmp_path: Path,
) -> None:
    async def conversation() -> None:
        async with bounded(tmp_path, {"answer": "100ms"}) as it, modern(it) as client:
            asked = await parked(client, "it__q_ask", WORDS)
            waits = it.gate.server().apart.parked
            await eventually_async(lambda: not len(waits), what="the call to expire")
            refused = (await answered(client, asked)).error
            assert refused["code"] == -32602
            assert "call again without it" in refused["message"]
            assert await events(it) == {"parked": 1, "expired": 1}

    run(conversation())


# -- what became of them --


def test_what_becomes_of_parked_calls_is_counted(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with bounded(tmp_path) as it, modern(it) as client:
            asked = await parked(client, "it__q_ask", WORDS)
            await answered(client, asked)
            assert await events(it) == {"parked": 1, "resumed": 1, "answered": 1}

            await answered(client, asked)
            assert (await events(it))["repeated"] == 1

            await parked(client, "it__q_ask", WORDS)
            pid = it.gate.server().apart.pool.connections[0].transport.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            await eventually_async(lambda: not len(it.gate.server().apart.parked))
            assert (await events(it))["server_gone"] == 1

            slow = await parked(client, "it__q_works_on", {"seconds": 20})
            told = {"name": "it__q_works_on", "arguments": {"seconds": 20}, **retry_of(slow)}
            gone = asyncio.gather(client.request("tools/call", told))
            await eventually_async(lambda: it.gate.server().in_flight)
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
            await eventually_async(lambda: not len(it.gate.server().apart.parked))
            assert (await events(it))["cancelled"] == 1
            told_now = await metrics(it)
            assert told_now['onegate_calls_parked{server="it"}'] == 0

    run(conversation())


def test_counts_go_on_where_a_server_is_replaced(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with bounded(tmp_path) as it, modern(it) as client:
            asked = await parked(client, "it__q_ask", WORDS)
            await it.change_server("it", asker("legacy", env={"ANOTHER": "1"}))
            told = await metrics(it)
            assert told['onegate_calls_parked{server="it"}'] == 1, "the old one still has it"
            assert (await answered(client, asked)).text.startswith("w ")
            await it.gate.ready()
            assert await events(it) == {"parked": 1, "resumed": 1, "answered": 1}

    run(conversation())
