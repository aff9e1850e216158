"""Real SDKs on the oldest transport, and over connections that break."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conversations.talking import Gate, opened_gate, recorded
from tests.kit.ports import free_port
from tests.kit.processes import ROOT
from tests.kit.waiting import run
from tests.peers import install
from tests.resume.cutting import relay

pytestmark = [pytest.mark.peers, pytest.mark.timeout(600)]
CLIENTS = ROOT / "tests" / "peers" / "clients"
WAIT_S = 120
ARGUMENTS = json.dumps({"steps": 6, "ms": 100})


async def output(*words: str) -> Any:
    """What a program prints as its last line; it has to end well."""
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(WAIT_S):
        out, error = await process.communicate()
    assert process.returncode == 0, error.decode()[-3000:]
    return json.loads(out.splitlines()[-1])


@pytest.mark.parametrize("sdk", ["mcp-old", "mcp-1"])
def test_an_old_client_finds_the_old_pair_of_paths(tmp_path: Path, sdk: str) -> None:
    """The first is of 2025-03, from before Streamable HTTP; the other still has both."""
    python, script = install.python(sdk), str(CLIENTS / "over_sse.py")
    servers = {"old": recorded(tmp_path, "old", "--era", "legacy", protocol="legacy")}
    with opened_gate(tmp_path, servers, legacy_sse=True) as gate:
        gate.gateway.wait_tools("old__echo")
        url = gate.url.removesuffix("/mcp") + "/sse"
        seen = run(output(python, script, "old__", url), WAIT_S)

    assert seen["version"] == {"mcp-old": "2024-11-05", "mcp-1": "2025-11-25"}[sdk]
    assert "old__echo" in seen["tools"]
    assert seen["texts"] == ["one", "two"]
    assert seen["failed"] is True


@pytest.mark.parametrize("sdk", ["python", "typescript"])
def test_a_real_client_fetches_an_answer_whose_connection_was_lost_twice(
    tmp_path: Path, sdk: str
) -> None:
    own = free_port()
    url = f"http://127.0.0.1:{own}/mcp"

    async def converse(gate: Gate) -> Any:
        port = gate.gateway.host_port[1]
        async with relay(own, port, cut_at=b'"progress":3', times=2) as between:
            seen = await output(*command(sdk, url, "old__progress", ARGUMENTS))
            return between.cuts, seen

    servers = {"old": recorded(tmp_path, "old", "--era", "legacy", protocol="legacy")}
    with opened_gate(tmp_path, servers, allowed_hosts=[f"127.0.0.1:{own}"]) as gate:
        gate.gateway.wait_tools("old__progress")
        cuts, seen = run(converse(gate), WAIT_S)

    assert cuts == 2
    assert seen["progress"] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("sdk", ["python", "typescript"])
def test_a_real_client_goes_on_with_streams_that_the_gateway_closes_for_their_age(
    tmp_path: Path, sdk: str
) -> None:
    works = json.dumps({"steps": 30, "ms": 100})
    servers = {"old": recorded(tmp_path, "old", "--era", "legacy", protocol="legacy")}
    with opened_gate(tmp_path, servers, limits={"stream_age": "700ms"}) as gate:
        gate.gateway.wait_tools("old__progress")
        seen = run(output(*command(sdk, gate.url, "old__progress", works)), WAIT_S)

    assert seen["progress"] == list(range(1, 31))


def command(sdk: str, *called: str) -> list[str]:
    if sdk == "python":
        return [install.python("mcp-1"), str(CLIENTS / "calls_once.py"), *called]
    folder = f"SDK={install.npm_folder()}"
    return ["env", folder, install.node(), str(CLIENTS / "calls_once.mjs"), *called]
