"""A server as a child process: what comes out of it, what goes in, and how it ends."""

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from gateway.downstream.environment import CannotStart, Launch
from gateway.downstream.transports.stdio import (
    HIGH_WATER_BYTES,
    WAITING_BYTES,
    StdioTransport,
)
from gateway.downstream.transports.transport import NotReading
from tests.kit.processes import is_alive
from tests.kit.waiting import eventually_async
from tests.processes.driving import LOOPS, Heard, gone_in_the_end, launch, on, started

MIB = 2**20

both_loops = pytest.mark.parametrize("loop", LOOPS)


@both_loops
def test_lines_go_in_and_come_out_in_order(loop: str) -> None:
    async def conversation() -> None:
        child, heard = await started("echo")
        await heard.wait_line()
        for number in range(5000):
            child.send(b'{"id":%d}' % number)
        await heard.wait_line(5001)
        assert heard.lines[1:] == [b'{"id":%d}' % number for number in range(5000)]
        await child.stop(5)

    on(loop, conversation())


@both_loops
def test_lines_are_whole_however_they_are_written(loop: str) -> None:
    text = '{"a":"é\u2028\u2029\u0085"}'.encode()
    stream = b"\xef\xbb\xbf" + text + b"\r\n\r\n  \n" + b"second\n" + b"no newline"

    async def conversation() -> None:
        child, heard = await started("write", *(f"{byte:02x}" for byte in stream))
        await child.wait_closed()
        assert heard.lines == [text, b"second", b"no newline"]
        await child.stop(1)

    on(loop, conversation())


@both_loops
def test_a_line_of_5_mib_is_nothing_special(loop: str) -> None:
    async def conversation() -> None:
        child, heard = await started("large", str(5 * MIB))
        assert await heard.wait_line() == b"x" * (5 * MIB)
        assert await heard.wait_line(2) == b"after"
        await child.stop(5)

    on(loop, conversation())


@both_loops
def test_a_line_beyond_the_bound_is_dropped_in_little_memory_and_the_stream_goes_on(
    loop: str,
) -> None:
    async def conversation() -> None:
        process = psutil.Process()
        before = peak = process.memory_info().rss
        child, heard = await started("large", str(40 * MIB), line_bytes=MIB)
        while not heard.lines:
            await asyncio.sleep(0)
            peak = max(peak, process.memory_info().rss)
        assert heard.order == ["oversized", "line"]
        ((size, head, tail),) = heard.dropped
        assert (size, head, tail) == (40 * MIB, b"x" * 512, b"x" * 512)
        assert heard.lines == [b"after"]
        assert peak - before < 8 * MIB
        await child.stop(5)

    on(loop, conversation())


def test_a_large_message_and_small_ones_do_not_hold_each_other_up() -> None:
    """Case B20: 20 MiB from one server while another is asked small things."""

    async def conversation() -> None:
        small, answers = await started("echo")
        await answers.wait_line()
        large, flood = await started("large", str(20 * MIB), line_bytes=64 * MIB)
        worst = 0.0
        while not flood.lines:
            at = time.monotonic()
            seen = len(answers.lines)
            small.send(b"{}")
            await answers.wait_line(seen + 1)
            worst = max(worst, time.monotonic() - at)
        assert worst < 0.5
        await asyncio.gather(small.stop(5), large.stop(5))

    on("asyncio", conversation())


@both_loops
def test_what_is_in_the_pipe_when_a_process_exits_is_heard_before_its_end(loop: str) -> None:
    async def conversation() -> None:
        child, heard = await started("leave", "3", "missing API key", "\x1b[31mgiving up\x1b[0m")
        departure = await child.wait_closed()
        assert heard.order == ["line"] * 21 + ["closed"]
        assert heard.lines[-1] == b"last answer"
        assert heard.departures == [departure]
        assert (departure.code, departure.signal) == (3, None)
        assert departure.reason == "exited with code 3"
        assert departure.stderr == ("missing API key", "giving up")
        await child.stop(1)
        assert heard.order.count("closed") == 1

    on(loop, conversation())


@both_loops
def test_a_killed_process_says_by_which_signal(loop: str) -> None:
    async def conversation() -> None:
        child, _ = await started("die", "SIGSEGV")
        departure = await child.wait_closed()
        assert (departure.code, departure.signal) == (None, "SIGSEGV")
        assert departure.reason == "was killed by SIGSEGV"
        await child.stop(1)

    on(loop, conversation())


@both_loops
def test_an_exit_is_noticed_though_a_grandchild_keeps_the_pipes_and_writes_on(loop: str) -> None:
    async def conversation() -> None:
        child, heard = await started("holds_stdout")
        departure = await child.wait_closed()
        with gone_in_the_end(*(await heard.wait_pids())):
            assert departure.reason == "exited with code 7"
            said = len(heard.lines)
            await child.stop(1)
            assert len(heard.lines) == said

    on(loop, conversation())


@both_loops
@pytest.mark.parametrize(("fd", "reason"), [("1", "closed its stdout"), ("0", "closed its stdin")])
def test_a_process_that_closes_a_pipe_but_lives_has_departed_and_costs_no_cpu(
    loop: str, fd: str, reason: str
) -> None:
    """Case B11."""

    async def conversation() -> None:
        child, heard = await started("closes", fd)
        (pid,) = await heard.wait_pids()
        child.send(b"now")
        while not heard.departures:
            with suppress(NotReading):
                child.send(b"a closed stdin shows only to a writer")
            await asyncio.sleep(0.01)
        spent = time.process_time()
        departure = await child.wait_closed()
        assert (departure.code, departure.signal, departure.reason) == (None, None, reason)
        assert is_alive(pid)
        with pytest.raises(NotReading, match=reason):
            child.send(b"{}")
        await child.stop(0.2)
        assert time.process_time() - spent < 0.2
        assert not is_alive(pid)

    on(loop, conversation())


@both_loops
def test_a_process_that_does_not_read_is_bounded_and_harms_no_other(loop: str) -> None:
    async def conversation() -> None:
        child, heard = await started("deaf")
        other, answers = await started("echo")
        await heard.wait_line()
        message = b"x" * MIB
        with pytest.raises(NotReading, match="wait to be read"):
            for _ in range(20):
                child.send(message)
        assert not child.writable
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await child.wait_writable()
        other.send(b"still here")
        assert await answers.wait_line(2) == b"still here"
        await asyncio.gather(child.stop(0.1), other.stop(5))
        assert heard.departures[0].reason == "was stopped"
        await child.wait_writable()  # nobody waits for a process that has gone

    on(loop, conversation())


@both_loops
def test_what_had_to_wait_arrives_whole_once_the_process_reads(loop: str) -> None:
    async def conversation() -> None:
        child, heard = await started("hard_of_hearing")
        (pid,) = await heard.wait_pids()
        message, sent = b"x" * 300_000, 0
        while child.writable:
            child.send(message)
            sent += len(message) + 1
        assert HIGH_WATER_BYTES < sent < WAITING_BYTES
        os.kill(pid, signal.SIGUSR1)
        await child.wait_writable()
        child.send(b"end")
        assert await heard.wait_line(2) == b"read %d" % (sent + 4)
        await child.stop(5)

    on(loop, conversation())


@both_loops
def test_a_flood_on_stderr_blocks_nobody_and_leaves_a_short_tail(loop: str) -> None:
    async def conversation() -> None:
        child, heard = await started("shouts", "200000")
        assert await heard.wait_line() == b"answer"
        await eventually_async(lambda: child.stderr_tail(1) == ("the end",))
        tail = child.stderr_tail(1000)
        assert len(tail) <= 201
        assert tail[0] == "flood " + "y" * 80
        await child.stop(5)

    on(loop, conversation())


def test_a_child_sees_what_it_was_given_and_leads_its_own_session(tmp_path: Path) -> None:
    async def conversation() -> list[str]:
        child, heard = await started(
            "shows", env={"A": "1", "B": "x=y"}, env_over={"A": "2"}, cwd=tmp_path
        )
        await child.wait_closed()
        await child.stop(1)
        return [line.decode() for line in heard.lines if not line.startswith((b"LC_", b"__"))]

    said = on("asyncio", conversation())
    assert said[:2] == ["A=2", "B=x=y"]
    assert f"cwd {tmp_path.resolve()}" in said
    assert f"executable {sys.executable}" in said
    assert "leader True" in said
    if Path("/proc").is_dir():
        assert "fds [0, 1, 2, 3]" in said  # 3 is the folder being listed


@both_loops
def test_200_starts_and_stops_leave_no_descriptor_no_zombie_and_no_process(loop: str) -> None:
    async def conversation() -> None:
        us = psutil.Process()

        async def once() -> None:
            child = await StdioTransport.start(Launch("it", ("/bin/cat",)), Heard())
            child.send(b"{}")
            await child.stop(5)

        await once()
        before, others = us.num_fds(), us.children()  # gateways that other tests share
        for _ in range(20):
            await asyncio.gather(*(once() for _ in range(10)))
        assert us.num_fds() == before
        assert us.children() == others

    on(loop, conversation(), 50)


@pytest.mark.parametrize("without", ["pidfd", "F_SETPIPE_SZ"])
def test_systems_with_less_to_offer_do_as_well(
    without: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if without == "pidfd":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    else:
        monkeypatch.delattr("fcntl.F_SETPIPE_SZ", raising=False)

    async def conversation() -> None:
        child, heard = await started("echo")
        await heard.wait_line()
        child.send(b"hello")
        assert await heard.wait_line(2) == b"hello"
        await child.stop(5)
        assert heard.departures[0].code == 0
        crashed, _ = await started("die", "SIGKILL")
        assert (await crashed.wait_closed()).signal == "SIGKILL"
        await crashed.stop(1)

    on("asyncio", conversation())


def script(folder: Path, content: str, mode: int = 0o755) -> Path:
    path = folder / "server"
    path.write_text(content)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        ("#!/no/such/interpreter\n", 0o755, "interpreter its first line names"),
        ("no first line", 0o755, "neither a program"),
        ("#!/bin/sh\n", 0o644, "not executable"),
    ],
)
def test_what_cannot_be_executed_says_why(
    tmp_path: Path, content: str, mode: int, words: str
) -> None:
    command = script(tmp_path, content, mode)
    before = psutil.Process().num_fds()

    async def conversation() -> CannotStart:
        with pytest.raises(CannotStart, match=words) as caught:
            await StdioTransport.start(Launch("it", (str(command),)), Heard())
        return caught.value

    error = on("asyncio", conversation())
    assert error.permanent
    assert str(command) in error.message
    assert psutil.Process().num_fds() == before


def test_arguments_never_meet_a_shell(tmp_path: Path) -> None:
    async def conversation() -> None:
        hostile = f"$(touch {tmp_path}/owned); `touch {tmp_path}/owned` && \n'\""
        child, heard = await started("write", "6f6b0a", env={"X": hostile})
        assert await heard.wait_line() == b"ok"
        await child.stop(1)
        echo = Launch("it", ("echo", hostile), env={"PATH": os.defpath})
        child = await StdioTransport.start(echo, heard)
        await child.wait_closed()
        assert b"\n".join(heard.lines[1:]).decode() == hostile
        await child.stop(1)

    on("asyncio", conversation())
    assert list(tmp_path.iterdir()) == []


def test_a_launch_does_not_print_its_secrets() -> None:
    shown = repr(launch("echo", "--token", "s3cret!", env={"K": "s3cret!"}))
    assert "s3cret!" not in shown
