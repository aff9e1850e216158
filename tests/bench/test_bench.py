"""The bench works, end to end. Nothing here asks how fast anything is."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench import asking, echo
from tests.bench.__main__ import Settings, measure
from tests.bench.answers import Answer, Answers
from tests.bench.asking import Asker, Session, Target, Work, fault
from tests.bench.load import Window, load
from tests.bench.machine import Machine
from tests.bench.peers import FLOOR, GATEWAY
from tests.bench.report import Report
from tests.bench.rows import ROWS
from tests.bench.workloads import WORKLOADS
from tests.kit.waiting import run

QUIET = Machine(2, 0.0, 0.0, 0.0, 10.0)
TARGET = Target("http://127.0.0.1:9/mcp")
WIRE = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nMcp-Session-Id: aB\r\n\r\nhello"
    b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n4;x\r\ndefg\r\n0\r\n\r\n"
    b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
)


@pytest.mark.timeout(600)
def test_a_tiny_bench_fills_every_row_and_no_answer_is_wrong(tmp_path: Path) -> None:
    """Gateway and floor alone: what the peers need is not installed for it."""
    settings = Settings(list(WORKLOADS), [GATEWAY, FLOOR], 1, 0.3, idle_sessions=20)

    report = measure(settings)

    medians = {row["work"]: row["medians"] for row in rows(report.write(tmp_path))}
    assert list(medians) == [row.work for row in ROWS]
    empty = [work for work, each in medians.items() if each[GATEWAY.name] is None]
    assert not empty
    assert medians["wrong, mixed-up, failed answers"][GATEWAY.name] == 0
    assert [each["faults"] for each in report.details if each["failed"]] == []
    assert all(row.work in report.table() for row in ROWS)


def rows(file: Path) -> list[asking.Json]:
    found: list[asking.Json] = json.loads(file.read_text())["rows"]
    return found


# -- what the figures rest on ------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_answers_are_the_same_however_the_bytes_are_cut(size: int) -> None:
    reader, found = Answers(), list[Answer]()
    for at in range(0, len(WIRE), size):
        found += reader.feed(WIRE[at : at + size])
    assert [(each.status, each.body) for each in found] == [
        (200, b"hello"),
        (202, b""),
        (200, b"abcdefg"),
        (204, b""),
    ]
    assert found[0].header("mcp-session-id") == "aB"
    assert [each.is_last for each in found] == [False, False, False, True]


def test_ids_collide_between_sessions_and_tokens_never_do() -> None:
    tokens = [0]
    one, other = (Asker(TARGET, asking.echo("echo"), Session(), tokens).next() for _ in range(2))
    assert one.number == other.number
    assert one.token != other.token
    assert one.token in one.raw


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"id":10000001,"text":"t0000001"}', None),
        (b'{"id":10000001,"text":"t0000002"}', "ANOTHER CALL'S ANSWER"),
        (b'{"id":10000001,"text":"sorry"}', "no echo"),
        (b'{"id":10000002,"text":"t0000001"}', "not the answer"),
    ],
)
def test_an_answer_to_somebody_else_is_told_from_a_right_one(
    body: bytes, words: str | None
) -> None:
    work = asking.echo("echo")
    asked = Asker(TARGET, work, Session(), [0]).next()
    found = fault(work, asked, 200, body)
    assert found is None if words is None else words in (found or "")
    assert "HTTP 500" in (fault(work, asked, 500, body) or "")


def test_answers_that_are_too_short_or_lists_too_small_are_faults() -> None:
    blob, listing = asking.blob("blob", 1), asking.listing(2)
    for work, short, whole in (
        (blob, b"10000001", b"10000001" + b"x" * 1024),
        (listing, b'10000001 "inputSchema"', b'10000001 "inputSchema" "inputSchema"'),
    ):
        asked = Asker(TARGET, work, Session(), [0]).next()
        assert fault(work, asked, 200, short)
        assert fault(work, asked, 200, whole) is None


@pytest.mark.parametrize("in_flight", [1, 4])
def test_a_server_that_drops_connections_is_counted_as_failing(in_flight: int) -> None:
    """In a loop of its own: the load client brings one along."""

    async def drop(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def conversation() -> int:
        async with listening(drop) as target:
            sessions, window = [Session() for _ in range(in_flight)], Window(0.05, 0.0)
            work = asking.echo("echo")
            found = await asyncio.to_thread(load, target, work, sessions, in_flight, window)
            assert found.calls == 0
            return found.failed

    assert run(conversation()) > 0


@asynccontextmanager
async def listening(handle: object) -> AsyncIterator[Target]:
    server = await asyncio.start_server(handle, "127.0.0.1", 0)  # type: ignore[arg-type] # a handler
    async with server:
        host, port = server.sockets[0].getsockname()[:2]
        yield replace(TARGET, url=f"http://{host}:{port}/mcp")


@pytest.mark.parametrize("language", ["c", "python"])
def test_both_echo_servers_say_the_same(language: str) -> None:
    command = echo.command() if language == "c" else [sys.executable, "-S", str(echo.FALLBACK)]

    async def conversation() -> list[dict[str, object]]:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=echo.environment("s0", 4),
        )
        out, _ = await process.communicate("".join(f"{line}\n" for line in REQUESTS).encode())
        return [json.loads(line) for line in out.splitlines()]

    async def asked() -> None:
        listed, said, blob, unknown = await conversation()
        names = [each["name"] for each in result(listed)["tools"]]
        assert names == ["echo", "sleep", "blob", "tool_003"]
        assert result(said)["content"] == [{"type": "text", "text": 'a "b"'}]
        assert len(result(blob)["content"][0]["text"]) == 2048
        assert unknown["error"] == {"code": -32601, "message": "Method not found"}

    run(asked())


def result(answer: Mapping[str, object]) -> asking.Json:
    found = answer["result"]
    assert isinstance(found, dict)
    return found


def request(number: int, work: Work | str) -> str:
    if isinstance(work, str):
        return TARGET.message(work, None, number).decode()
    return TARGET.message(work.method, work.params, number).decode()


REQUESTS = [
    request(1, asking.listing(4)),
    request(2, Work("tools/call", {"name": "echo", "arguments": {"text": 'a "b"'}})),
    request(3, asking.blob("blob", 2)),
    request(4, "no/such"),
]


# -- the verdict -------------------------------------------------------------------------------


def report(*workloads: str, **figures: dict[str, float]) -> Report:
    found = {name.replace("__", "."): each for name, each in figures.items()}
    return Report(QUIET, [found, found], workloads)


@pytest.mark.parametrize(
    ("ours", "hub", "holds"),
    [(0.14, 1.0, "yes"), (0.16, 1.0, "no"), (0.14, 0.2, "no"), (0.14, None, "?")],
)
def test_a_row_holds_if_all_of_its_bounds_do(ours: float, hub: float | None, holds: str) -> None:
    figures = {"gateway": ours, "forwarder": 0.1} | ({} if hub is None else {"mcp-hub": hub})
    found = report("one-at-a-time", one__p50_ms=figures)
    assert found.holds(next(row for row in ROWS if row.figure == "one.p50_ms")) == holds


def test_what_is_bounded_by_difference_or_alone_is_shown_so() -> None:
    found = report(
        "start",
        "mix-ups",
        start__quick_s={"gateway": 0.6, "forwarder": 0.3},
        start__slow_s={"gateway": 1.2},
        failed={"gateway": 1},
    )
    assert found.failing() == [
        "exec to full list, 10 x 50 quick",
        "wrong, mixed-up, failed answers",
    ]
    lines = found.table().splitlines()
    assert "| +0.30 s " in next(line for line in lines if "quick" in line)
    assert "| 2 " in lines[-1]
    assert len({len(line) for line in lines}) == 1


def test_one_wrong_answer_in_one_of_the_repeats_is_one_too_many() -> None:
    repeats = [{"failed": {"gateway": count}} for count in (0.0, 1.0, 0.0)]
    assert Report(QUIET, repeats, ["mix-ups"]).failing() == ["wrong, mixed-up, failed answers"]


def test_what_could_not_be_measured_of_ours_does_not_hold() -> None:
    assert Report(QUIET, [{}], ["neighbours"]).failing() == ["p99 beside 16 slow calls, to alone"]


def test_a_busy_machine_is_told_from_a_quiet_one() -> None:
    assert QUIET.is_quiet
    assert not replace(QUIET, load_1m=2.0).is_quiet
    assert not replace(QUIET, steal=0.05).is_quiet
    assert not replace(QUIET, busy=0.5).is_quiet
    assert "load average 0.00" in QUIET.words()
