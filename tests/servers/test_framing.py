"""However a server writes its lines, and whatever it writes between them, its calls work."""

import asyncio
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.kit.fakes import fake
from tests.kit.http import Legacy, Modern
from tests.kit.waiting import run
from tests.servers.gate import Gate, failure, gate, model_text

MANNERS: dict[str, tuple[object, ...]] = {
    "banner": ("--banner",),
    "noise": ("--noise",),
    "bom": ("--bom",),
    "crlf": ("--crlf",),
    "all_of_it": ("--bom", "--banner", "--noise", "--crlf"),
    "in_pieces": ("--chunk", 3, "--crlf"),
    "early_log": ("--early-log", "--era", "legacy"),
}
ONLY = ("--only", "echo,rich,raw,huge,endless,whoami")
TEXT = "naïve \u2028\u2029\u0085\x0b\x0c \U0001f3b2 \r\n \ufeff end"


def test_calls_work_whatever_the_manner_of_writing(tmp_path: Path) -> None:
    """B14, B17, B29."""
    servers = {name: fake(*ONLY, *flags) for name, flags in MANNERS.items()}

    async def converse() -> None:
        async with gate(tmp_path, servers) as it:
            await it.ready()
            async with it.modern() as modern, it.legacy() as legacy:
                for name, client in itertools.product(servers, (modern, legacy)):
                    answer = await client.call(f"{name}__echo", {"text": TEXT})
                    assert answer.text == TEXT, name
                    rich = (await client.call(f"{name}__rich")).result
                    assert rich["content"][0]["text"] == "naïve \u2028 \U0001f3b2", name
                    assert rich["structuredContent"]["a"] == [1.0, 1e2, None, 12345678901234567890]
            noise = it.server("noise").main.connection.link.noise  # type: ignore[union-attr]
            assert noise >= 5 * 6, "each of six stray lines, before each message"
            shown = [e for e in it.said("line.ignored") if e["server"] == "noise"]
            assert len(shown) <= 5 * 4, "a sample of each process"

    run(converse())


def test_stray_lines_are_counted_and_only_some_are_logged(tmp_path: Path) -> None:
    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*ONLY, protocol="legacy")}) as it:
            await it.ready()
            async with it.modern() as client:
                for number in range(40):
                    text = f"line \x1b[31m{number}\n[1]\n\u202e{{"
                    assert (await client.call("it__raw", {"text": text})).text == "written"
            link = it.server().main.connection.link  # type: ignore[union-attr]
            assert link.noise == 120
            shown = it.said("line.ignored")
            assert len(shown) == 5
            assert all(entry["server"] == "it" for entry in shown)
        assert [entry["lines"] for entry in it.said("lines.ignored")] == [120]

    run(converse())


def test_a_long_line_is_nothing_special(tmp_path: Path) -> None:
    """B15: asyncio's own readers end at 64 KiB."""

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*ONLY, protocol="legacy")}) as it:
            await it.ready()
            async with it.modern() as client:
                for size in (70_000, 300 * 2**10, 5 * 2**20):
                    assert len((await client.call("it__huge", {"bytes": size})).text) == size
                    assert (await client.call("it__echo", {"text": "next"})).text == "next"

    run(converse())


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_line_beyond_the_bound_fails_its_own_call_alone(tmp_path: Path, era: str) -> None:
    """B19; `limits.line`."""

    async def converse() -> None:
        limits = {"line": "64KiB"}
        server = fake(*ONLY, protocol=era)
        async with gate(tmp_path, {"it": server}, limits=limits) as it:
            await it.ready()
            async with it.modern() as client:
                pid = json.loads((await client.call("it__whoami")).text)["pid"]
                huge, small = await asyncio.gather(
                    client.call("it__huge", {"bytes": 100_000}),
                    client.call("it__echo", {"text": "beside"}),
                )
                assert failure(huge)["kind"] == "server_error"
                assert failure(huge)["bytes"] > 100_000
                assert "limits.line" in model_text(huge)
                assert small.text == "beside"
                assert json.loads((await client.call("it__whoami")).text)["pid"] == pid
            assert [entry["server"] for entry in it.said("line.dropped")] == ["it"]

    run(converse())


def test_a_line_without_an_end_costs_no_memory_and_harms_no_other_call(tmp_path: Path) -> None:
    """B19: 100 MiB that nobody can make sense of; then the answer."""

    async def converse() -> None:
        servers = {"it": fake(*ONLY, protocol="legacy"), "other": fake(*ONLY, protocol="legacy")}
        async with gate(tmp_path, servers, limits={"line": "1MiB"}) as it:
            await it.ready()
            us = psutil.Process()
            async with it.modern() as client:
                before, most = us.memory_info().rss, 0
                call = {"bytes": 100 * 2**20}
                async with asyncio.TaskGroup() as tasks:
                    endless = tasks.create_task(client.call("it__endless", call))
                    while not endless.done():
                        answer = await client.call("other__echo", {"text": "meanwhile"})
                        assert answer.text == "meanwhile"
                        most = max(most, us.memory_info().rss - before)
                assert failure(endless.result())["kind"] == "server_error"
                assert most < 20 * 2**20
                assert (await client.call("it__echo", {"text": "next"})).text == "next"

    run(converse())


BROKEN = {
    "half an emoji": rb'{"content":[{"type":"text","text":"\\ud83d \ud83c\udfb2\ud83d \\\udc00"}]}',
    "in the result": b'{"content":[{"type":"text","text":"caf\xe9"}]}',
    "overlong and surrogates": b'{"content":[{"type":"text","text":"\xc0\xaf\xed\xa0\x80"}]}',
}


MENDED = {
    "half an emoji": "\\ud83d \U0001f3b2\ufffd \\\ufffd",
    "in the result": "caf\ufffd",
    "overlong and surrogates": "\ufffd" * 5,
}


@pytest.mark.parametrize("where", BROKEN)
def test_text_that_is_not_utf_8_is_mended_rather_than_lost(tmp_path: Path, where: str) -> None:
    async def converse() -> None:
        async with gate(tmp_path, {"it": _writer(tmp_path, BROKEN[where])}) as it:
            await it.ready()
            async with it.modern() as modern, it.legacy() as legacy:
                for client in (modern, legacy):
                    assert (await client.call("it__say")).text == MENDED[where]

    run(converse())


UNREADABLE = [
    rb'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"\ud800"}}',
    rb'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"\udfff"}}',
    rb'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"\ud800"}}',
    rb'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":[{}]}}',
    rb'{"jsonrpc":"2.0","method":"notifications/progress"}',
    rb'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":{},"data":[]}}',
    rb'{"jsonrpc":"2.0","method":"\ud800"}',
    rb'{"jsonrpc":"2.0","id":"\ud800","result":{}}',
    rb'{"jsonrpc":"2.0","id":1e400,"result":{}}',
    rb'{"jsonrpc":"2.0","id":77,"error":{"code":1e999,"message":[]}}',
    rb'{"jsonrpc":"2.0","id":null,"error":"no object"}',
    rb'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1e400}}',
    rb'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":1e400}}',
    rb'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":-1e400}}',
    rb'{"jsonrpc":"2.0","method":"notifications/progress","params":[1,2]}',
    b"[" * 100_000,
    rb'{"jsonrpc":"2.0","method":"x","params":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    b"\xff\xfe\x00",
]


def test_a_line_nobody_can_read_takes_no_answer_with_it(tmp_path: Path) -> None:
    """The line and the answer come in one piece, so what trips over the one loses the other."""
    result = b'{"content":[{"type":"text","text":"here I am"}]}'

    async def converse() -> None:
        async with gate(tmp_path, {"it": _writer(tmp_path, result)}) as it:
            await it.ready()
            async with it.modern() as client:
                for line in UNREADABLE:
                    (tmp_path / "before").write_bytes(line + b"\n")
                    async with asyncio.timeout(5):
                        answer = await client.call("it__say", _meta={"progressToken": "p"})
                    assert answer.text == "here I am", line[:200]
            assert not _crashes(it)

    run(converse())


ODD = [
    rb'{"content":[{"type":"text","text":"\ud800"}]}',
    rb'{"content":[{"type":"text","text":"x"}],"_meta":7,"resultType":"\ud800"}',
    rb'{"content":[{"type":"text","text":"x"}],"resultType":[1]}',
    rb'{"content":"no list","isError":"perhaps"}',
    rb'{"_meta":{"progressToken":"\udc00"}}',
    b'{"content":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    b'{"content":[],"structuredContent":{"mean":NaN}}',
    b'{"content":[],"structuredContent":{"mean":1e400}}',
    b'{"content":[]',
    b"{}",
]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_an_odd_result_is_answered_at_once_and_crashes_nothing(tmp_path: Path, era: str) -> None:
    async def converse() -> None:
        async with gate(tmp_path, {"it": _writer(tmp_path, b"{}", era=era)}) as it:
            await it.ready()
            async with it.modern() as modern, it.legacy() as legacy:
                clients: tuple[Modern | Legacy, ...] = (modern, legacy)
                for result, client in itertools.product(ODD, clients):
                    (tmp_path / "result").write_bytes(result)
                    message = client.message("tools/call", {"name": "it__say", "arguments": {}})
                    headers = modern.routing(message) if client is modern else {}
                    async with asyncio.timeout(5), client.opened(message, headers) as stream:
                        body = await stream.response.read()
                    assert body, result[:200]
                    assert b"Internal error" not in body, result[:200]
            assert not _crashes(it)

    run(converse())


def _crashes(it: Gate) -> list[Any]:
    return [entry for entry in it.log if "crashed" in entry["event"] or "exc_info" in entry]


def _writer(
    folder: Path, result: bytes, before: bytes = b"", era: str = "legacy"
) -> dict[str, Any]:
    """A server with one tool, `say`, that answers with exactly these bytes. It writes `before`
    as a line of its own, in one piece with the answer."""
    program = folder / "writer.py"
    program.write_text(WRITER)
    (folder / "result").write_bytes(result)
    (folder / "before").write_bytes(before + b"\n")
    args = ["-S", str(program), str(folder)]
    return {"command": sys.executable, "args": args, "protocol": era}


WRITER = """
import json, pathlib, sys

folder = pathlib.Path(sys.argv[1])
tools = [{"name": "say", "inputSchema": {"type": "object"}}]
known = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}},
    "server/discover": {
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}
    },
    "tools/list": {"resultType": "complete", "tools": tools},
}
for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" not in message:
        continue
    number = str(message["id"]).encode()
    before = b""
    if message["method"] == "tools/call":
        body, before = (folder / "result").read_bytes(), (folder / "before").read_bytes()
    else:
        body = json.dumps(known.get(message["method"], {})).encode()
    answer = b'{"jsonrpc":"2.0","id":' + number + b',"result":' + body + b"}\\n"
    sys.stdout.buffer.write(before + answer)
    sys.stdout.buffer.flush()
"""
