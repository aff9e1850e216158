"""The unit: by systemd's own checks, and as a service of a real systemd."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.serving import SHA256, TOKEN
from tests.deploy.shipped import adapted, replaced, shipped, wanted
from tests.deploy.systemd import UNIT, Booted, booted, needs_systemd
from tests.kit.gateway import fetch
from tests.kit.http import Modern
from tests.kit.ports import free_port
from tests.kit.waiting import eventually, run

CREDENTIAL = "/run/credentials/onegate.service/token-sha256"
STATE = "/var/lib/onegate"


def analyzed(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    """What `systemd-analyze` says of the unit, its program replaced by one that is there."""
    text = adapted(text, {"/opt/onegate/bin/onegate": f"{sys.executable} -m gateway"})
    file = replaced(folder, UNIT, text)
    return subprocess.run(
        [wanted("systemd-analyze"), *words, str(file)], capture_output=True, text=True, timeout=50
    )


def test_systemd_understands_every_line(tmp_path: Path) -> None:
    said = analyzed(tmp_path, shipped(f"systemd/{UNIT}"), "verify")
    assert said.returncode == 0, said.stdout + said.stderr
    assert said.stdout + said.stderr == ""


def test_a_slip_would_be_seen(tmp_path: Path) -> None:
    slipped = adapted(shipped(f"systemd/{UNIT}"), {"ProtectHome=": "ProtectHouse="})
    assert "ProtectHouse" in analyzed(tmp_path, slipped, "verify").stderr


def test_it_is_exposed_as_little_as_a_service_with_a_network_can_be(tmp_path: Path) -> None:
    words = ("security", "--offline=yes", "--no-pager", "--threshold=20")  # of 100
    said = analyzed(tmp_path, shipped(f"systemd/{UNIT}"), *words)
    assert said.returncode == 0, said.stdout


# -- as a service ---------------------------------------------------------------------------


class RunningUnit:
    """The unit on a systemd, with one server that tells what it may do."""

    def __init__(self, systemd: Booted) -> None:
        self.systemd = systemd
        self.port, self.admin_port = free_port(), free_port()
        self.config: dict[str, Any] = {
            "listen": f"127.0.0.1:{self.port}",
            "admin": f"127.0.0.1:{self.admin_port}",
            "auth": {"tokens": [{"name": "laptop", "sha256": f"${{file:{CREDENTIAL}}}"}]},
            "servers": {
                "prober": {
                    "command": "/opt/onegate/bin/python",
                    "args": ["/opt/src/tests/deploy/children/prober.py"],
                    "required": True,
                }
            },
            "calls": {"path": f"{STATE}/calls.jsonl"},
        }

    def write(self, **changes: Any) -> None:
        etc = self.systemd.folder / "etc"
        (etc / "onegate.yaml").write_text(json.dumps({**self.config, **changes}))
        (etc / "token-sha256").write_text(f"{SHA256}\n")
        (etc / "token-sha256").chmod(0o600)

    def status(self, path: str) -> int:
        return fetch(f"http://127.0.0.1:{self.admin_port}{path}")[0]

    def page(self, path: str) -> str:
        return fetch(f"http://127.0.0.1:{self.admin_port}{path}")[1].decode()

    def start(self) -> None:
        done = self.systemd.systemctl("start", UNIT)
        assert done.returncode == 0, done.stderr + self.systemd.log

    def tools(self) -> list[str]:
        async def listed() -> list[str]:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with Modern.to(f"http://127.0.0.1:{self.port}/mcp", headers) as client:
                answer = await client.request("tools/list")
                return [each["name"] for each in answer.result["tools"]]

        return run(listed())

    def call(self, arguments: dict[str, Any]) -> dict[str, Any]:
        async def called() -> str:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with Modern.to(f"http://127.0.0.1:{self.port}/mcp", headers) as client:
                return (await client.call("prober__probe", arguments)).text

        return dict(json.loads(run(called())))


@pytest.fixture(scope="module")
def systemd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Booted]:
    needs_systemd()
    # 30 s would be the test's time; 3 s show the same.
    with booted(tmp_path_factory.mktemp("systemd"), {"WatchdogSec=30": "WatchdogSec=3"}) as found:
        yield found


@pytest.fixture
def service(systemd: Booted) -> Iterator[RunningUnit]:
    found = RunningUnit(systemd)
    found.write()
    yield found
    systemd.systemctl("stop", UNIT)
    systemd.systemctl("reset-failed", UNIT)
    (systemd.folder / "log").unlink(missing_ok=True)


def test_the_service_has_started_when_clients_can_connect(service: RunningUnit) -> None:
    service.start()
    assert service.status("/livez") == 200  # at once: `start` waited for it
    assert service.systemd.show("ActiveState") == "active"


def test_servers_run_as_nobody_in_particular_and_write_to_the_state_and_tmp_alone(
    service: RunningUnit,
) -> None:
    service.start()
    eventually(lambda: service.status("/readyz") == 200, 20)
    folders = [STATE, "/tmp", "/etc", "/opt", "/opt/src", "/usr", "/var", "/run"]
    told = service.call({"folders": folders})

    assert told["uid"] > 0
    assert told["writable"] == [STATE, "/tmp"]
    assert not Path("/tmp/probe").exists()


def test_a_reload_holds_without_a_restart_and_a_bad_file_changes_nothing(
    service: RunningUnit,
) -> None:
    service.start()
    eventually(lambda: service.status("/readyz") == 200, 20)
    pid = service.systemd.show("MainPID")
    assert service.tools() == ["prober__probe"]

    service.write(tools=[{"match": "*", "decision": "deny"}])
    assert service.systemd.systemctl("reload", UNIT).returncode == 0
    eventually(lambda: service.tools() == [], 10, what="the rule to hold")

    service.write(tols=[])
    service.systemd.systemctl("reload", UNIT)
    failed = re.compile(r"^onegate_config_last_reload_successful 0", re.MULTILINE)
    eventually(lambda: failed.search(service.page("/metrics")), 10)
    assert service.tools() == []
    assert service.systemd.show("MainPID") == pid
    assert service.systemd.show("ActiveState") == "active"


@pytest.mark.timeout(120)
def test_a_gateway_that_hangs_is_started_anew(service: RunningUnit) -> None:
    service.start()
    hung = service.systemd.main
    hung.send_signal(signal.SIGSTOP)

    eventually(lambda: service.systemd.show("NRestarts") == "1", 60, what="a restart")
    eventually(lambda: service.status("/livez") == 200, 30)
    assert not hung.is_running()
    assert service.systemd.main.pid != hung.pid
    assert service.systemd.show("ActiveState") == "active"


def test_stopping_is_clean_and_takes_the_servers_along(service: RunningUnit) -> None:
    service.start()
    eventually(lambda: service.status("/readyz") == 200, 20)
    family = [service.systemd.main, *service.systemd.main.children(recursive=True)]
    assert len(family) > 1

    assert service.systemd.systemctl("stop", UNIT).returncode == 0
    assert service.systemd.show("Result") == "success"
    assert not [each for each in family if each.is_running()]


def test_a_configuration_that_cannot_be_used_is_said_once(service: RunningUnit) -> None:
    service.write(tols=[])
    assert service.systemd.systemctl("start", UNIT).returncode != 0
    assert service.systemd.show("ExecMainStatus") == "2"
    assert service.systemd.show("NRestarts") == "0"
    assert "tols" in service.systemd.log
