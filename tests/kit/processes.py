"""Programs a test starts: followed while they run, and gone when it ends."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.kit.waiting import eventually

ROOT = Path(__file__).parents[2]
"""The top of the checkout."""


@dataclass(frozen=True, slots=True)
class Program:
    """A running program. What it writes, to stdout and stderr alike, goes to `log`."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def text(self) -> str:
        """All it has written so far."""
        return self.log.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def wait_text(self, words: str, within_s: float = 10.0) -> str:
        """Wait until it has written these words. Returns all it wrote."""

        def written() -> bool:
            assert words in self.text or self.is_running, f"it left:\n{self.text}"
            return words in self.text

        eventually(written, within_s, what=f"{words!r} in:\n{self.text}")
        return self.text

    def wait_exit(self, within_s: float = 10.0) -> int:
        """Its exit code, negative for a signal."""
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {within_s} s:\n{self.text}") from None

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def descendants(self) -> list[psutil.Process]:
        return descendants(self.pid)


@contextmanager
def program(
    argv: Sequence[str],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
) -> Iterator[Program]:
    """Start a program in a session of its own; in the end kill it with all it started.

    `env` is added to the environment of the tests.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
    try:
        yield Program(process, log)
    finally:
        kill_tree(process.pid)
        process.wait()


def descendants(pid: int) -> list[psutil.Process]:
    """Children of a process, and theirs. Empty if it has gone."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def words_of(process: psutil.Process) -> list[str]:
    """Its command line. Empty if it has gone: short-lived ones come and go beside a gateway."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def is_alive(pid: int) -> bool:
    """Whether a process runs. A zombie has ended: it only waits to be read."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill_tree(pid: int) -> None:
    """Kill a process, its descendants and its group; bounded."""
    family = descendants(pid)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for each in family:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    psutil.wait_procs(family, timeout=5)
