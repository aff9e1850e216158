"""Where it listens, and how it stops."""

import asyncio
import os
import socket
import stat
from pathlib import Path

import aiohttp
import pytest
from structlog.testing import capture_logs

from gateway.config.units import Address
from gateway.edge.sockets import CannotListen, bind
from gateway.eras.sides import Answer, Posted, Reply
from tests.edge.conftest import OnLoop
from tests.edge.serving import OK, FakeEntrance, asked, connected, events, progress, serving
from tests.kit.waiting import eventually_async, run

HAS_IPV6 = socket.has_ipv6 and Path("/proc/net/if_inet6").exists()


def test_port_0_tells_which_port_it_became() -> None:
    async def main() -> None:
        [bound] = await bind([Address("127.0.0.1", 0)], "listen")
        assert bound.address.port == bound.sockets[0].getsockname()[1] != 0
        bound.close()

    run(main())


@pytest.mark.skipif(not HAS_IPV6, reason="this machine has no IPv6")
def test_ipv6_and_every_address_of_a_name_are_listened_on() -> None:
    async def main() -> None:
        async with serving(FakeEntrance(), address="[::1]:0") as served:
            reader, writer = await asyncio.open_connection("::1", served.port)
            writer.write(f"OPTIONS /mcp HTTP/1.1\r\nHost: [::1]:{served.port}\r\n\r\n".encode())
            assert (await reader.readline()).split()[1] == b"204"
            writer.close()
        both = await bind([Address("", 0)], "listen")
        assert {sock.family for sock in both[0].sockets} == {socket.AF_INET, socket.AF_INET6}
        assert len({sock.getsockname()[1] for sock in both[0].sockets}) == 1
        both[0].close()

    run(main())


def test_localhost_is_listened_on_at_one_port() -> None:
    async def main() -> None:
        async with serving(FakeEntrance(), address="localhost:0") as served:
            assert (await asked(served, Host=f"localhost:{served.port}")).status == 200

    run(main())


def test_a_taken_port_is_named_with_its_setting_in_one_line() -> None:
    async def main() -> None:
        [taken] = await bind([Address("127.0.0.1", 0)], "listen")
        taken.sockets[0].listen()
        free = Address("127.0.0.1", 0)
        with pytest.raises(CannotListen) as refused:
            await bind([free, taken.address], "admin")
        message = str(refused.value)
        assert str(taken.address) in message
        assert "`admin`" in message
        assert "another program" in message
        assert "\n" not in message
        taken.close()

    run(main())


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (Address("192.0.2.1", 0), "no such address"),
        (Address("no-such-host.invalid", 0), "cannot be resolved"),
        (Address(path="/no/such/folder/gate.sock"), "folder does not exist"),
        (Address(path="/tmp/" + "x" * 200), "too long"),
    ],
)
def test_what_cannot_be_bound_says_why(address: Address, reason: str) -> None:
    async def main() -> None:
        with pytest.raises(CannotListen, match=reason):
            await bind([address], "listen")

    run(main())


def test_a_unix_socket_serves_its_owner_alone_and_is_gone_afterwards(
    on_loop: OnLoop, tmp_path: Path
) -> None:
    path = tmp_path / "gate.sock"

    async def main() -> None:
        async with serving(FakeEntrance(), address=f"unix:{path}"):
            mode = path.stat().st_mode
            assert stat.S_ISSOCK(mode)
            assert stat.S_IMODE(mode) == 0o600
            connector = aiohttp.UnixConnector(str(path))
            async with (
                aiohttp.ClientSession(connector=connector) as session,
                session.post("http://localhost/mcp", json={}) as answer,
            ):
                assert answer.status == 200
        assert not path.exists()

    on_loop(main())


def test_a_socket_file_nobody_listens_on_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "gate.sock"
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))

    async def main() -> None:
        async with serving(FakeEntrance(), address=f"unix:{path}"):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b"OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await reader.readline()).split()[1] == b"204"
            writer.close()

    run(main())


def test_a_socket_in_use_and_a_file_that_is_none_are_left_alone(tmp_path: Path) -> None:
    used, file = tmp_path / "used.sock", tmp_path / "notes.txt"
    file.write_text("precious")

    async def main() -> None:
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(used))
            other.listen()
            with pytest.raises(CannotListen, match="another program"):
                await bind([Address(path=str(used))], "listen")
            with pytest.raises(CannotListen, match="no socket"):
                await bind([Address(path=str(file))], "listen")
        assert used.exists()
        assert file.read_text() == "precious"

    run(main())


def test_a_socket_file_that_is_somebody_elses_by_now_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "gate.sock"

    async def main() -> None:
        [first] = await bind([Address(path=str(path))], "listen")
        os.unlink(path)
        [second] = await bind([Address(path=str(path))], "listen")
        first.close()
        assert path.exists()
        second.close()
        assert not path.exists()

    run(main())


class Paused:
    """An entrance's `post` that waits to be let go."""

    def __init__(self, *, says: int = 0) -> None:
        self.says = says
        self.started, self.finish = asyncio.Event(), asyncio.Event()

    async def __call__(self, posted: Posted, reply: Reply) -> Answer:
        for number in range(self.says):
            reply.push(progress(number))
        self.started.set()
        await self.finish.wait()
        return OK


def test_draining_lets_what_can_finish_finish() -> None:
    async def main() -> None:
        work = Paused()
        async with serving(FakeEntrance(work)) as served, connected(served) as client:
            client.post()
            await work.started.wait()
            async with asyncio.TaskGroup() as tasks:
                drained = tasks.create_task(served.listener.drain(5.0))
                await asyncio.sleep(0)
                with pytest.raises(ConnectionRefusedError):
                    await asyncio.open_connection("127.0.0.1", served.port)
                work.finish.set()
                answer = await client.response()
                assert answer.status == 200
                assert await client.wait_closed_by_server() == b""
                await drained

    run(main())


def test_whoever_is_idle_is_let_go_while_others_finish(on_loop: OnLoop) -> None:
    async def main() -> None:
        work = Paused()
        async with (
            serving(FakeEntrance(work)) as served,
            connected(served) as busy,
            connected(served) as idle,
        ):
            idle.request("OPTIONS", "/mcp")
            await idle.response()
            busy.post()
            await work.started.wait()
            async with asyncio.TaskGroup() as tasks:
                drained = tasks.create_task(served.listener.drain(5.0))
                assert await idle.wait_closed_by_server() == b""
                assert not drained.done()
                work.finish.set()
                assert (await busy.response()).status == 200

    on_loop(main())


def test_draining_closes_idle_connections_and_held_streams_at_once(on_loop: OnLoop) -> None:
    async def main() -> None:
        async with (
            serving(FakeEntrance()) as served,
            connected(served) as idle,
            connected(served) as holding,
        ):
            idle.post()
            await idle.response()
            holding.request("GET", "/mcp")
            await holding.head()
            async with asyncio.timeout(2.0):
                await served.listener.drain(60.0)
            assert await idle.wait_closed_by_server() == b""
            assert (await holding.wait_closed_by_server()).endswith(b"0\r\n\r\n")

    on_loop(main())


@pytest.mark.parametrize("says", [0, 1], ids=["silent", "streaming"])
def test_what_does_not_finish_is_cut_and_its_client_told(says: int) -> None:
    async def main() -> None:
        work = Paused(says=says)
        async with serving(FakeEntrance(work)) as served, connected(served) as client:
            client.post()
            await work.started.wait()
            loop = asyncio.get_running_loop()
            before = loop.time()
            with capture_logs() as logs:
                await served.listener.drain(0.1)
            assert loop.time() - before < 0.1 + 3 * 0.5 + 0.4
            assert [line["event"] for line in logs] == ["requests.cut"]
            answer = await client.response()
            if says:
                assert "stopping" in events(answer.body)[-1]["error"]["message"]
            else:
                assert answer.status == 503
                assert "stopping" in answer.error
                assert answer.headers["connection"] == "close"
            assert served.listener.connections == 0

    run(main())


def test_a_call_whose_client_has_gone_does_not_hold_up_the_end() -> None:
    async def main() -> None:
        work = Paused()
        async with serving(FakeEntrance(work)) as served:
            async with connected(served) as client:
                client.post()
                await work.started.wait()
                client.vanish()
            async with asyncio.timeout(3.0):
                await served.listener.drain(0.05)
            assert not served.pulse.open

    run(main())


def test_a_reader_that_does_not_read_does_not_hold_up_the_end(on_loop: OnLoop) -> None:
    async def main() -> None:
        async def work(posted: Posted, reply: Reply) -> Answer:
            reply.push(progress(1))
            return Answer(200, b"x" * 50_000_000)

        async with serving(FakeEntrance(work)) as served, connected(served) as client:
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            client.post()
            await eventually_async(lambda: bool(served.pulse.open))
            async with asyncio.timeout(5.0):
                await served.listener.drain(0.1)
            assert served.listener.connections == 0

    on_loop(main())


def test_dead_peers_are_noticed_by_the_kernel() -> None:
    """Case B69: a half-open connection looks alive for ever otherwise."""

    async def main() -> None:
        [bound] = await bind([Address("127.0.0.1", 0)], "listen")
        [sock] = bound.sockets
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 90_000
        bound.close()

    run(main())
