"""Two principals ask at the same time on one server, a thousand times: nobody hears the other."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.kit.http import Modern
from tests.kit.waiting import run
from tests.questions.inside import ANN, BOB, bearer, inside
from tests.questions.talking import ERAS, Client, Talk, client_of, converse
from tests.questions.test_parked import two_tokens

CALLS = 250
"""Of each of four clients: both eras of both principals."""


async def _talks(client: Client, who: str) -> Counter[str]:
    """How often something of one's own was heard, by what it was."""
    heard: Counter[str] = Counter()
    for number in range(CALLS):
        words = f"{who}-{number}"
        token = f"token-{words}"
        talk = await converse(
            client, "it__q_talk", {"words": words}, _meta={"progressToken": token}
        )
        assert talk.text == f"{words}: to {words}"
        heard["answer"] += 1
        heard.update(_checked(talk, words, token))
    return heard


def _checked(talk: Talk, words: str, token: str) -> list[str]:
    """What else was said, all of it about this very call."""
    assert [each["params"]["message"] for each in talk.questions] == [words]
    kinds = ["question"]
    for notice in talk.notices:
        params = notice["params"]
        if notice["method"] == "notifications/progress":
            assert (params["progressToken"], params["message"]) == (token, words)
            kinds.append("progress")
        else:
            assert notice["method"] == "notifications/message", notice
            assert params["data"] == words
            kinds.append("log")
    return kinds


@pytest.mark.timeout(300)
@pytest.mark.parametrize("server", ERAS)
def test_no_question_progress_log_line_or_answer_reaches_another(
    tmp_path: Path, server: str
) -> None:
    async def conversation() -> list[Counter[str]]:
        async with (
            inside(tmp_path, server, config=two_tokens()) as it,
            client_of("modern", it.url, headers=bearer(ANN)) as one,
            client_of("legacy", it.url, headers=bearer(ANN)) as two,
            client_of("modern", it.url, headers=bearer(BOB)) as three,
            client_of("legacy", it.url, headers=bearer(BOB)) as four,
        ):
            clients = {"ann-1": one, "ann-2": two, "bob-1": three, "bob-2": four}
            for client in clients.values():
                if isinstance(client, Modern):
                    client.envelope.log_level = "info"
            found = await asyncio.gather(*(_talks(c, who) for who, c in clients.items()))
            assert not len(it.parked)
            return found

    for heard in run(conversation(), within_s=280):
        assert heard["answer"] == heard["question"] == CALLS
        assert heard["progress"] >= CALLS, "some of each call's own did come through"
