"""What a message of a client has to say of itself: JSON-RPC 2.0, 4 ("MUST be exactly "2.0"").

Servers are granted more (cases B28): `tests/servers/test_answers.py`.
"""

import asyncio
from typing import Any

import pytest

from tests.conversations.talking import Gate, Message, client_of, each_era
from tests.kit.http import Answer, Modern
from tests.kit.waiting import run

MISSING = object()
WRONG = {"missing": MISSING, "older": "1.0", "a number": 2.0, "null": None, "empty": ""}

each_wrong = pytest.mark.parametrize("said", WRONG.values(), ids=WRONG)


def saying(message: Message, said: Any) -> Message:
    """The message with another `jsonrpc`, or without."""
    rest = {name: held for name, held in message.items() if name != "jsonrpc"}
    return rest if said is MISSING else {"jsonrpc": said, **rest}


@each_era
@each_wrong
def test_a_message_that_is_not_of_this_json_rpc_is_refused_in_words(
    gate: Gate, era: str, said: Any
) -> None:
    since = gate.mark()

    async def converse() -> list[Answer]:
        async with client_of(era, gate.url) as client:
            request = client.message("tools/call", {"name": "old__echo"}, id_="mine")
            told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}
            headers = client.routing(request) if isinstance(client, Modern) else {}
            messages = [saying(each, said) for each in (request, told)]
            return await asyncio.gather(*(client.post(each, headers) for each in messages))

    answers = run(converse())

    for answer, id_ in zip(answers, ("mine", None), strict=True):
        assert (answer.status, answer.error["code"], answer.final["id"]) == (400, -32600, id_)
        assert 'jsonrpc must be there, and say "2.0"' in answer.error["message"]
    assert not since.heard("old", "tools/call")


@each_wrong
def test_an_answer_to_a_question_is_held_to_the_same(gate: Gate, said: Any) -> None:
    async def converse() -> Answer:
        async with client_of("legacy", gate.url) as client:
            return await client.post(saying({"jsonrpc": "2.0", "id": 1, "result": {}}, said))

    answer = run(converse())

    assert (answer.status, answer.error["code"]) == (400, -32600)


def test_of_a_batch_only_what_is_wrong_is_refused(gate: Gate) -> None:
    async def converse() -> Answer:
        async with client_of("2025-03-26", gate.url) as client:
            fine = client.message("ping", id_=1)
            return await client.post([fine, saying({**fine, "id": 2}, MISSING)])

    answers: tuple[Any, ...] = run(converse()).messages[0]  # type: ignore[assignment]  # an array
    found = {each["id"]: each for each in answers}

    assert found[1]["result"] == {}
    assert found[2]["error"]["code"] == -32600
