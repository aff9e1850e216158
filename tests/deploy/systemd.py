"""A real systemd, as the first process of namespaces of its own, running the shipped unit.

It sees its own processes, mounts and control groups alone. Where a systemd runs the
machine already, or where namespaces cannot be made, the tests that need this are skipped.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.deploy.shipped import adapted, replaced, shipped
from tests.kit.processes import ROOT, Program, program, words_of
from tests.kit.waiting import eventually

UNIT = "onegate.service"
GROUPS = Path("/sys/fs/cgroup/systemd")
SYSTEMD = "/lib/systemd/systemd"
EMPTY = ("sysinit", "basic", "shutdown", "network-online", "default", "multi-user")
INSIDE = """
set -eu
mount --make-rprivate /
mount -t proc proc /proc
umount -l /sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
mkdir {groups}
mount -t cgroup -o none,name=systemd cgroup {groups}
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /var/lib
mount --rbind {root} {made}/src
mount --rbind {venv} {made}/onegate
mount --rbind {made} /opt
mount --make-rshared /
export container=lxc SYSTEMD_UNIT_PATH={made}/units
exec {systemd} --system --log-target=null --show-status=no
"""


def needs_systemd() -> None:
    """Skip the test where no systemd can be booted."""
    if os.geteuid() or not Path(SYSTEMD).exists() or not (GROUPS / "cgroup.procs").exists():
        pytest.skip("needs root, systemd, and its control groups of version 1")
    if Path("/run/systemd/system").exists():
        pytest.skip("a systemd runs this machine: leave it alone")
    tried = ["unshare", "--cgroup", "--pid", "--mount", "--ipc", "--uts", "--fork", "true"]
    if subprocess.run(tried, capture_output=True, timeout=20).returncode:
        pytest.skip("cannot make namespaces here")


@dataclass(frozen=True, slots=True)
class Booted:
    """A systemd and the folder it was given: /opt, as seen from inside."""

    pid: int
    folder: Path

    def systemctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        inside = ["nsenter", "-t", str(self.pid), "--all", "systemctl", "--no-pager", *words]
        return subprocess.run(inside, capture_output=True, text=True, timeout=60)

    def show(self, name: str) -> str:
        """A property of the unit."""
        return self.systemctl("show", UNIT, "--value", "-p", name).stdout.strip()

    @property
    def main(self) -> psutil.Process:
        """The service's main process, by its pid out here."""
        inside = int(self.show("MainPID"))
        (found,) = [
            each
            for each in psutil.Process(self.pid).children(recursive=True)
            if _pid_inside(each.pid) == inside
        ]
        return found

    @property
    def log(self) -> str:
        """All the service has said."""
        file = self.folder / "log"
        return file.read_text() if file.exists() else ""


@contextmanager
def booted(folder: Path, changes: Mapping[str, str]) -> Iterator[Booted]:
    """Boot systemd with the shipped unit, adapted by `changes`; nothing is started yet.

    The checkout is /opt/src in there, the environment of the tests /opt/onegate, and `etc` of the
    folder /opt/etc, which stands for /etc/onegate.
    """
    for name in ("src", "onegate", "etc", "units"):
        (folder / name).mkdir(exist_ok=True)
    folder.chmod(0o755)  # the service is not root
    own = {
        "/opt/onegate/bin/onegate serve": "/opt/onegate/bin/python -m gateway serve",
        "/etc/onegate/": "/opt/etc/",
        "[Service]\n": f"[Service]\n{_as_tests_need(folder)}",
    }
    if _PYTHON_IS_AT_HOME:  # then that home is empty but for Python, instead of closed
        own["ProtectHome=yes"] = "ProtectHome=tmpfs"
    replaced(folder, f"units/{UNIT}", adapted(shipped(f"systemd/{UNIT}"), {**own, **changes}))
    for name in EMPTY:
        text = f"[Unit]\nDescription={name}\nDefaultDependencies=no\n"
        replaced(folder, f"units/{name}.target", text)
    script = INSIDE.format(groups=GROUPS, root=ROOT, venv=sys.prefix, made=folder, systemd=SYSTEMD)
    group = GROUPS / f"onegate-tests-{os.getpid()}"
    group.mkdir()
    spaces = "unshare --cgroup --pid --mount --ipc --uts --fork --kill-child"
    start = f"echo $$ > {group}/cgroup.procs; exec {spaces} sh {replaced(folder, 'boot', script)}"
    try:
        with program(["sh", "-c", start], folder / "boot.log") as running:
            found = Booted(_first_process(running), folder)
            eventually(lambda: found.systemctl("is-system-running").stdout.strip() in _UP, 20)
            yield found
    finally:
        eventually(lambda: _removed(group), 10, what=f"{group} to be empty")


_UP = ("running", "degraded")
_PYTHON_IS_AT_HOME = sys.base_prefix.startswith(("/root", "/home"))


def _as_tests_need(folder: Path) -> str:
    """What differs for an environment that is no installation: the code is in the checkout, and
    Python itself may be in somebody's home."""
    lines = [
        "Environment=PYTHONPATH=/opt/src PYTHONDONTWRITEBYTECODE=1",
        f"StandardError=append:{folder / 'log'}",
    ]
    if _PYTHON_IS_AT_HOME:
        lines += [f"BindReadOnlyPaths={sys.base_prefix}"]
    return "\n".join([*lines, ""])


def _first_process(running: Program) -> int:
    """systemd's pid out here: the child of `unshare`, once it is no shell any more."""

    def found() -> int:
        assert running.is_running, running.text
        family = running.descendants()
        return next((each.pid for each in family if words_of(each)[:1] == [SYSTEMD]), 0)

    return eventually(found, 20, what="systemd to start")


def _pid_inside(pid: int) -> int | None:
    """What a process is called in its own namespace."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    (line,) = [each for each in status.splitlines() if each.startswith("NSpid:")]
    return int(line.split()[-1])


def _removed(group: Path) -> bool:
    """Whether a control group could be removed, with those below it."""
    try:
        for each in sorted(group.rglob("*"), reverse=True):
            if each.is_dir():
                each.rmdir()
        group.rmdir()
    except OSError:
        return False
    return True
