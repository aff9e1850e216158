"""`isolation: principal`: several clients of one principal share a process, and what it asks too
late must not reach whoever of them happens to call just then (protocol 3.5)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.kit.http import Legacy, Modern
from tests.kit.waiting import eventually_async, run
from tests.questions.inside import Inside, inside
from tests.questions.talking import ERAS, Client, Message, client_of, converse, parked, retry_of

MINE = {"words": "mine"}


@asynccontextmanager
async def shared(folder: Path, era: str) -> AsyncIterator[tuple[Inside, Client, Modern]]:
    """A client of this era, and another of the same principal."""
    async with (
        inside(folder, isolation="principal") as it,
        client_of(era, it.url) as one,
        client_of("modern", it.url) as other,
    ):
        assert isinstance(other, Modern)
        yield it, one, other


async def refused(it: Inside) -> None:
    """The server has been told that nobody can be asked that."""
    answer = await it.heard.wait(lambda each: "error" in each)
    assert answer["error"]["code"] == -32601


async def answered(client: Modern, asked: Message) -> str:
    """What comes of a parked call once its question is answered, and of no other."""
    assert [each["params"]["message"] for each in asked["inputRequests"].values()] == ["mine"]
    told = {"name": "it__q_ask", "arguments": MINE, **retry_of(asked)}
    return (await client.request("tools/call", told)).text


def test_what_is_asked_after_an_answer_reaches_no_other_client(tmp_path: Path) -> None:
    async def conversation() -> str:
        async with shared(tmp_path, "legacy") as (it, one, other):
            asked = await parked(other, "it__q_ask", MINE)
            assert (await one.call("it__q_late")).text == "answered early"
            await refused(it)
            return await answered(other, asked)

    assert run(conversation()).startswith("mine ")


@pytest.mark.parametrize("era", ERAS)
def test_what_is_asked_about_a_call_that_was_given_up_reaches_no_other_client(
    tmp_path: Path, era: str
) -> None:
    async def conversation() -> None:
        async with shared(tmp_path, era) as (it, one, other):
            told: Message = {"name": "it__q_stubborn", "arguments": {"words": "a secret"}}
            message = one.message("tools/call", told)
            if isinstance(one, Legacy):
                async with one.opened(message) as stream:
                    while "id" not in await stream.message():
                        pass
                    await one.notify("notifications/cancelled", {"requestId": message["id"]})
            else:
                asked = await parked(one, "it__q_stubborn", told["arguments"])
                retry = one.message("tools/call", {**told, **retry_of(asked)})
                async with one.opened(retry, one.routing(retry)):
                    await it.heard.wait(lambda each: "result" in each)
            await it.heard.wait(lambda each: each.get("method") == "notifications/cancelled")
            talk = await converse(other, "it__test_tool_with_progress")
            assert talk.questions == []
            await refused(it)

    run(conversation())


def test_what_is_asked_between_calls_does_not_wait_for_somebody_else(tmp_path: Path) -> None:
    async def conversation() -> list[Message]:
        async with shared(tmp_path, "legacy") as (it, one, other):
            await one.call("it__q_late")
            legs = it.apart.pool.connections[0].outbound._legs  # type: ignore[attr-defined]
            await eventually_async(lambda: legs._unowned, what="it to ask")
            talk = await converse(other, "it__test_tool_with_progress")
            await refused(it)
            return talk.questions

    assert run(conversation()) == []
