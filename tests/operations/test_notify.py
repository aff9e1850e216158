"""What the service manager is told (sd_notify): when it is ready, reloads, stops, and lives."""

import asyncio
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.app.notify import Notifier
from tests.kit.fakes import fake
from tests.kit.gateway import running_gateway
from tests.kit.waiting import eventually, eventually_async, run


class Systemd:
    """Stands in for systemd: a socket, and what came over it."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self.heard: list[str] = []

    def words(self) -> list[str]:
        """All there were so far."""
        while True:
            try:
                self.heard.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return self.heard

    def wait_word(self, word: str, times: int = 1) -> None:
        eventually(lambda: self.words().count(word) >= times, 20, what=f"{word} in {self.heard}")


@contextmanager
def listening(address: str) -> Iterator[Systemd]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind("\0" + address[1:] if address.startswith("@") else address)
        sock.setblocking(False)
        yield Systemd(sock)


def test_a_service_tells_its_whole_life(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    env = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "300000"}
    with (
        listening(address) as systemd,
        running_gateway(tmp_path, {"a": fake()}, env=env) as gateway,
    ):
        systemd.wait_word("READY=1")
        assert systemd.heard[0] == "READY=1"  # and only now does anybody come
        systemd.wait_word("WATCHDOG=1", 3)

        before = time.monotonic_ns() // 1000
        gateway.program.send(signal.SIGHUP)
        systemd.wait_word("READY=1", 2)
        said = [word for word in systemd.heard if word != "WATCHDOG=1"]
        reloading, stamp = said[1].split("\n")
        assert reloading == "RELOADING=1"
        assert before <= int(stamp.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000
        assert said[2] == "READY=1"

        gateway.program.send(signal.SIGTERM)
        assert gateway.program.wait_exit(20) == 0
        assert [word for word in systemd.words() if word != "WATCHDOG=1"][3:] == ["STOPPING=1"]


def test_ready_is_said_once_it_listens_whatever_servers_do(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    env = {"NOTIFY_SOCKET": address}
    slow = {"a": fake("--start-delay", 60, stop_grace="100ms")}
    with listening(address) as systemd, running_gateway(tmp_path, slow, wait="/livez", env=env):
        systemd.wait_word("READY=1")


def test_the_watchdog_is_fed_while_a_gateway_takes_its_time_to_stop(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    env = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "300000"}
    servers = {"a": fake("--stubborn", stop_grace="500ms")}
    with listening(address) as systemd, running_gateway(tmp_path, servers, env=env) as gateway:
        gateway.program.send(signal.SIGTERM)
        assert gateway.program.wait_exit(20) == 0
        words = systemd.words()
        assert words[words.index("STOPPING=1") :].count("WATCHDOG=1") >= 5


def test_a_loop_that_hangs_does_not_feed_the_watchdog(tmp_path: Path) -> None:
    address = f"@onegate-test-{os.getpid()}"

    async def conversation(systemd: Systemd) -> None:
        notifier = Notifier(address, 0.06)
        feeding = asyncio.get_running_loop().create_task(notifier.feed())
        await eventually_async(lambda: len(systemd.words()) >= 3)
        fed = len(systemd.words())
        time.sleep(0.3)  # noqa: ASYNC251  this is the hanging: five times what it is fed after
        assert len(systemd.words()) == fed
        feeding.cancel()
        notifier.close()

    with listening(address) as systemd:
        run(conversation(systemd))


@pytest.mark.parametrize(
    ("environ", "watchdog_s"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
    ],
)
def test_a_watchdog_is_fed_only_if_there_is_one_and_it_is_ours(
    environ: dict[str, str], watchdog_s: float | None
) -> None:
    assert Notifier.of(environ).watchdog_s == watchdog_s


def test_nobody_to_tell_is_no_error(tmp_path: Path) -> None:
    for address in (None, str(tmp_path / "none"), "@onegate-nobody"):
        notifier = Notifier(address, None)
        notifier.ready()
        notifier.stopping()
        notifier.close()
        assert notifier.address == address
