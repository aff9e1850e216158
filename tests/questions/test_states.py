"""States of modern servers, which are called for all principals over one connection.

Such a server cannot tell who comes back with a `requestState`: the gateway sees to it that only
the one it was given to can (2026-07-28 basic/patterns/mrtr, server requirement 4).
"""

import asyncio
import hashlib
import json
from contextlib import AsyncExitStack
from pathlib import Path

from tests.everything.asking import MRTR
from tests.kit.http import Modern
from tests.kit.waiting import run
from tests.questions.inside import ANN, BOB, bearer, inside
from tests.questions.talking import Message, client_of, converse, parked, retry_of

TOOL = f"it__{MRTR}_request_state"
OTHER = f"it__{MRTR}_tampered_state"
CALL: Message = {"name": TOOL, "arguments": {}}


def tokens(**owners: str) -> Message:
    hashed = {name: hashlib.sha256(token.encode()).hexdigest() for name, token in owners.items()}
    return {"auth": {"tokens": [{"name": n, "sha256": h} for n, h in hashed.items()]}}


def test_a_thief_gets_nothing_from_a_modern_server_either(tmp_path: Path) -> None:
    async def conversation() -> tuple[list[Message], list[Message], str]:
        record = {"calls": {"path": str(tmp_path / "calls.jsonl")}}
        async with (
            inside(tmp_path, "modern", config=tokens(ann=ANN, bob=BOB) | record) as it,
            client_of("modern", it.url, headers=bearer(ANN)) as ann,
            client_of("modern", it.url, headers=bearer(BOB)) as bob,
        ):
            assert isinstance(ann, Modern)
            asked = await parked(ann, TOOL)
            mine = retry_of(asked)
            bare = asked["requestState"].partition(".")[2]
            before = len(it.heard.lines("tools/call"))
            refusals = [
                (await bob.request("tools/call", {**CALL, **mine})).error,
                (await bob.request("tools/call", {**CALL, **mine, "requestState": bare})).error,
                (await ann.request("tools/call", {**CALL, **mine, "requestState": bare})).error,
                (await ann.request("tools/call", {**CALL, **mine, "requestState": 7})).error,
                (await ann.request("tools/call", {**CALL, **mine, "name": OTHER})).error,
            ]
            assert len(it.heard.lines("tools/call")) == before, "none of these got to the server"
            text = (await ann.request("tools/call", {**CALL, **mine})).text
            brought = it.heard.lines("tools/call")[-1]["params"]["requestState"]
            assert brought == bare, "the server gets exactly what it gave"
        lines = (tmp_path / "calls.jsonl").read_text().splitlines()
        return refusals, [json.loads(line) for line in lines], text

    refusals, records, text = run(conversation())

    assert all(refusal == refusals[0] for refusal in refusals)
    assert refusals[0]["code"] == -32602
    assert text.startswith("state-ok")
    assert [each["principal"] for each in records].count("bob") == 2, "each is written down"
    assert len(records) == 1 + len(refusals) + 1


def test_a_whole_conversation_over_several_rounds_goes_on_with_each_new_state(
    tmp_path: Path,
) -> None:
    async def conversation() -> None:
        async with AsyncExitStack() as stack:
            it = await stack.enter_async_context(
                inside(tmp_path, "modern", config=tokens(ann=ANN, bob=BOB))
            )
            clients = [
                await stack.enter_async_context(client_of(era, it.url, headers=bearer(token)))
                for era in ("modern", "legacy")
                for token in (ANN, BOB)
            ]
            name = f"it__{MRTR}_multi_round"
            talks = await asyncio.gather(*(converse(client, name) for client in clients))
            assert len({json.dumps(talk.result["content"]) for talk in talks}) == 1
            states = [state for talk in talks for state in talk.tokens]
            assert len(states) == len(set(states)) >= 4

    run(conversation())


def test_where_there_are_no_tokens_states_pass_as_they_are(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with (
            inside(tmp_path, "modern") as it,
            client_of("modern", it.url) as client,
        ):
            assert isinstance(client, Modern)
            asked = await parked(client, TOOL)
            await client.request("tools/call", {**CALL, **retry_of(asked)})
            brought = it.heard.lines("tools/call")[-1]["params"]["requestState"]
            assert brought == asked["requestState"]

    run(conversation())
