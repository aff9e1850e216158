"""What a call says of its progress while its client is being asked something."""

from pathlib import Path

from tests.kit.gateway import running_gateway
from tests.kit.http import Legacy
from tests.kit.waiting import run
from tests.questions.talking import ALL, Message, asker, converse


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
