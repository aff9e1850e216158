"""What a call says of its progress while its client is being asked something, and what the
client says of its progress with the answer."""

import asyncio
from pathlib import Path

import pytest

from tests.kit.gateway import running_gateway
from tests.kit.http import Legacy
from tests.kit.waiting import run
from tests.questions.inside import inside
from tests.questions.talking import ALL, Message, answer_to, asker, client_of, converse, parked


def test_a_legacy_client_hears_all_progress_though_it_never_answers_a_question(
    tmp_path: Path,
) -> None:
    """It is asked on the call's own stream, which stays open: only who is gone has to make do
    with the last of it."""

    def never(_question: Message) -> None:
        return None

    async def conversation(url: str) -> None:
        async with Legacy.to(url) as client:
            await client.initialize(capabilities=ALL)
            meta = {"progressToken": "mine"}
            talk = await converse(client, "it__test_tool_with_progress", {}, never, _meta=meta)
        told = [each["params"] for each in talk.notices if each["method"].endswith("/progress")]
        assert [asked["method"] for asked in talk.questions] == ["roots/list"]
        assert [each["progress"] for each in told] == [0, 50, 100]
        assert {each["progressToken"] for each in told} == {"mine"}

    with running_gateway(tmp_path, {"it": asker("legacy", "--roots-first")}) as gateway:
        gateway.wait_tools("it__test_tool_with_progress")
        run(conversation(gateway.url))


PROGRESS = "notifications/progress"


@pytest.mark.parametrize("token", [7, "of-the-server", 0])
def test_a_server_hears_how_far_its_client_is_with_the_answer(
    tmp_path: Path, token: int | str
) -> None:
    """Source: 2025-11-25, basic/utilities/progress: either side may ask the other for it."""

    async def conversation() -> None:
        async with inside(tmp_path) as it, client_of("legacy", it.url) as client:
            assert isinstance(client, Legacy)
            call = {"name": "it__q_curious", "arguments": {"token": token}}
            async with asyncio.timeout(15), client.opened(client.message("tools/call", call)) as on:
                asked = await on.message()
                mine = asked["params"]["_meta"]["progressToken"]
                assert mine != token
                for stranger in ("nobody's", token):
                    await client.notify(PROGRESS, {"progressToken": stranger, "progress": 9})
                far: Message = {"progress": 0.5, "total": 1, "message": "thinking"}
                await client.notify(PROGRESS, {"progressToken": mine, **far})
                told = await it.heard.wait(lambda each: each.get("method") == PROGRESS)
                await client.respond(asked["id"], answer_to(asked) or {})
                done = await on.message()
            assert done["result"]["content"][0]["text"] == "a model's words"
            await client.notify(PROGRESS, {"progressToken": mine, **far})
            await client.call("it__q_who")

            assert told["params"] == {"progressToken": token, **far}
            assert len(it.heard.lines(PROGRESS)) == 1

    run(conversation())


def test_who_is_not_asked_for_progress_is_given_no_token_nor_is_a_modern_client(
    tmp_path: Path,
) -> None:
    async def conversation() -> None:
        async with (
            inside(tmp_path) as it,
            client_of("legacy", it.url) as old,
            client_of("modern", it.url) as new,
        ):
            talk = await converse(old, "it__q_curious")
            asked = await parked(new, "it__q_curious", {"token": 7})  # type: ignore[arg-type]

            assert ["_meta" in each["params"] for each in talk.questions] == [False]
            assert ["_meta" in each["params"] for each in asked["inputRequests"].values()] == [
                False
            ]

    run(conversation())
