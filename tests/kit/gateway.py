"""The gateway itself, as a child process: started on free ports, stopped politely, checked."""

import json
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.ports import free_port
from tests.kit.processes import Program, is_alive, program
from tests.kit.waiting import eventually

Message = dict[str, Any]
START_S = 20.0
STOP_S = 20.0
"""More than the sum of the bounds the tests configure; CI machines are slow."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway."""

    url: str
    """Of the MCP endpoint."""
    admin: str
    """Of the admin address, without a path."""
    file: Path
    """Its configuration, for tests that change it and send HUP."""
    program: Program

    @property
    def pid(self) -> int:
        return self.program.pid

    @property
    def text(self) -> str:
        """All it has logged."""
        return self.program.text

    @property
    def host_port(self) -> tuple[str, int]:
        host, _, port = self.url.split("/")[2].rpartition(":")
        return host, int(port)

    def server_pids(self) -> list[int]:
        """Pids of everything it started."""
        return [each.pid for each in self.program.descendants()]

    def status(self, path: str) -> int:
        """HTTP status of an admin path; 0 if nobody listens."""
        return fetch(f"{self.admin}{path}")[0]

    def page(self, path: str) -> str:
        """Body of an admin path."""
        return fetch(f"{self.admin}{path}")[1].decode()

    def tool_names(self) -> list[str]:
        """What `tools/list` offers a modern client now."""
        prefix = "io.modelcontextprotocol/"
        meta = {f"{prefix}protocolVersion": "2026-07-28", f"{prefix}clientCapabilities": {}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/list",
        }
        status, answer = fetch(self.url, json.dumps(body).encode(), headers)
        assert status == 200, (status, answer)
        return [each["name"] for each in json.loads(answer)["result"]["tools"]]

    def wait_tools(self, *names: str, within_s: float = START_S) -> None:
        """Wait until all of these exposed names are listed."""
        eventually(
            lambda: set(names) <= set(self.tool_names()), within_s, what=f"{names} to be listed"
        )


@contextmanager
def running_gateway(
    folder: Path,
    servers: Mapping[str, Any],
    *,
    wait: str = "/readyz",
    env: Mapping[str, str] | None = None,
    **config: Any,
) -> Iterator[Gateway]:
    """`python -m gateway serve` with these servers, until the block ends.

    `wait` is the admin path that must say 200 first ("/livez": as soon as it listens). `config`
    are further top-level keys. In the end it gets TERM, must exit with 0, and must leave nothing
    running. Its state is kept in `folder`, so a second gateway there finds the first one's.
    """
    listen, admin = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    written = {"listen": listen, "admin": admin, "servers": dict(servers), **config}
    file = folder / "onegate.json"
    file.write_text(json.dumps(written, indent=2))
    argv = [sys.executable, "-m", "gateway", "serve", "-c", str(file)]
    state = {"ONEGATE_STATE": str(folder / "state"), **(env or {})}
    with program(argv, folder / "gateway.log", env=state) as started:
        reached = str(written["admin"]).replace("0.0.0.0", "127.0.0.1")
        gateway = Gateway(f"http://{listen}/mcp", f"http://{reached}", file, started)
        _wait_ready(gateway, wait)
        yield gateway
        stop(gateway)


def stop(gateway: Gateway, within_s: float = STOP_S) -> None:
    """Ask a gateway to leave, and see that it does so cleanly and takes its servers along."""
    if not gateway.program.is_running:
        return
    left = gateway.server_pids()
    gateway.program.send(signal.SIGTERM)
    code = gateway.program.wait_exit(within_s)
    assert code == 0, f"exit code {code}:\n{gateway.text}"
    alive = [pid for pid in left if is_alive(pid)]
    assert not alive, f"left running: {alive}\n{gateway.text}"


def fetch(
    url: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    """Status and body of one small request, blocking; (0, b"") if nobody listens."""
    request = urllib.request.Request(url, data, dict(headers or {}))
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return int(response.status), bytes(response.read())
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read()
    except OSError:
        return 0, b""


def _wait_ready(gateway: Gateway, path: str) -> None:
    def ready() -> bool:
        assert gateway.program.is_running, f"the gateway left:\n{gateway.text}"
        return gateway.status(path) == 200

    eventually(ready, START_S, what=f"{path} to say 200; log:\n{gateway.text}")
