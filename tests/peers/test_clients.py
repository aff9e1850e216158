"""Real clients in front of the gateway: each walks through a server of either era."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.gateway import Gateway
from tests.kit.http import Modern
from tests.kit.processes import ROOT, program
from tests.kit.waiting import eventually_async, run
from tests.peers import install

pytestmark = [pytest.mark.peers, pytest.mark.timeout(900)]
both_servers = pytest.mark.parametrize("server", ["legacy", "modern"])

LEGACY, MODERN = "2025-11-25", "2026-07-28"
WAIT_S = 120
ROUTED = ["tools/call", "--tool-name", "{server}__test_routed_by_header"]


def python_client(name: str) -> list[str]:
    module = f"tests.peers.clients.with_{name.replace('-', '_')}"
    return [install.python(name), "-m", module]


def bridge(url: str) -> list[str]:
    """mcp-remote: a stdio server for its client, a client for us."""
    return [install.node(), install.npm_program("mcp-remote"), url, "--allow-http"]


def typescript_client() -> list[str]:
    return [install.node(), str(ROOT / "tests" / "peers" / "clients" / "with_sdk_1.mjs")]


# What to run, by the prefix of a server's names and the gateway's URL; the revision to be spoken.
WALKS: dict[str, tuple[Callable[[str, str], list[str]], str]] = {
    "mcp-1": (lambda prefix, url: [*python_client("mcp-1"), prefix, url], LEGACY),
    "mcp-2-legacy": (lambda prefix, url: [*python_client("mcp-2"), prefix, url, "legacy"], LEGACY),
    "mcp-2-auto": (lambda prefix, url: [*python_client("mcp-2"), prefix, url, "auto"], MODERN),
    "mcp-2-modern": (lambda prefix, url: [*python_client("mcp-2"), prefix, url, MODERN], MODERN),
    "sdk-1": (lambda prefix, url: [*typescript_client(), prefix, url], LEGACY),
    "mcp-remote": (lambda prefix, url: [*python_client("mcp-1"), prefix, *bridge(url)], LEGACY),
}


@both_servers
@pytest.mark.parametrize("client", WALKS)
def test_a_real_client_lists_calls_reads_prompts_is_told_and_cancels(
    gateway: Gateway, tmp_path: Path, client: str, server: str
) -> None:
    command, revision = WALKS[client]
    prefix = f"{server}__"
    seen = json.loads(output(command(prefix, gateway.url), tmp_path).splitlines()[-1])
    assert seen["version"] == revision
    assert {f"{prefix}test_simple_text", "notes-old__add"} <= set(seen["tools"])
    assert f"{prefix}test_simple_prompt" in seen["prompts"]
    assert "test://static-text" in seen["resources"]
    assert "test://template/{id}/data" in seen["templates"]
    assert seen["text"] == "A simple text."
    assert seen["structured"] == {"sum": 3}
    assert seen["progress"] == [0, 50, 100]
    assert seen["routed"] == "Arguments: {'region': 'Zürich', 'priority': 3}"
    assert seen["failed"] is True
    assert seen["unknown"] == -32602
    assert seen["missing"] == (-32602 if revision == MODERN else -32002)
    assert "static resource" in seen["read"]
    assert "123" in seen["template"]
    assert seen["prompt"] == "Prompt with arg1='one' and arg2='two'"
    assert (seen["told"], seen["cancelled"]) == (True, True)
    if (revision, server) == (MODERN, "modern"):
        assert seen["asked"] == "Hello, Ada!"


@pytest.mark.parametrize("era", ["legacy", "modern"])
@both_servers
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["tools/list"], "{server}__test_simple_text"),
        (["tools/call", "--tool-name", "{server}__test_simple_text"], "A simple text."),
        (
            [*ROUTED, "--tool-arg", "region=Zürich"],
            "Zürich",
        ),
        (["resources/read", "--uri", "test://static-text"], "static resource"),
        (["prompts/get", "--prompt-name", "{server}__test_simple_prompt"], "A simple prompt"),
    ],
    ids=["list", "call", "headers", "read", "prompt"],
)
def test_the_inspector_lists_calls_reads_and_prompts(
    gateway: Gateway, tmp_path: Path, era: str, server: str, options: list[str], words: str
) -> None:
    placed = [each.format(server=server) for each in options]
    assert words.format(server=server) in output(inspector(gateway, era, *placed), tmp_path)


@both_servers
def test_an_inspector_killed_in_mid_call_cancels_it_at_the_server(
    gateway: Gateway, tmp_path: Path, server: str
) -> None:
    lasting = ["--tool-name", f"{server}__test_lasting", "--tool-arg", "seconds=600"]
    command = inspector(gateway, "modern", "tools/call", *lasting)

    async def conversation() -> None:
        async with Modern.to(gateway.url) as other:

            async def runs(number: str) -> bool:
                return (await other.call(f"{server}__test_count_lasting")).text == number

            with program(command, tmp_path / "inspector.log", env=home(tmp_path)):
                await eventually_async(lambda: runs("1"), WAIT_S)
            await eventually_async(lambda: runs("0"), WAIT_S)

    run(conversation(), within_s=2 * WAIT_S)


def inspector(gateway: Gateway, era: str, *options: str) -> list[str]:
    program = [install.node(), install.npm_program("mcp-inspector"), "--cli", gateway.url]
    return [*program, "--protocol-era", era, "--method", *options]


def home(folder: Path) -> dict[str, str]:
    """What keeps the programs from writing into the home of whoever runs the tests."""
    return {
        "HOME": str(folder),
        "MCP_REMOTE_CONFIG_DIR": str(folder),
        "PATH": f"{Path(install.node()).parent}{os.pathsep}{os.environ['PATH']}",
        "SDK": str(install.npm_folder()),
        "SDK_2": str(install.sdk_2()),
    }


def output(command: list[str], folder: Path) -> str:
    """What a program prints; it has to end well."""
    done: Any = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | home(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
    return str(done.stdout)
