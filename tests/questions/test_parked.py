"""Parked calls of real servers: lost, stolen, doubled, given up, and bounded (protocol 3.8)."""

import asyncio
import hashlib
import os
import signal
from pathlib import Path

from gateway.eras.legacy.parked import Bounds
from tests.kit.http import Modern
from tests.kit.waiting import eventually_async, run
from tests.questions.inside import ANN, BOB, Inside, bearer, inside
from tests.questions.talking import (
    ALL,
    Message,
    answer_to,
    client_of,
    converse,
    parked,
    pid_of,
    retry_of,
)

CANCEL = {"action": "cancel"}
WORDS = {"words": "w"}
ASK: Message = {"name": "it__q_ask", "arguments": WORDS}


def two_tokens() -> Message:
    tokens = [
        {"name": name, "sha256": hashlib.sha256(token.encode()).hexdigest()}
        for name, token in (("ann", ANN), ("bob", BOB))
    ]
    return {"auth": {"tokens": tokens}}


def _gave_up(message: Message) -> bool:
    return message.get("method") == "notifications/cancelled"


def test_a_thief_gets_nothing_and_hears_what_anybody_hears_who_guesses(tmp_path: Path) -> None:
    """2026-07-28 basic/patterns/mrtr, server requirement 4."""

    async def conversation() -> tuple[list[Message], str]:
        async with (
            inside(tmp_path, config=two_tokens()) as it,
            client_of("modern", it.url, headers=bearer(ANN)) as ann,
            client_of("modern", it.url, headers=bearer(BOB)) as bob,
        ):
            assert isinstance(ann, Modern)
            asked = await parked(ann, "it__q_ask", WORDS)
            mine, guess = retry_of(asked), {**retry_of(asked), "requestState": "guess"}
            refusals = [
                (await bob.request("tools/call", {**ASK, **mine})).error,
                (await bob.request("tools/call", {**ASK, **guess})).error,
                (await ann.request("tools/call", {**ASK, **guess})).error,
                (await ann.request("tools/call", {**ASK, "arguments": {}, **mine})).error,
                (await ann.request("tools/call", {**ASK, "name": "it__q_talk", **mine})).error,
            ]
            assert not it.heard.answers()
            return refusals, (await ann.request("tools/call", {**ASK, **mine})).text

    refusals, text = run(conversation())

    assert all(refusal == refusals[0] for refusal in refusals)
    assert refusals[0]["code"] == -32602
    assert text.startswith("w ")


def test_a_lost_answer_can_be_fetched_again_question_and_result_alike(tmp_path: Path) -> None:
    async def conversation() -> None:
        told: Message = {"name": "it__q_ask", "arguments": {**WORDS, "rounds": 2}}
        async with inside(tmp_path) as it, client_of("modern", it.url) as client:
            assert isinstance(client, Modern)
            first = await parked(client, "it__q_ask", told["arguments"])
            again = {**told, **retry_of(first)}
            lost = (await client.request("tools/call", again)).result
            found = (await client.request("tools/call", again)).result
            assert found["requestState"] == lost["requestState"] != first["requestState"]
            assert found["inputRequests"] == lost["inputRequests"]

            last = {**told, **retry_of(found)}
            done = (await client.request("tools/call", last)).text
            assert (await client.request("tools/call", last)).text == done
            assert len(it.heard.answers()) == 2, "each question was answered once"
            assert len(it.heard.lines("tools/call")) == 1

    run(conversation())


def test_of_two_retries_at_once_the_later_gets_the_answer(tmp_path: Path) -> None:
    async def conversation() -> None:
        told: Message = {"name": "it__q_works_on", "arguments": {"seconds": 0.5}}
        async with inside(tmp_path) as it, client_of("modern", it.url) as client:
            assert isinstance(client, Modern)
            asked = await parked(client, "it__q_works_on", told["arguments"])
            again = {**told, **retry_of(asked)}
            early = asyncio.gather(client.request("tools/call", again))
            await it.heard.wait(lambda each: "result" in each)
            late = await client.request("tools/call", again)
            (ended,) = await early

            assert ended.error["code"] == -32603
            assert "came again" in ended.error["message"]
            assert late.text == "worked"
            assert len(it.heard.answers()) == 1

    run(conversation())


def test_who_never_comes_back_releases_the_server(tmp_path: Path) -> None:
    """Protocol A9: there is no decline; the server gets one made for it, and a cancellation."""

    async def conversation() -> None:
        async with inside(tmp_path) as it, client_of("modern", it.url) as client:
            assert isinstance(client, Modern)
            asked = await parked(client, "it__q_ask", WORDS)
            pid = it.heard.lines("tools/call")[0]["pid"]
            it.pass_time(Bounds().age_s + 1)

            await it.heard.wait(lambda each: each.get("result") == CANCEL)
            await it.heard.wait(_gave_up)
            refusal = (await client.request("tools/call", {**ASK, **retry_of(asked)})).error
            assert refusal["code"] == -32602
            assert not len(it.parked)
            await it.gone(pid)

    run(conversation())


def test_a_server_that_is_killed_while_its_call_waits_is_an_honest_error(tmp_path: Path) -> None:
    async def conversation() -> Message:
        async with inside(tmp_path) as it, client_of("modern", it.url) as client:
            assert isinstance(client, Modern)
            asked = await parked(client, "it__q_ask", WORDS)
            os.kill(it.heard.lines("tools/call")[0]["pid"], signal.SIGKILL)
            await eventually_async(lambda: not len(it.parked), what="the loss to be noticed")
            again = {**ASK, **retry_of(asked)}
            failed = (await client.request("tools/call", again)).result
            assert (await converse(client, "it__q_ask", WORDS)).text.startswith("w "), "as before"
            return failed

    failed = run(conversation())

    assert failed["isError"] is True
    assert failed["_meta"]["onegate/error"]["kind"] == "unavailable"
    assert failed["_meta"]["onegate/error"]["retryable"] is False
    assert "SIGKILL" in failed["content"][0]["text"]


def test_at_shutdown_servers_are_told_before_they_are_stopped(tmp_path: Path) -> None:
    async def conversation() -> Inside:
        async with inside(tmp_path) as it, client_of("modern", it.url) as client:
            assert isinstance(client, Modern)
            await parked(client, "it__q_ask", WORDS)
        return it

    heard = run(conversation()).heard

    assert heard.answers()[-1]["result"] == CANCEL
    assert "stopping" in heard.lines("notifications/cancelled")[-1]["params"]["reason"]


def test_an_answer_given_while_the_client_was_away_waits_for_it(tmp_path: Path) -> None:
    async def conversation() -> str:
        told: Message = {"name": "it__q_impatient", "arguments": {"patience": 0.1}}
        async with inside(tmp_path) as it, client_of("modern", it.url) as client:
            assert isinstance(client, Modern)
            asked = await parked(client, "it__q_impatient", told["arguments"])
            await eventually_async(lambda: not len(it.parked), what="the server to give up")
            return (await client.request("tools/call", {**told, **retry_of(asked)})).text

    assert run(conversation()) == "nobody was quick"


def test_beyond_the_bound_a_call_ends_and_says_that_it_had_begun(tmp_path: Path) -> None:
    async def conversation() -> Message:
        async with inside(tmp_path) as it, client_of("modern", it.url) as client:
            assert isinstance(client, Modern)
            it.parked.bounds = Bounds(per_principal=1)
            await parked(client, "it__q_ask", WORDS)
            refused = (await client.call("it__q_ask", WORDS)).result
            await it.heard.wait(lambda each: each.get("result") == CANCEL)
            assert len(it.parked) == 1
            return refused

    refused = run(conversation())

    assert refused["isError"] is True
    assert "wait for answers of their clients" in refused["content"][0]["text"]
    told = refused["_meta"]["onegate/error"]
    assert (told["kind"], told["retryable"]) == ("throttled", False)


def test_a_legacy_client_that_never_answers_does_not_wait_for_ever(tmp_path: Path) -> None:
    async def conversation() -> tuple[Message, list[Message]]:
        config = {"limits": {"answer": "200ms"}}
        async with inside(tmp_path, config=config) as it, client_of("legacy", it.url) as client:
            talk = await converse(client, "it__q_ask", WORDS, lambda _: None)
            await it.heard.wait(lambda each: each.get("result") == CANCEL)
            await it.heard.wait(_gave_up)
            return talk.result, talk.notices

    result, notices = run(conversation())

    assert result["isError"] is True
    assert "did not answer the server's question in time" in result["content"][0]["text"]
    assert [each["method"] for each in notices] == ["notifications/cancelled"]


def test_answers_without_a_token_of_ours_are_a_call_like_any_other(tmp_path: Path) -> None:
    """Protocol A7."""

    async def conversation() -> Message:
        async with inside(tmp_path) as it, client_of("modern", it.url) as client:
            assert isinstance(client, Modern)
            told = {**ASK, "inputResponses": {"form0": {"action": "accept"}}}
            asked = (await client.request("tools/call", told)).result
            (call,) = it.heard.lines("tools/call")
            assert "inputResponses" not in call["params"]
            return asked

    assert run(conversation())["resultType"] == "input_required"


def test_a_url_to_be_visited_first_is_a_question_of_its_own_and_the_retry_a_new_call(
    tmp_path: Path,
) -> None:
    """Protocol A16: -32042 is of 2025-11-25 and forbidden in 2026-07-28; nothing is parked."""

    async def conversation() -> None:
        keys = {"isolation": "shared"}
        async with inside(tmp_path, **keys) as it, client_of("modern", it.url) as client:
            assert isinstance(client, Modern)
            asked = (await client.call("it__q_visit_first")).result
            assert asked["resultType"] == "input_required"
            assert "requestState" not in asked
            (question,) = asked["inputRequests"].values()
            assert question["method"] == "elicitation/create"
            assert question["params"]["url"] == "https://visit.example/"
            assert "elicitationId" not in question["params"]
            answers = {key: answer_to(each) for key, each in asked["inputRequests"].items()}
            told = {"name": "it__q_visit_first", "arguments": {}, "inputResponses": answers}
            assert (await client.request("tools/call", told)).text == "visited"
            assert not len(it.parked)

    run(conversation())


def test_who_cannot_visit_urls_is_told_what_it_lacks(tmp_path: Path) -> None:
    async def conversation() -> tuple[Message, Message]:
        async with inside(tmp_path) as it, client_of("modern", it.url, {}) as modern:
            refused = (await modern.call("it__q_visit_first")).error
            async with client_of("legacy", it.url, ALL) as legacy:
                own = (await legacy.call("it__q_visit_first")).error
            return refused, own

    refused, own = run(conversation())

    assert refused["code"] == -32021
    assert refused["data"]["requiredCapabilities"] == {"elicitation": {"url": {}}}
    assert own["code"] == -32042, "a client of that revision knows what to do"
    assert own["data"]["elicitations"][0]["elicitationId"] == "e-1"


def test_a_server_that_asks_before_any_call_gets_its_answer_with_the_first(
    tmp_path: Path,
) -> None:
    """Servers ask for roots as soon as they are up; nobody is there to be asked yet."""

    async def conversation() -> None:
        async with (
            inside(tmp_path, "legacy", "--roots-first") as it,
            client_of("legacy", it.url) as client,
        ):
            talk = await converse(client, "it__q_ask", WORDS)  # runs until it is answered
            assert "roots/list" in [each["method"] for each in talk.questions]
            answer = await it.heard.wait(lambda each: "roots" in each.get("result", {}))
            assert answer["id"] == 0
            assert answer["pid"] == await pid_of(client, "it")

    run(conversation())
