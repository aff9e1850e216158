"""A gateway that is kept short of something: started by hand, with its limits and its streams."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.kit.gateway import START_S, Gateway, stop
from tests.kit.ports import free_port
from tests.kit.processes import ROOT, Program, kill_tree
from tests.kit.waiting import eventually

Limit = tuple[int, int]


def write_config(folder: Path, servers: Mapping[str, Any], **config: Any) -> tuple[Path, str, str]:
    """The file, the endpoint's URL and the admin address."""
    ours = {"listen": f"127.0.0.1:{free_port()}", "admin": f"127.0.0.1:{free_port()}"}
    written = {**ours, "servers": dict(servers), **config}
    file = folder / "onegate.json"
    file.write_text(json.dumps(written, indent=2))
    listen, admin = (written[key].replace("0.0.0.0", "127.0.0.1") for key in ours)
    return file, f"http://{listen}/mcp", f"http://{admin}"


@dataclass(frozen=True, slots=True)
class Want:
    """What a gateway is kept short of."""

    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | str = ROOT
    stderr: int | None = None
    """Where the log goes; to a file if nothing is said."""
    limits: Mapping[int, Limit] = field(default_factory=dict)
    """Resource limits, as (soft, hard)."""
    around: tuple[str, ...] = ()
    """A command that runs the rest of its command line."""

    def set_limits(self) -> None:
        for which, limit in self.limits.items():
            resource.setrlimit(which, limit)


@contextmanager
def starving_gateway(
    folder: Path, servers: Mapping[str, Any], want: Want, **config: Any
) -> Iterator[Gateway]:
    """`onegate serve` until the block ends; then it has to leave in good order."""
    file, url, admin = write_config(folder, servers, **config)
    log = folder / "gateway.log"
    with log.open("ab") as kept:
        process = subprocess.Popen(
            [*want.around, sys.executable, "-m", "gateway", "serve", "-c", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=kept if want.stderr is None else want.stderr,
            cwd=want.cwd,
            env={**os.environ, "PYTHONPATH": str(ROOT), **want.env},
            preexec_fn=want.set_limits,
            start_new_session=True,
        )
    gateway = Gateway(url, admin, file, Program(process, log))
    try:
        eventually(lambda: _is_ready(gateway), START_S, what=f"readiness; log:\n{gateway.text}")
        yield gateway
        stop(gateway)
    finally:
        kill_tree(process.pid)
        process.wait()


def _is_ready(gateway: Gateway) -> bool:
    assert gateway.program.is_running, f"the gateway left:\n{gateway.text}"
    return gateway.status("/readyz") == 200


def logged(gateway: Gateway, event: str) -> list[dict[str, Any]]:
    """What it has said under this event."""
    lines = (line for line in gateway.text.splitlines() if line.startswith("{"))
    return [told for line in lines if (told := json.loads(line)).get("event") == event]


def metric(gateway: Gateway, name: str) -> float:
    """The value of a metric without labels."""
    (value,) = (
        line.split()[-1]
        for line in gateway.page("/metrics").splitlines()
        if line.startswith(name + " ")
    )
    return float(value)


def open_files(gateway: Gateway) -> int:
    return psutil.Process(gateway.pid).num_fds()
