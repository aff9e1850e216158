"""The fake server does what its table says; tests that lean on it lean on this."""

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.fakes import fake_argv
from tests.kit.processes import is_alive, kill_tree
from tests.kit.waiting import eventually

PREFIX = "io.modelcontextprotocol/"
META = {f"{PREFIX}protocolVersion": "2026-07-28", f"{PREFIX}clientCapabilities": {}}
Message = dict[str, Any]


class Pipe:
    """The other end of the fake server's stdin and stdout."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._ids = 0

    def send(self, method: str, params: Message | None = None, *, notice: bool = False) -> int:
        self._ids += 1
        number = {} if notice else {"id": self._ids}
        message = {"jsonrpc": "2.0", **number, "method": method, "params": params or {}}
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self._ids

    def line(self) -> bytes:
        assert self.process.stdout
        return self.process.stdout.readline()

    def message(self) -> Message:
        return dict(json.loads(self.line()))

    def ask(self, method: str, params: Message | None = None) -> Message:
        number = self.send(method, params)
        while (message := self.message()).get("id") != number:
            continue
        return message

    def initialize(self, version: str = "2025-11-25") -> Message:
        told = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t"}}
        return self.ask("initialize", told)

    def call(self, name: str, **arguments: Any) -> Message:
        return self.ask("tools/call", {"name": name, "arguments": arguments})

    def modern(self, method: str, **params: Any) -> Message:
        return self.ask(method, {**params, "_meta": META})


@contextmanager
def fake(*flags: object) -> Iterator[Pipe]:
    process = subprocess.Popen(
        fake_argv(*flags),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    # A server that never answers must not hang the test: its end is an empty line.
    guard = threading.Timer(20, kill_tree, (process.pid,))
    guard.start()
    try:
        with process:
            yield Pipe(process)
            kill_tree(process.pid)
    finally:
        guard.cancel()
        kill_tree(process.pid)


def text(answer: Message) -> str:
    return str(answer["result"]["content"][0]["text"])


def test_it_serves_both_eras_in_one_process() -> None:
    with fake() as server:
        assert server.modern("server/discover")["result"]["supportedVersions"] == ["2026-07-28"]
        assert server.initialize()["result"]["protocolVersion"] == "2025-11-25"
        assert text(server.call("echo", text="é")) == "é"
        answer = server.modern("tools/call", name="echo", arguments={"text": "hi"})
        assert answer["result"]["resultType"] == "complete"


def test_it_can_keep_to_the_first_era_used() -> None:
    with fake("--lock") as server:
        server.modern("server/discover")
        assert server.initialize()["error"]["code"] == -32022


@pytest.mark.parametrize(("how", "code"), [("exit", 1), ("poison", 1)])
def test_a_probe_can_kill_it(how: str, code: int) -> None:
    with fake("--discover", how) as server:
        server.send("server/discover", {"_meta": META})
        server.send("initialize")
        assert server.line() == b""
        assert server.process.wait(5) == code


def test_it_refuses_or_renegotiates_versions_it_does_not_know() -> None:
    with fake("--versions", "2024-11-05", "--picky") as server:
        assert server.initialize()["error"]["code"] == -32602
        assert server.initialize("2024-11-05")["result"]["protocolVersion"] == "2024-11-05"
    with fake("--versions", "2024-11-05,2025-03-26") as server:
        assert server.initialize()["result"]["protocolVersion"] == "2025-03-26"


def test_it_pages_and_can_get_stuck() -> None:
    with fake("--only", "echo", "--tools", 4, "--page", 2) as server:
        server.initialize()
        sizes, params = [], dict[str, Any]()
        for _ in range(3):
            page = server.ask("tools/list", params)["result"]
            sizes.append(len(page["tools"]))
            params = {"cursor": page.get("nextCursor")}
        assert (sizes, params) == ([2, 2, 1], {"cursor": None})
    with fake("--stuck-cursor", "--page", 2) as server:
        server.initialize()
        assert server.ask("tools/list", {"cursor": "again"})["result"]["nextCursor"] == "again"


def test_it_lists_malformed_tools_among_good_ones() -> None:
    with fake("--malformed", "--only", "echo,sleep") as server:
        server.initialize()
        tools = server.ask("tools/list")["result"]["tools"]
        assert len(tools) == 6
        assert (tools[0]["name"], tools[-1]["name"]) == ("echo", "sleep")


def test_noise_surrounds_its_messages_in_every_dress() -> None:
    with fake("--bom", "--banner", "--noise", "--crlf", "--chunk", 3) as server:
        server.send("ping")
        lines = [server.line() for _ in range(15)]
        assert lines[0].startswith(b"\xef\xbb\xbf")
        assert json.loads(lines[-1]) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert lines[-1].endswith(b"\r\n")


def test_calls_run_at_the_same_time_and_can_be_cancelled() -> None:
    with fake() as server:
        server.initialize()
        slow = server.send("tools/call", {"name": "hang"})
        assert text(server.call("echo", text="first")) == "first"
        server.send("notifications/cancelled", {"requestId": slow}, notice=True)
        assert text(server.call("sleep", ms=1)) == "slept 1 ms"


def test_it_reports_progress_under_the_token_it_was_given() -> None:
    with fake() as server:
        server.initialize()
        told = {"name": "progress", "arguments": {"steps": 2}, "_meta": {"progressToken": "t"}}
        server.send("tools/call", told)
        seen = [server.message() for _ in range(3)]
        assert [each["params"]["progressToken"] for each in seen[:2]] == ["t", "t"]
        assert text(seen[2]) == "2 steps"


@pytest.mark.parametrize(
    ("shape", "right_first"), [("unknown_id", False), ("both", False), ("neither", False)]
)
def test_it_answers_in_wrong_shapes(shape: str, right_first: bool) -> None:
    with fake() as server:
        server.initialize()
        number = server.send("tools/call", {"name": "odd", "arguments": {"shape": shape}})
        wrong, right = server.message(), server.message()
        assert wrong != right
        assert right["id"] == number
        assert "result" in right


def test_it_asks_in_mid_call_and_answers_with_what_came_back() -> None:
    with fake() as server:
        server.initialize()
        server.send("tools/call", {"name": "ask", "arguments": {"method": "roots/list"}})
        question = server.message()
        assert (question["id"], question["method"]) == (0, "roots/list")
        assert server.process.stdin
        refusal = b'{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no"}}\n'
        server.process.stdin.write(refusal)
        server.process.stdin.flush()
        assert json.loads(text(server.message()))["error"]["code"] == -32601


def test_a_changed_list_is_announced_to_those_who_asked() -> None:
    with fake() as server:
        wanted = {"notifications": {"toolsListChanged": True}, "_meta": META}
        listen = server.send("subscriptions/listen", wanted)
        server.message()
        server.send("tools/call", {"name": "add_tool", "_meta": META})
        told = server.message()
        assert told["method"] == "notifications/tools/list_changed"
        assert told["params"]["_meta"][f"{PREFIX}subscriptionId"] == listen


@pytest.mark.parametrize(
    ("arguments", "code"), [({"code": 3}, 3), ({"signal": "SIGSEGV"}, -signal.SIGSEGV)]
)
def test_it_crashes_on_demand(arguments: Message, code: int) -> None:
    with fake() as server:
        server.initialize()
        server.send("tools/call", {"name": "crash", "arguments": {"stderr": "oh", **arguments}})
        assert server.process.wait(10) == code
        assert server.process.stderr
        assert server.process.stderr.read() == b"oh\n"


def test_the_end_of_stdin_ends_it_unless_it_is_stubborn() -> None:
    with fake() as server:
        assert server.process.stdin
        server.process.stdin.close()
        assert server.process.wait(5) == 0
    with fake("--stubborn") as server:
        server.initialize()
        assert server.process.stdin
        server.process.stdin.close()
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(0.3)


def test_it_leaves_grandchildren_behind_for_others_to_find() -> None:
    with fake() as server:
        server.initialize()
        grandchild = int(text(server.call("spawn", ignore_term=True)))
        server.process.kill()
        server.process.wait(5)
        assert is_alive(grandchild)
        kill_tree(server.process.pid)
        eventually(lambda: not is_alive(grandchild))


def test_it_fails_its_first_starts_and_counts_them(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    flags = ("--starts", starts, "--fail-first", 1)
    with fake(*flags) as server:
        assert server.process.wait(5) == 1
    with fake(*flags) as server:
        assert "result" in server.initialize()
    assert len(starts.read_text().split()) == 2
