"""What goes over the two pipes, and when it ends: a message a line, and nothing but messages."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.kit.gateway import Gateway
from tests.kit.http import Envelope
from tests.kit.processes import ROOT
from tests.kit.waiting import eventually
from tests.stdio.talking import Speaker, seconds, sessions, speaking

AN_END_S = 3.0
"""A second is the promise on a machine that does nothing else."""
NOBODY = "http://127.0.0.1:1/mcp"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.mark.parametrize(
    ("line", "code", "id_"),
    [
        (b"nonsense", -32700, None),
        (b'{"jsonrpc":"2.0","id":7}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b"[]", -32600, None),
        (b'"text"', -32600, None),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[1]}', -32600, 3),
        (b'\xff\xfe{"a":1}', -32700, None),
    ],
)
def test_a_malformed_line_is_answered_and_the_next_one_served(
    client: Speaker, line: bytes, code: int, id_: object
) -> None:
    client.write(line + b"\n")
    refused = client.hear(lambda m: "error" in m)
    assert (refused["error"]["code"], refused["id"]) == (code, id_)
    client.initialize()


def test_lines_may_end_in_crlf_be_blank_and_come_in_pieces(client: Speaker) -> None:
    client.initialize()
    message = json.dumps(PING | {"id": "x"}).encode()
    client.write(b"\r\n  \n" + message[:10])
    client.write(message[10:] + b"\r\n")
    assert client.answer("x")["result"] == {}


@pytest.mark.parametrize("id_first", [True, False])
def test_a_message_beyond_the_bound_is_refused_by_its_id(client: Speaker, id_first: bool) -> None:
    client.initialize()
    call = {"method": "tools/call", "params": {"name": "old__echo", "pad": "x" * (17 * 2**20)}}
    id_ = {"id": "big"}
    client.send({"jsonrpc": "2.0", **(id_ | call if id_first else call | id_)})
    assert client.answer("big")["error"]["code"] == -32600
    assert "result" in client.request("ping")


def test_a_message_beyond_the_gateways_bound_is_refused_in_its_words(client: Speaker) -> None:
    client.initialize()
    answer = client.request("tools/call", {"name": "old__echo", "pad": "x" * (5 * 2**20)})
    assert "limits.body" in str(answer)
    assert "result" in client.request("ping")


def test_a_large_answer_comes_whole_on_one_line(client: Speaker) -> None:
    client.initialize()
    size = 4 * 2**20
    assert len(client.call("old__huge", {"bytes": size})["content"][0]["text"]) == size


def test_a_client_that_does_not_read_is_waited_for(client: Speaker) -> None:
    """Its answers wait; what it says is heard all the same; when it reads it gets them all."""
    client.initialize()
    client.stop_reading()
    ids = [
        client.begin("tools/call", {"name": "old__huge", "arguments": {"bytes": 2**20}})
        for _ in range(8)
    ]
    for _ in range(200):
        client.notify("notifications/roots/list_changed")
    last = client.begin("ping")
    client.go_on_reading()
    for id_ in [*ids, last]:
        assert "result" in client.answer(id_)


def test_too_many_requests_at_once_are_refused(client: Speaker) -> None:
    client.initialize()
    hang = {"name": "old__hang", "arguments": {}}
    line = json.dumps({"jsonrpc": "2.0", "id": "N", "method": "tools/call", "params": hang})
    client.write(b"".join(line.replace('"N"', str(n)).encode() + b"\n" for n in range(1, 1101)))
    assert client.hear(lambda m: "error" in m)["error"]["code"] == -31001


def test_it_ends_with_stdin(gateway: Gateway, tmp_path: Path) -> None:
    before = sessions(gateway)
    with speaking(tmp_path, "--url", gateway.url) as client:
        client.initialize()
        assert sessions(gateway) != before
        client.begin_modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        client.notice("notifications/subscriptions/acknowledged")
        client.close()
        assert seconds(client.wait_exit) < AN_END_S
        assert client.process.returncode == 0
        eventually(lambda: sessions(gateway) == before)


def test_it_ends_when_nobody_reads_any_more(gateway: Gateway, tmp_path: Path) -> None:
    """Even though it has nothing to say."""
    reading, writing = os.pipe()
    argv = [sys.executable, "-m", "gateway", "stdio", "--url", gateway.url]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=writing, cwd=ROOT) as process:
        os.close(writing)
        assert process.stdin is not None
        process.stdin.write(json.dumps(PING).encode() + b"\n")
        process.stdin.flush()
        assert os.read(reading, 1000)
        os.close(reading)
        assert seconds(lambda: process.wait(20)) < AN_END_S


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_told(gateway: Gateway, tmp_path: Path, number: signal.Signals) -> None:
    with speaking(tmp_path, "--url", gateway.url) as client:
        client.initialize()
        client.process.send_signal(number)
        assert seconds(client.wait_exit) < AN_END_S
        assert client.process.returncode == 0


def test_a_script_may_write_its_questions_close_the_pipe_and_read(gateway: Gateway) -> None:
    lines = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}},
        },
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "old__echo", "arguments": {"text": "hi"}},
        },
    ]
    answers = outcome(gateway.url, "\n".join(map(json.dumps, lines)).encode())
    assert {each["id"] for each in answers} == {1, 2}


def test_stdin_and_stdout_may_be_files(gateway: Gateway, tmp_path: Path) -> None:
    questions, answers = tmp_path / "in", tmp_path / "out"
    questions.write_text(json.dumps(PING) + "\n")
    with questions.open() as stdin, answers.open("wb") as stdout:
        argv = [sys.executable, "-m", "gateway", "stdio", "--url", NOBODY]
        done = subprocess.run(argv, stdin=stdin, stdout=stdout, cwd=ROOT, timeout=30, check=False)
    assert done.returncode == 0
    assert [json.loads(each)["id"] for each in answers.read_text().splitlines()] == [1]


def test_a_log_that_nobody_reads_holds_nothing_up(tmp_path: Path) -> None:
    """Clients take stderr as a pipe, and some never read it."""
    params = {"name": "any__tool", "arguments": {}, "_meta": Envelope().meta()}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "stdio", "--url", NOBODY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=writing,
        cwd=ROOT,
        env={**os.environ, "ONEGATE_STATE": str(tmp_path)},
    )
    try:
        said, _ = process.communicate(json.dumps(call).encode() + b"\n", timeout=20)
    finally:
        process.kill()
        os.close(reading)
        os.close(writing)
    assert json.loads(said)["result"]["isError"] is True


def test_what_is_printed_by_mistake_goes_to_stderr(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, sys\n"
        "from gateway.cli.ends import StandardEnds\n"
        "async def main():\n"
        "    ends, over = StandardEnds(), asyncio.Event()\n"
        "    out = ends.open(lambda data: None, over.set, over.set)\n"
        "    print('stray', flush=True)\n"
        "    os.system('echo child')\n"
        "    out.write(b'message\\n')\n"
        "    await over.wait()\n"
        "    await ends.close()\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=b"",
        capture_output=True,
        cwd=ROOT,
        timeout=30,
        check=False,
    )
    assert done.stdout == b"message\n"
    assert done.stderr.split() == [b"stray", b"child"]


def test_the_way_to_a_gateway_loads_nothing_heavy() -> None:
    script = (
        "import sys\nfrom gateway.cli.main import main\n"
        f"try: main(['stdio', '--url', '{NOBODY}'])\n"
        "except SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(PING).encode(),
        capture_output=True,
        cwd=ROOT,
        timeout=30,
        check=False,
    )
    loaded = set(done.stderr.decode().split())
    assert "gateway.edge.stdio.bridge" in loaded
    heavy = loaded & {"rich", "aiohttp", "pydantic", "structlog", "yaml", "prometheus_client"}
    assert not heavy


def outcome(url: str, questions: bytes) -> list[dict[str, object]]:
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "stdio", "--url", url],
        input=questions,
        capture_output=True,
        cwd=ROOT,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
