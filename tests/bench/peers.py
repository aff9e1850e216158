"""What is measured beside each other, and how each is started as its users would start it."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.bench import echo
from tests.kit.installs import environment, node_bin, npm_packages

MCP_PROXY = ["mcp-proxy==0.13.0", "mcp==1.30.0"]
MCP_HUB = ["mcp-hub@4.2.1"]
FORWARDER = Path(__file__).parent / "forwarder.py"


@dataclass(frozen=True, slots=True)
class Fleet:
    """The servers behind a gateway: how many, how many tools each has, how long each starts."""

    servers: int
    tools: int
    start_ms: int = 0

    @property
    def all_tools(self) -> int:
        return self.servers * self.tools

    def file(self, folder: Path) -> str:
        """The path of a file in the format of MCP clients that lists them."""
        path = folder / "servers.json"
        path.write_text(json.dumps({"mcpServers": self.sections()}))
        return str(path)

    def sections(self) -> dict[str, Mapping[str, object]]:
        return echo.sections(self.servers, self.tools, self.start_ms)


@dataclass(frozen=True, slots=True)
class Place:
    """Where one is started: its ports, and a folder of its own that is also its home."""

    port: int
    admin: int
    folder: Path

    def environment(self) -> dict[str, str]:
        state = {"ONEGATE_STATE": str(self.folder / "state")}
        # Whoever has installed it has its bytecode, whatever is usual where this is run.
        usual = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        return {**usual, "HOME": str(self.folder), **state}


@dataclass(frozen=True, slots=True)
class Peer:
    """One of those measured."""

    name: str
    argv: Callable[[Fleet, Place], list[str]]
    install: Callable[[], object] = lambda: None
    """Done before anything is measured. Raises InstallFailed."""
    speaks: Literal["http", "sse", "constant"] = "http"
    path: str = "/mcp"
    """Of its endpoint; with {server}, of that for one server."""

    @property
    def merges(self) -> bool:
        """Whether all servers are behind one endpoint."""
        return "{server}" not in self.path


def _gateway(fleet: Fleet, place: Place) -> list[str]:
    """As a user would run it: rules, the record to a file, metrics, all on."""
    config = {
        "listen": f"127.0.0.1:{place.port}",
        "admin": f"127.0.0.1:{place.admin}",
        "servers": fleet.sections(),
        "tools": [
            {"match": "*__delete_*", "decision": "deny"},
            {"match": "*__sleep", "timeout": "10s"},
            {"match": "*", "timeout": "60s", "longest": "10m", "concurrency": 256},
        ],
        "calls": {"path": str(place.folder / "calls.jsonl")},
    }
    file = place.folder / "onegate.json"
    file.write_text(json.dumps(config))
    return [sys.executable, "-m", "gateway", "serve", "-c", str(file)]


def _forwarder(fleet: Fleet, place: Place) -> list[str]:
    return [sys.executable, str(FORWARDER), str(place.port), fleet.file(place.folder)]


def _constant(_: Fleet, place: Place) -> list[str]:
    return [sys.executable, str(FORWARDER), str(place.port)]


def _mcp_hub(fleet: Fleet, place: Place) -> list[str]:
    script = npm_packages("bench/mcp-hub", MCP_HUB) / "node_modules" / ".bin" / "mcp-hub"
    files = ["--port", str(place.port), "--config", fleet.file(place.folder)]
    return [str(node_bin() / "node"), str(script.resolve()), *files]


def _mcp_proxy(fleet: Fleet, place: Place) -> list[str]:
    program = environment("bench/mcp-proxy", MCP_PROXY) / "mcp-proxy"
    listen = ["--host", "127.0.0.1", "--port", str(place.port), "--log-level", "ERROR"]
    return [str(program), *listen, "--named-server-config", fleet.file(place.folder)]


GATEWAY = Peer("gateway", _gateway)
FLOOR = Peer("forwarder", _forwarder)
CONSTANT = Peer("constant", _constant, speaks="constant")
HUB = Peer(
    "mcp-hub",
    _mcp_hub,
    install=lambda: (node_bin(), npm_packages("bench/mcp-hub", MCP_HUB)),
    speaks="sse",
)
PROXY = Peer(
    "mcp-proxy",
    _mcp_proxy,
    install=lambda: environment("bench/mcp-proxy", MCP_PROXY),
    path="/servers/s{server}/mcp",
)
PEERS = {each.name: each for each in (GATEWAY, FLOOR, CONSTANT, HUB, PROXY)}
