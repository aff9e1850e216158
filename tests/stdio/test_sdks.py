"""Official SDKs as the clients that start `onegate stdio`."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.gateway import Gateway, running_gateway
from tests.kit.processes import ROOT
from tests.peers import install
from tests.peers.conftest import ours

pytestmark = [pytest.mark.peers, pytest.mark.timeout(900)]

WAIT_S = 120
LEGACY, MODERN = "2025-11-25", "2026-07-28"
BRIDGE = ["-m", "gateway", "stdio"]
CLIENTS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "mcp-1": ("mcp-1", (), LEGACY),
    "mcp-2-legacy": ("mcp-2", ("legacy",), LEGACY),
    "mcp-2-auto": ("mcp-2", ("auto",), MODERN),
    "mcp-2-modern": ("mcp-2", (MODERN,), MODERN),
}
"""The SDK; the words between the first of its server's command and the others; what is spoken."""


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {name: entry | {"isolation": "shared"} for name, entry in ours().items()}
    with running_gateway(tmp_path_factory.mktemp("everything"), servers) as gateway:
        gateway.wait_tools("legacy__test_simple_text", "modern__test_simple_text", within_s=WAIT_S)
        yield gateway


@pytest.mark.parametrize("server", ["legacy", "modern"])
@pytest.mark.parametrize("way", ["in front", "alone"])
@pytest.mark.parametrize("client", CLIENTS)
def test_an_sdk_lists_calls_reads_prompts_is_told_and_cancels(
    everything: Gateway, tmp_path: Path, client: str, way: str, server: str
) -> None:
    sdk, between, revision = CLIENTS[client]
    module = f"tests.peers.clients.with_{sdk.replace('-', '_')}"
    words = ["--url", everything.url] if way == "in front" else ["-c", str(everything.file)]
    done = subprocess.run(
        [
            install.python(sdk),
            "-m",
            module,
            f"{server}__",
            sys.executable,
            *between,
            *BRIDGE,
            *words,
        ],
        cwd=ROOT,
        env=os.environ | {"HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["version"] == revision
    assert f"{server}__test_simple_text" in seen["tools"]
    assert seen["progress"] == [0, 50, 100]
    assert seen["routed"] == "Arguments: {'region': 'Zürich', 'priority': 3}"
    assert (seen["failed"], seen["told"], seen["cancelled"]) == (True, True, True)
