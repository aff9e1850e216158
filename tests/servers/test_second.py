"""The process for clients of a server's second era: seen by the operator, watched by nobody."""

import json
from pathlib import Path

from tests.conversations.talking import Message, heard_by
from tests.kit.fakes import fake
from tests.kit.http import Legacy, Modern
from tests.kit.waiting import eventually_async, run
from tests.servers.gate import PATIENT, Gate, gate

PLAIN = {"uri": "fake://plain"}


async def crashed(it: Gate, client: Legacy | Modern) -> None:
    """Have the process that serves this client come down."""
    assert (await client.call("it__crash")).result["isError"]


def test_its_state_restarts_and_last_error_are_reported(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with gate(tmp_path, {"it": fake("--lock")}, policy=PATIENT) as it:
            await it.ready()
            assert (await it.report())["second"] is None, "nobody has needed it"
            async with it.legacy() as client:
                assert (await client.call("it__whoami")).text
                second = (await it.report())["second"]
                assert (second["era"], second["state"]) == ("legacy", "ready")
                assert (second["restarts"], second["last_error"]) == (0, None)
                await crashed(it, client)

                async def waiting() -> Message | None:
                    report = await it.report()
                    return report if report["second"]["state"] == "waiting" else None

                report = await eventually_async(waiting)
            assert (report["state"], report["last_error"]) == ("ready", None)
            assert report["second"]["restarts"] == report["restarts"] == 1
            assert "exited with code 1" in report["second"]["last_error"]
            assert report["second"]["since"].endswith("Z")

    run(conversation())


def test_what_is_watched_while_the_first_is_down_is_told_once(tmp_path: Path) -> None:
    """Both processes see one thing happen; one of them alone speaks of it."""

    async def conversation() -> tuple[str, list[str]]:
        async with (
            gate(tmp_path, {"it": fake("--lock")}, policy=PATIENT) as it,
            it.legacy() as legacy,
            it.modern() as modern,
        ):
            await it.ready()
            assert (await legacy.call("it__whoami")).text
            await crashed(it, modern)
            await it.becomes("waiting")
            await legacy.request("resources/subscribe", PLAIN)
            it.server().main.kicked.set()
            await it.becomes("ready")
            async with legacy.listening() as stream, heard_by(stream) as heard:
                second = (await legacy.call("it__touch", PLAIN)).text

                async def told() -> bool:
                    await modern.call("it__touch", PLAIN)
                    return bool(updates(heard))

                await eventually_async(told, what="the first process to tell")
                return second, updates(heard)

    def updates(heard: list[Message]) -> list[str]:
        return [each["params"]["uri"] for each in heard if each["method"].endswith("/updated")]

    watched_by_second, heard = run(conversation())

    assert json.loads(watched_by_second) == []
    assert heard[:1] == [PLAIN["uri"]]
