"""Servers ask for roots on their own account, while calls come and go: whichever call they are
asked on is not what they are about."""

from pathlib import Path

import pytest

from gateway.eras.legacy import leg
from tests.kit.http import Legacy
from tests.kit.waiting import eventually_async, run
from tests.questions.inside import Inside, inside
from tests.questions.talking import Message, answer_to, client_of, converse

ROOTS = {"roots": [{"uri": "file:///here"}]}


def answers(it: Inside) -> list[Message]:
    """What the client's own process heard: the one that all share is refused at once."""
    return [each for each in it.heard.answers() if each.get("error", {}).get("code") != -32601]


async def has_roots(it: Inside) -> bool:
    """What it was answered in the end: roots, or that there are none to be had."""
    await eventually_async(lambda: answers(it), 10, what="an answer")
    return answers(it)[0].get("result") == ROOTS


def test_roots_that_come_after_the_answer_to_the_call_still_reach_the_server(
    tmp_path: Path,
) -> None:
    async def conversation() -> list[Message]:
        async with (
            inside(tmp_path, "legacy", "--roots-first") as it,
            client_of("legacy", it.url) as client,
        ):
            assert isinstance(client, Legacy)
            talk = await converse(client, "it__test_tool_with_progress", {}, lambda _: None)
            (asked,) = talk.questions
            assert answers(it) == []
            await client.respond(asked["id"], ROOTS)
            assert await has_roots(it)
            return talk.notices

    assert "notifications/cancelled" not in [each["method"] for each in run(conversation())]


def test_roots_that_never_come_are_waited_for_so_long_and_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leg, "OUTLIVES_S", 0.3)

    async def conversation() -> None:
        async with (
            inside(tmp_path, "legacy", "--roots-first") as it,
            client_of("legacy", it.url) as client,
        ):
            assert isinstance(client, Legacy)
            talk = await converse(client, "it__test_tool_with_progress", {}, lambda _: None)
            assert not await has_roots(it)
            await client.respond(talk.questions[0]["id"], ROOTS)
            assert (await client.call("it__q_who")).status == 200
            assert len(answers(it)) == 1

    run(conversation())


def test_calls_that_are_soon_over_do_not_keep_roots_from_a_server(tmp_path: Path) -> None:
    """It is asked on the second at the latest, whoever is quicker."""

    async def conversation() -> None:
        async with (
            inside(tmp_path, "legacy", "--roots-first") as it,
            client_of("legacy", it.url) as client,
        ):
            asked: list[Message] = []
            for _ in range(2):
                talk = await converse(client, "it__q_who", answering=lambda _: None)
                assert talk.text.isdigit()
                asked += talk.questions
            (question,) = asked
            assert question["method"] == "roots/list"
            assert isinstance(client, Legacy)
            await client.respond(question["id"], answer_to(question) or {})
            assert await has_roots(it)
            for _ in range(3):
                assert not (await converse(client, "it__q_who")).questions

    run(conversation())
