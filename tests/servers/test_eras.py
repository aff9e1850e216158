"""Which era a server speaks is found out without harm, remembered, and met on both sides."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.downstream.warden import Warden
from gateway.protocol.revisions import Era
from tests.kit.fakes import fake
from tests.kit.http import Answer
from tests.kit.waiting import eventually_async, run
from tests.servers.gate import Gate, alive, gate, remembered, scripted, starts

WHO = ("--only", "whoami,echo,crash")

KINDS: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "old, refuses the question": (("--era", "legacy"), ["legacy"]),
    "old, silent on it": (("--era", "legacy", "--discover", "silent"), ["legacy"]),
    "old, leaves over it": (("--era", "legacy", "--discover", "exit"), ["legacy"]),
    "old, dies of it": (("--era", "legacy", "--discover", "poison"), ["legacy"]),
    "old, silent on all it does not know": (("--era", "legacy", "--unknown", "silent"), ["legacy"]),
    "new, refuses the handshake": (("--era", "modern"), ["modern"]),
    "new, silent on it": (("--era", "modern", "--initialize", "silent"), ["modern"]),
    "new, leaves over it": (("--era", "modern", "--initialize", "exit"), ["modern"]),
    "both": ((), ["modern", "legacy"]),
    "both, but the first question locks": (("--lock",), ["modern", "legacy"]),
}


def test_the_era_is_found_out_and_both_eras_of_clients_are_served(tmp_path: Path) -> None:
    """B34; protocol.md 2.7. Each client is met in its own era where the server has it."""
    servers = {
        f"s{number}": fake(*WHO, *flags, start_timeout="4s", stop_grace="200ms")
        for number, (flags, _) in enumerate(KINDS.values())
    }

    async def converse() -> None:
        async with gate(tmp_path, servers) as it:
            await it.ready()
            async with it.modern() as modern, it.legacy() as legacy:
                for name, kind in zip(servers, KINDS, strict=True):
                    eras = KINDS[kind][1]
                    report = await it.report(name)
                    assert (report["eras"], report["restarts"]) == (eras, 0), kind
                    new = await modern.call(f"{name}__whoami")
                    old = await legacy.call(f"{name}__whoami")
                    assert (who(new)["era"], who(old)["era"]) == (eras[0], eras[-1]), kind

    run(converse())


def test_answers_that_mean_nothing_count_as_refusals(tmp_path: Path) -> None:
    """A server that answers the question with something else is taken for an old one."""
    program = tmp_path / "odd.py"
    program.write_text(ODD.replace("DISCOVERED", '{"hello": 1}'))

    async def converse() -> None:
        async with gate(tmp_path, {"it": {"command": "python3", "args": [str(program)]}}) as it:
            await it.ready()
            assert (await it.report())["eras"] == ["legacy"]
            async with it.modern() as client:
                assert (await client.call("it__ok")).text == "fine"

    run(converse())


def test_a_server_without_anything_to_say_of_itself_is_served_too(tmp_path: Path) -> None:
    program = tmp_path / "bare.py"
    program.write_text(ODD.replace("DISCOVERED", "None"))

    async def converse() -> None:
        async with gate(tmp_path, {"it": {"command": "python3", "args": [str(program)]}}) as it:
            await it.ready()
            assert (await it.report())["tools"] == 1

    run(converse())


@pytest.mark.parametrize("kind", ["old, dies of it", "new, refuses the handshake", "both"])
def test_a_verdict_is_remembered_so_that_the_next_start_is_one_process(
    tmp_path: Path, kind: str
) -> None:
    flags, eras = KINDS[kind]
    pids, heard = tmp_path / "starts", tmp_path / "heard"
    server = fake(*WHO, *flags, "--starts", pids, "--record", heard)

    async def converse() -> None:
        async with gate(tmp_path, {"it": server}) as it:
            await it.ready()
            assert (await remembered(it))["eras"] == eras
        before = len(starts(pids))
        heard.write_bytes(b"")
        async with gate(tmp_path, {"it": server}) as it:
            await it.ready()
            assert (await it.report())["eras"] == eras
            assert len(starts(pids)) == before + 1
            first = {"modern": "server/discover", "legacy": "initialize"}[eras[0]]
            other = {"modern": "initialize", "legacy": "server/discover"}[eras[0]]
            methods = [json.loads(line).get("method") for line in heard.read_text().splitlines()]
            assert methods[0] == first
            assert other not in methods

    run(converse())


@pytest.mark.parametrize(
    ("was", "has_become"),
    [("legacy", "modern"), ("modern", "legacy"), ("both", "legacy"), ("both", "modern")],
)
def test_a_verdict_that_no_longer_holds_is_found_out_anew(
    tmp_path: Path, was: str, has_become: str
) -> None:
    async def converse() -> None:
        async with gate(tmp_path, {"it": scripted(tmp_path, *WHO, "--era", was)}) as it:
            await it.ready()
            await remembered(it)
        async with gate(tmp_path, {"it": scripted(tmp_path, *WHO, "--era", has_become)}) as it:
            await it.ready()
            async with it.modern() as modern, it.legacy() as legacy:
                for client in (modern, legacy):
                    assert who(await client.call("it__whoami"))["era"] == has_become
            assert (await it.report())["eras"] == [has_become]
            await eventually_async(lambda: _eras_on_disk(it) == [has_become])

    run(converse())


def test_a_server_that_loses_an_era_while_it_is_down_serves_everybody_in_the_other(
    tmp_path: Path,
) -> None:
    """Both of its processes were in use; both die; it comes back with one era only."""

    async def converse() -> None:
        async with gate(tmp_path, {"it": scripted(tmp_path, *WHO)}) as it:
            await it.ready()
            async with it.modern() as modern, it.legacy() as legacy:
                assert who(await modern.call("it__whoami"))["era"] == "modern"
                assert who(await legacy.call("it__whoami"))["era"] == "legacy"
                scripted(tmp_path, *WHO, "--era", "legacy")
                await modern.call("it__crash")
                await legacy.call("it__crash")
                await eventually_async(lambda: it.server().eras == (Era.LEGACY,))
                for client in (modern, legacy):
                    assert who(await client.call("it__whoami"))["era"] == "legacy"
            assert len((await it.report())["pids"]) == 1
            assert not it.said("start.crashed")

    run(converse())


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_configuration_overrides_probe_and_memory(tmp_path: Path, era: str) -> None:
    pids = tmp_path / "starts"
    server = fake(*WHO, "--starts", pids)

    async def converse() -> None:
        async with gate(tmp_path, {"it": server}) as it:
            await it.ready()
            await remembered(it)
        before = len(starts(pids))
        async with gate(tmp_path, {"it": {**server, "protocol": era}}) as it:
            await it.ready()
            assert (await it.report())["eras"] == [era]
            async with it.modern() as modern, it.legacy() as legacy:
                for client in (modern, legacy):
                    assert who(await client.call("it__whoami"))["era"] == era
            assert len(starts(pids)) == before + 1

    run(converse())


def test_an_era_the_server_does_not_have_is_a_visible_failure(tmp_path: Path) -> None:
    async def converse() -> None:
        server = fake("--era", "legacy", protocol="modern")
        async with gate(tmp_path, {"it": server}) as it:
            await eventually_async(lambda: it.server().main.last_error)
            assert "Method not found" in (await it.report())["last_error"]

    run(converse())


def test_the_second_process_starts_with_the_first_call_that_needs_it(tmp_path: Path) -> None:
    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*WHO, "--lock")}) as it:
            await it.ready()
            async with it.modern() as modern, it.legacy() as legacy:
                new = who(await modern.call("it__whoami"))
                await legacy.request("tools/list")
                assert (await it.report())["pids"] == [new["pid"]]
                old = who(await legacy.call("it__whoami"))
                assert (await it.report())["pids"] == [new["pid"], old["pid"]]
                assert who(await legacy.call("it__whoami"))["pid"] == old["pid"]
                assert who(await modern.call("it__whoami"))["pid"] == new["pid"]

    run(converse())


def test_many_first_calls_at_once_start_one_second_process(tmp_path: Path) -> None:
    pids = tmp_path / "starts"

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*WHO, "--starts", pids)}) as it:
            await it.ready()
            before = len(starts(pids))
            async with it.legacy() as legacy:
                calls = [legacy.call("it__whoami") for _ in range(10)]
                found = {who(answer)["pid"] for answer in await asyncio.gather(*calls)}
            assert len(found) == 1
            assert len(starts(pids)) == before + 1

    run(converse())


def test_a_probe_leaves_no_process_but_the_one_in_use(tmp_path: Path) -> None:
    pids = tmp_path / "starts"

    async def converse() -> None:
        server = fake(*WHO, "--starts", pids, "--grandchild", stop_grace="200ms")
        async with gate(tmp_path, {"it": server}) as it:
            await it.ready()
            used = (await it.report())["pids"]
            await eventually_async(lambda: alive(starts(pids)) == used)

    run(converse())
    assert alive(starts(pids)) == []


def test_a_gateway_that_stops_in_the_middle_of_a_probe_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One question is answered already, the other never will be. It is not for the warden,
    who comes last, to clean up after this."""
    pids, heard = tmp_path / "starts", tmp_path / "heard"
    server = fake("--era", "legacy", "--discover", "silent", "--starts", pids, "--record", heard)

    async def converse() -> None:
        async with gate(tmp_path, {"it": server}) as it:
            await eventually_async(lambda: b"notifications/initialized" in heard.read_bytes())
            await eventually_async(lambda: len(starts(pids)) == 2)
            warden, left = it.gateway.warden, []

            def close() -> None:
                left.append(alive(starts(pids)))
                Warden.close(warden)

            monkeypatch.setattr(warden, "close", close)
        assert left == [[]]

    heard.touch()
    run(converse())


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18"])
def test_a_server_that_refuses_a_revision_is_offered_older_ones_on_fresh_processes(
    tmp_path: Path, version: str
) -> None:
    """B31. What it took is remembered, and offered first the next time."""
    pids = tmp_path / "starts"
    server = fake(*WHO, "--era", "legacy", "--versions", version, "--picky", "--starts", pids)

    async def converse() -> None:
        async with gate(tmp_path, {"it": server}) as it:
            await it.ready()
            async with it.modern() as client:
                assert who(await client.call("it__whoami"))["revision"] == version
            assert (await remembered(it))["offer"] == version
        before = len(starts(pids))
        async with gate(tmp_path, {"it": server}) as it:
            await it.ready()
        assert len(starts(pids)) == before + 1

    run(converse())


def test_a_new_server_is_not_asked_for_older_and_older_revisions(tmp_path: Path) -> None:
    """It said which it has. One process for each question is enough."""
    pids = tmp_path / "starts"

    async def converse() -> None:
        server = fake(*WHO, "--era", "modern", "--starts", pids)
        async with gate(tmp_path, {"it": server}) as it:
            await it.ready()
        assert len(starts(pids)) == 2

    run(converse())


def test_a_revision_nobody_knows_is_spoken_as_the_newest_of_old(tmp_path: Path) -> None:
    async def converse() -> None:
        server = fake(*WHO, "--era", "legacy", "--versions", "2099-01-01")
        async with gate(tmp_path, {"it": server}) as it:
            await it.ready()
            async with it.legacy() as client:
                assert who(await client.call("it__whoami"))["revision"] == "2099-01-01"

    run(converse())


def who(answer: Answer) -> dict[str, Any]:
    return dict(json.loads(answer.text))


def _eras_on_disk(it: Gate) -> Sequence[str]:
    server = it.server()
    known = server.memory.recall(server.key)
    return [] if known is None else [era.value for era in known.eras]


ODD = """
import json, sys

for line in sys.stdin:
    message = json.loads(line)
    match message["method"]:
        case "server/discover":
            result = DISCOVERED
        case "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        case "tools/list":
            result = {"tools": [{"name": "ok", "inputSchema": {"type": "object"}}]}
        case "tools/call":
            result = {"content": [{"type": "text", "text": "fine"}]}
        case _:
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
