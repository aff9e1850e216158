"""A gateway that is killed outright leaves nothing behind, and kills nobody else's processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.downstream.warden import Warden
from tests.kit.processes import ROOT, Program, is_alive, program
from tests.kit.waiting import eventually
from tests.processes.driving import gone_in_the_end

GATEWAYISH = Path(__file__).parent / "children" / "gatewayish.py"


@contextmanager
def gatewayish(log: Path, *arguments: str) -> Iterator[tuple[Program, int, list[int]]]:
    """Such a process, its warden's pid, and the pids of all that its children started."""
    argv = [sys.executable, str(GATEWAYISH), *arguments]
    with program(argv, log, env={"PYTHONPATH": str(ROOT)}) as running:
        text = running.wait_text(" pids ")
        eventually(lambda: running.text.endswith("\n"))
        words = next(line for line in text.splitlines() if line.startswith("warden")).split()
        pids = [int(word) for word in words[3:]]
        with gone_in_the_end(int(words[1]), *pids):
            yield running, int(words[1]), pids


@contextmanager
def bystander() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "100"], start_new_session=True)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_kill_9_of_the_gateway_leaves_no_server_and_no_warden(tmp_path: Path) -> None:
    """Case B10: polite, stubborn, and wrapped servers."""
    modes = ["echo", "polite", "stubborn,SIGTERM,SIGINT", "wrap,stays,SIGTERM", "wrap,exits"]
    with bystander() as other, gatewayish(tmp_path / "log", "wait", *modes) as running:
        gateway, warden, pids = running
        assert len(pids) == 7
        assert all(is_alive(pid) for pid in pids[:5])
        gateway.send(signal.SIGKILL)
        eventually(lambda: not any(is_alive(pid) for pid in pids), 10)
        eventually(lambda: not is_alive(warden), 10)
        assert is_alive(other)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_warden_is_deaf_to_the_signals_of_a_terminal_or_a_service(
    tmp_path: Path, number: signal.Signals
) -> None:
    with gatewayish(tmp_path / "log", "wait", "stubborn,SIGTERM") as (gateway, warden, pids):
        os.kill(warden, number)
        assert os.getsid(warden) == warden
        gateway.send(signal.SIGKILL)
        eventually(lambda: not is_alive(pids[0]), 10)


def test_after_an_orderly_end_the_warden_leaves_at_once(tmp_path: Path) -> None:
    with gatewayish(tmp_path / "log", "orderly", "echo", "stubborn") as (gateway, warden, _):
        assert gateway.wait_exit() == 0
        eventually(lambda: not is_alive(warden), 1)


def test_groups_that_were_stopped_are_not_touched_any_more() -> None:
    with bystander() as stopped, bystander() as running:
        warden = Warden()
        for pid in (stopped, running):
            warden.watch(pid)
        warden.forget(stopped)
        warden.close()
        eventually(lambda: not is_alive(running))
        assert is_alive(stopped)


def test_a_warden_that_was_killed_is_replaced_and_told_everything_anew() -> None:
    with bystander() as first, bystander() as second:
        warden = Warden()
        warden.watch(first)
        lost = warden.pid
        assert lost is not None
        os.kill(lost, signal.SIGKILL)
        eventually(lambda: not is_alive(lost))
        warden.watch(second)
        assert warden.pid not in (None, lost)
        warden.close()
        eventually(lambda: not is_alive(first) and not is_alive(second))


def test_a_system_without_a_shell_is_told_once_what_that_means() -> None:
    with capture_logs() as logs, bystander() as pid:
        warden = Warden(shell="/no/such/shell")
        warden.watch(pid)
        warden.watch(pid + 1)
        warden.forget(pid)
        warden.close()
        assert is_alive(pid)
    assert [line["event"] for line in logs] == ["warden.missing"]
    assert "survive" in logs[0]["effect"]


def test_a_warden_with_nothing_to_watch_is_no_process() -> None:
    warden = Warden()
    warden.forget(12345)
    warden.close()
    assert warden.pid is None


def test_no_descriptor_of_the_warden_reaches_a_child() -> None:
    """Or the end of the gateway would not be the end of the pipe."""
    argv = [sys.executable, "-S", "-c", "import os; print(*os.listdir('/dev/fd'))"]

    def inherited() -> list[str]:
        return subprocess.check_output(argv, close_fds=False, text=True).split()

    before = inherited()
    warden = Warden()
    with bystander() as pid:
        warden.watch(pid)
        assert len(inherited()) == len(before)
        warden.close()
        assert not is_alive(pid)
