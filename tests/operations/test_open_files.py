"""More clients than files may be open: they are sent away, and nothing else suffers."""

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from gateway.edge.crowd import spare_of
from tests.kit.fakes import fake
from tests.kit.gateway import Gateway
from tests.kit.http import Legacy
from tests.kit.waiting import eventually, run
from tests.operations.starving import Want, logged, metric, open_files, starving_gateway

NOFILE = resource.RLIMIT_NOFILE
SERVERS = {"a": fake("--only", "echo,sleep,crash,whoami", protocol="modern", required=True)}


def only(soft: int, hard: int) -> Want:
    return Want(limits={NOFILE: (soft, hard)})


@contextmanager
def crowd(gateway: Gateway, size: int) -> Iterator[list[socket.socket]]:
    """So many idle connections."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection(gateway.host_port, timeout=10))
            for _ in range(size)
        ]


@pytest.mark.parametrize("limit", [64, 256])
def test_a_crowd_is_sent_away_and_the_rest_goes_on(tmp_path: Path, limit: int) -> None:
    async def conversation(gateway: Gateway) -> None:
        async with Legacy.to(gateway.url) as there:
            await there.initialize()
            with crowd(gateway, limit) as connections:
                told = connections[-1].recv(1024)
                assert told.startswith(b"HTTP/1.1 503 ")
                assert b"Retry-After: 5\r\n" in told
                assert b"too many open connections" in told
                assert open_files(gateway) <= limit - spare_of(limit) + 4

                # Who is there is served, a server can start anew, the operator gets in.
                assert (await there.call("a__echo", {"text": "still"})).text == "still"
                await there.call("a__crash")
                eventually(lambda: gateway.status("/readyz") == 200, 20)
                assert (await there.call("a__echo", {"text": "anew"})).text == "anew"
                assert metric(gateway, "onegate_connections_refused_total") >= 1

    with starving_gateway(tmp_path, SERVERS, only(limit, limit)) as gateway:
        before = open_files(gateway)
        run(conversation(gateway))

        eventually(lambda: open_files(gateway) <= before + 2, what="files to be closed")
        assert gateway.tool_names()
        (told,) = logged(gateway, "connections.refused")
        assert told["open_files"] == limit
        assert "ulimit" in told["remedy"]
        assert not logged(gateway, "library.spoke")
        assert metric(gateway, "onegate_records_dropped_total") == 0


def test_it_takes_all_it_may_have_and_servers_get_what_it_was_given(tmp_path: Path) -> None:
    with starving_gateway(tmp_path, SERVERS, only(128, 4096)) as gateway:
        gateway.wait_tools("a__whoami")
        servers = [pid for pid in gateway.server_pids() if pid != gateway.pid]

        assert resource.prlimit(gateway.pid, NOFILE) == (4096, 4096)
        argv = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in servers}
        (server,) = (pid for pid, words in argv.items() if b"fake.py" in words)
        assert resource.prlimit(server, NOFILE) == (128, 4096)

        with crowd(gateway, 300):
            assert gateway.tool_names()
        assert not logged(gateway, "connections.refused")


def test_files_that_run_out_all_the_same_are_survived(tmp_path: Path) -> None:
    """The limit is lowered under it: then accepting really fails."""

    async def conversation(gateway: Gateway) -> None:
        async with Legacy.to(gateway.url) as there:
            await there.initialize()
            resource.prlimit(gateway.pid, NOFILE, (open_files(gateway), 4096))
            with crowd(gateway, 20):
                assert (await there.call("a__echo", {"text": "still"})).text == "still"
            assert (await there.call("a__echo", {"text": "still"})).text == "still"
            resource.prlimit(gateway.pid, NOFILE, (4096, 4096))

    with starving_gateway(tmp_path, SERVERS, only(4096, 4096)) as gateway:
        run(conversation(gateway))
        assert gateway.tool_names()
        assert gateway.status("/readyz") == 200
        assert len(gateway.text.splitlines()) < 100
