"""`onegate stdio` with a gateway of its own: no HTTP, and nothing left behind."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.kit.fakes import fake
from tests.kit.gateway import running_gateway
from tests.kit.processes import descendants, is_alive
from tests.kit.waiting import eventually
from tests.stdio.talking import Speaker, seconds, speaking

AN_END_S = 4.0
"""A second is the promise on a machine that does nothing else."""
FIRST_S = 4.0
PROGRESS = "notifications/progress"


@contextmanager
def alone(folder: Path, servers: dict[str, Any], **config: Any) -> Iterator[Speaker]:
    file = folder / "onegate.json"
    file.write_text(json.dumps({"servers": servers, **config}))
    with speaking(folder, "-c", str(file)) as speaker:
        yield speaker


def servers_of(client: Speaker) -> list[int]:
    return [each.pid for each in descendants(client.process.pid)]


def test_clients_of_both_eras_are_served_from_one_process(tmp_path: Path) -> None:
    servers = {"old": fake("--era", "legacy"), "new": fake("--era", "modern")}
    with alone(tmp_path, servers) as client:
        assert client.initialize()["serverInfo"]["name"] == "onegate"
        eventually(lambda: {"old__echo", "new__echo"} <= set(client.tool_names()), 20)
        for server in ("old", "new"):
            told = {"_meta": {"progressToken": server}}
            assert client.call(f"{server}__progress", {"steps": 1}, **told)
            result = client.call_modern(f"{server}__progress", {"steps": 1}, **told)
            assert result["resultType"] == "complete"
        tokens = [m["params"]["progressToken"] for m in client.heard if m.get("method") == PROGRESS]
        assert tokens == ["old", "old", "new", "new"]
        names = [c.laddr for c in psutil.Process(client.process.pid).net_connections("inet")]
        assert not names, "it listens nowhere"


def test_questions_lists_and_cancellations_go_both_ways(tmp_path: Path) -> None:
    record = tmp_path / "record"
    with alone(tmp_path, {"old": fake("--era", "legacy", "--record", record)}) as client:
        client.initialize(sampling={})
        eventually(lambda: "old__echo" in client.tool_names(), 20)
        asking = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
        id_ = client.begin("tools/call", {"name": "old__ask", "arguments": asking})
        question = client.notice("sampling/createMessage")
        answer = {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"}
        client.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        said = client.answer(id_)["result"]["content"][0]["text"]
        assert json.loads(said)["result"] == answer

        hang = {"name": "old__hang", "arguments": {}}

        def reads(words: str, times: int) -> bool:
            return record.read_text().count(words) == times

        for times, begin in enumerate((client.begin, client.begin_modern), 1):
            id_ = begin("tools/call", hang)
            eventually(partial(reads, '"hang"', times))
            client.notify("notifications/cancelled", {"requestId": id_})
            eventually(partial(reads, "notifications/cancelled", times))
        assert "result" in client.request("ping")

        listen = {"notifications": {"toolsListChanged": True}}
        client.begin_modern("subscriptions/listen", listen)
        client.notice("notifications/subscriptions/acknowledged")
        since = len(client.lines)
        client.call("old__add_tool", {"name": "fresh"})
        changed = [
            m for m in client.heard[since:] if m.get("method") == "notifications/tools/list_changed"
        ]
        client.notice("notifications/tools/list_changed", since)
        assert len(changed) <= 2


def test_the_first_list_of_all_waits_for_servers_and_the_next_ones_do_not(tmp_path: Path) -> None:
    """Many clients read lists once; from the second time on they are remembered."""
    slow = {"slow": fake("--start-delay", 2)}
    with alone(tmp_path, slow) as client:
        client.initialize()
        assert "slow__echo" in client.tool_names()
        client.close()
        client.wait_exit()
    with alone(tmp_path, slow) as client:
        assert seconds(client.initialize) < FIRST_S
        assert seconds(lambda: client.request("tools/list")) < FIRST_S
        assert "slow__echo" in client.tool_names()


def test_it_ends_with_stdin_and_its_servers_with_it(tmp_path: Path) -> None:
    """Also those that do not care for the end of their stdin, nor for TERM."""
    servers = {"good": fake(), "bad": fake("--stubborn", "--grandchild")}
    with alone(tmp_path, servers) as client:
        client.initialize()
        eventually(lambda: {"good__echo", "bad__echo"} <= set(client.tool_names()), 20)
        left = servers_of(client)
        assert len(left) >= 3
        client.close()
        assert seconds(client.wait_exit) < AN_END_S
        eventually(lambda: not any(map(is_alive, left)), 1)  # the warden included
        assert client.process.returncode == 0


def test_killed_outright_it_leaves_nothing(tmp_path: Path) -> None:
    with alone(tmp_path, {"bad": fake("--stubborn", "--grandchild")}) as client:
        client.initialize()
        eventually(lambda: "bad__echo" in client.tool_names(), 20)
        left = servers_of(client)
        os.kill(client.process.pid, signal.SIGKILL)
        client.wait_exit()
        eventually(lambda: not any(map(is_alive, left)), 15)


def test_it_ends_before_it_has_begun(tmp_path: Path) -> None:
    with alone(tmp_path, {"one": fake()}) as client:
        client.close()
        assert seconds(client.wait_exit) < AN_END_S
        assert client.process.returncode == 0
        assert client.lines == []


def test_nothing_is_left_of_a_configuration_that_never_comes(tmp_path: Path) -> None:
    """The file is a pipe that nobody writes to: whoever reads it waits, and must not stay."""
    file = tmp_path / "onegate.yaml"
    os.mkfifo(file)
    with speaking(tmp_path, "-c", str(file)) as client:
        client.initialize()
        left = servers_of(client)
        assert left
        client.close()
        assert seconds(client.wait_exit) < AN_END_S
        eventually(lambda: not any(map(is_alive, left)))


def test_what_reads_the_configuration_does_not_stay_in_memory(tmp_path: Path) -> None:
    with alone(tmp_path, {"one": fake()}) as client:
        client.initialize()
        eventually(lambda: "one__echo" in client.tool_names(), 20)
        held = {Path(each.path).name for each in psutil.Process(client.process.pid).memory_maps()}
        assert any(name.startswith("_core.") or "msgspec" in name for name in held)
        assert not [name for name in held if "pydantic" in name or "yaml" in name]


@pytest.mark.parametrize("wherefrom", ["nothing is known", "from a first time"])
def test_a_script_may_write_its_questions_close_the_pipe_and_read(
    tmp_path: Path, wherefrom: str
) -> None:
    """Also while the gateway has still to be loaded."""
    if wherefrom != "nothing is known":
        test_a_script_may_write_its_questions_close_the_pipe_and_read(tmp_path, "nothing is known")
    with alone(tmp_path, {"one": fake()}) as client:
        began = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "s", "version": "1"},
        }
        client.begin("initialize", began, "begun")
        client.notify("notifications/initialized")
        client.begin("tools/list", {}, "listed")
        client.begin("tools/call", {"name": "one__echo", "arguments": {"text": "hi"}}, "called")
        client.close()
        assert seconds(client.wait_exit) < AN_END_S
        assert client.answer("begun")["result"]["serverInfo"]["name"] == "onegate"
        assert client.answer("listed")["result"]["tools"]
        assert client.answer("called")["result"]["content"][0]["text"] == "hi"


def test_what_is_wrong_with_the_configuration_is_told_to_a_script_too(tmp_path: Path) -> None:
    file = tmp_path / "onegate.yaml"
    file.write_text("servers:\n  a: {comand: x}\n")
    with speaking(tmp_path, "-c", str(file)) as client:
        client.begin("tools/list")
        client.close()
        assert client.wait_exit() == 2
        assert "did you mean `command`?" in client.errors


def test_a_server_may_write_what_it_likes_on_stderr(tmp_path: Path) -> None:
    with alone(tmp_path, {"one": fake("--say", "hello from one")}) as client:
        client.initialize()
        eventually(lambda: "hello from one" in client.errors, 20)
        assert all("jsonrpc" in each for each in client.heard)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-c", "nothing.yaml"], "nothing.yaml"),
        (["--url", "gopher://x"], "expected http"),
        (["--url", "http://a:b@127.0.0.1/mcp"], "ONEGATE_TOKEN"),
        (["--url", "http://127.0.0.1:1/mcp", "-c", "x"], "exclude each other"),
        (["--url", "http://127.0.0.1:1/mcp", "--token-file", "nothing"], "cannot be read"),
    ],
)
def test_wrong_usage_is_told_on_stderr_alone(tmp_path: Path, words: list[str], says: str) -> None:
    with speaking(tmp_path, *words) as client:
        assert client.wait_exit() == 2
        assert says in client.errors
        assert client.lines == []


def test_with_neither_word_it_takes_the_gateway_that_runs_or_the_configuration_there_is(
    tmp_path: Path,
) -> None:
    (tmp_path / "home").mkdir()
    homeless = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "home")}
    if _is_taken(8765):
        pytest.skip("something listens on the default address")
    with speaking(tmp_path, env=homeless) as client:
        assert client.wait_exit() == 2
        assert "no gateway answers at http://127.0.0.1:8765/mcp" in client.errors
        assert "-c" in client.errors
    folder = tmp_path / "home" / "onegate"
    folder.mkdir()
    (folder / "onegate.yaml").write_text(json.dumps({"servers": {"mine": fake()}}))
    with speaking(tmp_path, env=homeless) as client:
        client.initialize()
        eventually(lambda: "mine__echo" in client.tool_names(), 20)
    with (
        running_gateway(tmp_path, {"theirs": fake()}, listen="127.0.0.1:8765"),
        speaking(tmp_path, env=homeless) as client,
    ):
        client.initialize()
        eventually(lambda: "theirs__echo" in client.tool_names())


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
