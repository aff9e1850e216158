"""A gateway on a shipped configuration: its own servers and ports, all else as it stands there."""

import hashlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.kit.fakes import fake
from tests.kit.gateway import Gateway, fetch, stop
from tests.kit.http import Modern
from tests.kit.ports import free_port
from tests.kit.processes import Program, program
from tests.kit.waiting import eventually

TOKEN = "onegate_for-tests-only"
SHA256 = hashlib.sha256(TOKEN.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Shipped:
    """A running gateway, by its ports on this machine."""

    port: int
    admin_port: int
    program: Program

    def admin(self, path: str, host: str | None = None, token: str | None = None) -> int:
        """The status of an admin page, asked for as `HOST` on its own port."""
        headers = {"Host": f"{host or '127.0.0.1'}:{self.admin_port}"}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        return fetch(f"http://127.0.0.1:{self.admin_port}{path}", None, headers)[0]

    async def tool_names(self, token: str | None) -> set[str] | int:
        """What a client with this token is offered; the status of a refusal."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with Modern.to(f"http://127.0.0.1:{self.port}/mcp", headers) as client:
            answer = await client.request("tools/list")
        return {each["name"] for each in answer.result["tools"]} if answer.status == 200 else (
            answer.status
        )  # fmt: skip


@contextmanager
def running_shipped(
    folder: Path, config: Mapping[str, Any], secret: str, text: str = SHA256
) -> Iterator[Shipped]:
    """The gateway on `config`, with fake servers under its servers' names. `secret`: the path it
    reads the token's hash from, which here is a file with `text`."""
    file, port, admin_port = adapted_config(folder, config, secret, text)
    argv = [sys.executable, "-m", "gateway", "serve", "-c", str(file)]
    state = {"ONEGATE_STATE": str(folder / "state")}
    with program(argv, folder / "gateway.log", env=state) as started:
        found = Shipped(port, admin_port, started)

        def ready() -> bool:
            assert started.is_running, started.text
            return found.admin("/readyz") == 200

        eventually(ready, 20, what=f"/readyz; log:\n{started.text}")
        yield found
        url, admin = f"http://127.0.0.1:{port}/mcp", f"http://127.0.0.1:{admin_port}"
        stop(Gateway(url, admin, file, started))


def adapted_config(
    folder: Path, config: Mapping[str, Any], secret: str, text: str = SHA256
) -> tuple[Path, int, int]:
    """Write the configuration as a test can run it. Returns its file and the two ports."""
    assert f"${{file:{secret}}}" in str(config), config
    (folder / "token-sha256").write_text(text)
    port, admin_port = free_port(), free_port()
    servers = {
        name: {**section, **fake("--name", name)} for name, section in config["servers"].items()
    }
    changed = {
        **config,
        "listen": config["listen"].replace(":8765", f":{port}"),
        "admin": config["admin"].replace(":8766", f":{admin_port}"),
        "servers": servers,
    }
    if "calls" in config:
        changed["calls"] = {**config["calls"], "path": str(folder / "calls.jsonl")}
    written = yaml.safe_dump(changed).replace(secret, str(folder / "token-sha256"))
    file = folder / "onegate.yaml"
    file.write_text(written)
    return file, port, admin_port
