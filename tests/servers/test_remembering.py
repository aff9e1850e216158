"""What a gateway keeps on disk, so that the next one has something to offer at once."""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.protocol.jsonrpc import value
from tests.kit.fakes import fake
from tests.kit.waiting import eventually_async, run
from tests.servers.gate import PATIENT, failure, gate, model_text, remembered, scripted

TOOLS = ("--only", "echo,add_tool,whoami")
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")


def test_a_restarted_gateway_offers_its_lists_at_once_while_servers_start(tmp_path: Path) -> None:
    """All four lists, as they were; a call waits for the server; nobody is told of a change."""

    async def converse() -> None:
        async with gate(tmp_path, {"it": scripted(tmp_path, *TOOLS)}) as it:
            await it.ready()
            await remembered(it)
            async with it.modern() as modern, it.legacy() as legacy:
                before = await _lists(modern), await _lists(legacy)
        slow = {"it": scripted(tmp_path, *TOOLS, before="sleep 1")}
        async with gate(tmp_path, slow) as it, it.modern() as modern, it.legacy() as legacy:
            assert (await it.report())["state"] == "starting"
            assert (await _lists(modern), await _lists(legacy)) == before
            assert (await it.report())["tools"] == 3
            async with modern.listening(toolsListChanged=True) as stream:
                assert (await modern.call("it__echo", {"text": "waited"})).text == "waited"
                await modern.call("it__add_tool", {"name": "news"})
                await stream.message()
                assert "it__news" in json.dumps((await _lists(modern))["tools/list"])

    run(converse())


def test_what_changed_while_the_gateway_was_away_is_announced(tmp_path: Path) -> None:
    async def converse() -> None:
        async with gate(tmp_path, {"it": scripted(tmp_path, "--only", "echo")}) as it:
            await it.ready()
            await remembered(it)
        other = {"it": scripted(tmp_path, "--only", "whoami", before="sleep 1")}
        async with (
            gate(tmp_path, other) as it,
            it.modern() as client,
            client.listening(toolsListChanged=True) as stream,
        ):
            assert await _tools(client) == ["it__echo"]
            told = await stream.message()
            assert told["method"] == "notifications/tools/list_changed"
            assert await _tools(client) == ["it__whoami"]

    run(converse())


def test_a_change_is_remembered_as_well(tmp_path: Path) -> None:
    async def converse() -> None:
        async with gate(tmp_path, {"it": scripted(tmp_path, *TOOLS)}) as it:
            await it.ready()
            async with it.modern() as client:
                await client.call("it__add_tool", {"name": "news"})

            async def on_disk() -> bool:
                return "news" in [tool["name"] for tool in (await remembered(it))["tools"]]

            await eventually_async(on_disk)
        gone = {"it": scripted(tmp_path, "--exit-at-start", 1)}
        async with gate(tmp_path, gone, policy=PATIENT) as it, it.modern() as client:
            assert "it__news" in await _tools(client)

    run(converse())


def test_a_tool_that_is_remembered_of_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    """B44, B94: the tool is known; it is the server that is not there."""

    async def converse() -> None:
        script = tmp_path / "server.sh"
        section = {**scripted(tmp_path, *TOOLS, before="#!/bin/sh"), "command": str(script)}
        section["args"] = []
        script.chmod(0o755)
        async with gate(tmp_path, {"it": section}) as it:
            await it.ready()
            await remembered(it)
        script.chmod(0o644)
        async with gate(tmp_path, {"it": section}) as it, it.modern() as client:
            await it.becomes("failed")
            answer = await client.call("it__echo")
            assert failure(answer)["state"] == "failed"
            assert failure(answer)["retryable"] is True
            assert "server.sh is not executable" in model_text(answer)
            assert "It is started again in " in model_text(answer)

    run(converse())


@pytest.mark.parametrize("state", ["file/state", "/proc/onegate"])
def test_a_state_folder_that_cannot_be_used_costs_one_warning(tmp_path: Path, state: str) -> None:
    (tmp_path / "file").write_text("in the way")
    folder = str(tmp_path / state)  # an absolute one stays as it is

    async def converse() -> None:
        servers = {name: fake(*TOOLS) for name in ("a", "b", "c")}
        async with gate(tmp_path, servers, environ={"ONEGATE_STATE": folder}) as it:
            await it.ready()
            async with it.modern() as client:
                for name in servers:
                    assert (await client.call(f"{name}__echo", {"text": name})).text == name
                await client.call("a__add_tool")
            await eventually_async(lambda: it.said("memory.unwritable"))
        assert len([e for e in it.log if e["event"].startswith("memory.")]) == 1
        assert it.said("memory.unwritable")[0]["remedy"].startswith("set ONEGATE_STATE")

    run(converse())


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"ONEGATE_STATE": "here", "XDG_STATE_HOME": "there"}, "here"),
        ({"ONEGATE_STATE": "", "XDG_STATE_HOME": "there"}, "there/onegate"),
        ({"ONEGATE_STATE": ""}, ".local/state/onegate"),
    ],
)
def test_where_the_state_is_kept(tmp_path: Path, environ: dict[str, str], folder: str) -> None:
    around = {key: value and str(tmp_path / value) for key, value in environ.items()}

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*TOOLS)}, environ=around) as it:
            await it.ready()
            await remembered(it)
            file = tmp_path / folder / "servers" / f"{it.server().key}.json"
            assert file.exists()
            assert file.parent.stat().st_mode & 0o077 == 0, "nobody else's business"

    run(converse())


NONSENSE = [
    b"",
    b"{",
    b"[]",
    b"\xff",
    b'{"format": 99, "eras": ["legacy"]}',
    b'{"format": 1, "eras": ["of reptiles"]}',
    b'{"format": 1, "tools": ["text"]}',
]


def test_a_file_that_makes_no_sense_is_as_good_as_none(tmp_path: Path) -> None:
    servers = {f"s{number}": fake("--only", "echo") for number in range(len(NONSENSE))}

    async def converse() -> None:
        folder = tmp_path / "state" / "servers"
        async with gate(tmp_path, servers, environ={"ONEGATE_STATE": "/proc/none"}) as it:
            files = [folder / f"{it.server(name).key}.json" for name in servers]
        folder.mkdir(parents=True)
        for file, content in zip(files, NONSENSE, strict=True):
            file.write_bytes(content)
        async with gate(tmp_path, servers) as it:
            await it.ready()
            for file in files:
                await eventually_async(partial(_is_sound, file))
            async with it.modern() as client:
                assert await _tools(client) == [f"{name}__echo" for name in servers]

    run(converse())


def test_servers_of_the_same_command_remember_each_their_own(tmp_path: Path) -> None:
    """What tells them apart may be a value in their environment, or a file."""

    async def converse() -> None:
        same = fake(*TOOLS)
        servers = {f"s{number}": same for number in range(8)}
        async with gate(tmp_path, servers) as it:
            await it.ready()
            async with it.modern() as client:
                await asyncio.gather(
                    *(client.call(f"{name}__add_tool", {"name": f"of_{name}"}) for name in servers)
                )
            for name in servers:
                await eventually_async(partial(_has, it, name, f"of_{name}"))
        assert not it.said("memory.unwritable")

    run(converse())


def test_no_secret_reaches_the_disk(tmp_path: Path) -> None:
    secret = "s3cr3t-value-of-someone"

    async def converse() -> None:
        server = fake(*TOOLS, env={"API_KEY": secret})
        async with gate(tmp_path, {"it": server}) as it:
            await it.ready()
            await remembered(it)
        for file in (tmp_path / "state").rglob("*"):
            assert secret not in str(file)
            assert file.is_dir() or secret not in file.read_text()

    run(converse())


def _is_sound(file: Path) -> bool:
    return file.read_bytes().startswith(b'{"format":') and b'"echo"' in file.read_bytes()


def _has(it: Any, name: str, tool: str) -> bool:
    server = it.server(name)
    known = server.memory.recall(server.key)
    return known is not None and tool in [value(each, "name") for each in known.tools]


async def _lists(client: Any) -> dict[str, Any]:
    return {method: (await client.request(method)).result for method in LISTS}


async def _tools(client: Any) -> list[str]:
    answer = await client.request("tools/list")
    return [each["name"] for each in answer.result["tools"]]
