"""`onegate serve`: from its first line to its exit code."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.typed import ONEGATE, demo, environ, onegate, terminal, write_config
from tests.kit.fakes import fake
from tests.kit.gateway import running_gateway
from tests.kit.ports import free_port
from tests.kit.processes import Program, is_alive, program
from tests.kit.waiting import eventually


def configured(folder: Path, **keys: Any) -> dict[str, Any]:
    config = {
        "listen": f"127.0.0.1:{free_port()}",
        "admin": f"127.0.0.1:{free_port()}",
        "servers": {"fake": fake("--only", "echo,sleep")},
        **keys,
    }
    write_config(folder, **config)
    return config


@contextmanager
def serving(folder: Path) -> Iterator[Program]:
    with program([*ONEGATE, "serve"], folder / "log", env=environ(folder), cwd=folder) as running:
        yield running


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_in_a_pipe_the_log_tells_where_things_are_and_what_came_up(tmp_path: Path) -> None:
    config = configured(tmp_path)
    with serving(tmp_path) as running:
        running.wait_text("server.settled")
        running.send(signal.SIGTERM)
        assert running.wait_exit() == 0
        told = {each["event"]: each for each in events(running.text)}

    assert told["gateway.started"]["listen"] == [config["listen"]]
    assert told["gateway.started"]["admin"] == config["admin"]
    assert told["gateway.started"]["config"] == "onegate.yaml"
    assert (told["server.settled"]["server"], told["server.settled"]["tools"]) == ("fake", 2)
    assert told["gateway.stopping"]["signal"] == "SIGTERM"
    assert list(told)[-1] == "gateway.stopped"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_each_signal_stops_it_in_good_order(number: signal.Signals, tmp_path: Path) -> None:
    with running_gateway(tmp_path, {"fake": fake()}) as gateway:
        started = gateway.server_pids()
        gateway.program.send(number)

        assert gateway.program.wait_exit() == 0
    assert not [pid for pid in started if is_alive(pid)]


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    servers = {"stubborn": fake("--stubborn", stop_grace="60s")}
    with running_gateway(tmp_path, servers) as gateway:
        started = gateway.server_pids()
        gateway.program.send(signal.SIGTERM)
        gateway.program.wait_text("gateway.stopping")
        gateway.program.send(signal.SIGTERM)

        assert gateway.program.wait_exit(10) == 0
        assert "gateway.hurried" in gateway.text
        eventually(lambda: not [pid for pid in started if is_alive(pid)], 10)


def test_a_signal_while_servers_start_stops_it_too(tmp_path: Path) -> None:
    configured(tmp_path, servers={"slow": fake("--start-delay", "60", stop_grace="100ms")})
    with serving(tmp_path) as running:
        running.wait_text("process.started")
        running.send(signal.SIGTERM)

        assert running.wait_exit() == 0


def test_a_port_that_is_taken_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    with running_gateway(tmp_path, {}) as other:
        _, port = other.host_port
        configured(tmp_path, listen=f"127.0.0.1:{port}", log={"level": "error"})
        with serving(tmp_path) as running:
            assert running.wait_exit() == 1
            assert running.text == (
                f"onegate: cannot listen on 127.0.0.1:{port} (`listen`): another program listens "
                "there already; stop it, or choose another address\n"
            )
            assert not running.descendants()


def test_a_record_that_cannot_be_kept_is_one_line(tmp_path: Path) -> None:
    configured(tmp_path, calls={"path": "none/calls.jsonl"})

    told = onegate(tmp_path, "serve")

    assert (told.code, told.out) == (1, "")
    assert told.err == "onegate: cannot open none/calls.jsonl: No such file or directory\n"


def test_a_configuration_that_is_wrong_starts_nothing(tmp_path: Path) -> None:
    configured(tmp_path, servers={"a": {"comand": "x"}})

    told = onegate(tmp_path, "serve")

    assert (told.code, told.out) == (2, "")
    assert "did you mean `command`?" in told.err


def test_a_terminal_shows_what_to_paste_and_what_there_is(tmp_path: Path) -> None:
    servers = {name: demo(name) for name in ("dice", "clock", "release")}
    config = configured(tmp_path, servers=servers)
    with terminal(tmp_path, "serve") as shown:
        shown.wait_text("Ctrl-C stops it.")
        shown.press_ctrl_c()
        assert shown.wait_exit() == 0
        screen = shown.text.partition("^C")[0]

    endpoint = f"http://{config['listen']}/mcp"
    lines = [line.rstrip() for line in screen.splitlines()]
    assert f"claude mcp add --transport http onegate {endpoint}" in lines
    pasted = [json.loads(line) for line in lines if line.startswith("{")]
    assert {"servers": {"onegate": {"type": "http", "url": endpoint}}} in pasted
    assert {"mcpServers": {"onegate": {"url": endpoint}}} in pasted
    assert any(line.startswith("dice     ready  modern+legacy      2") for line in lines)
    assert any(line.startswith("dice__roll_dice           Roll one or more") for line in lines)
    assert f"Admin      http://{config['admin']}" in lines
    assert max(map(len, lines)) <= 80
    assert "server.started" not in screen


def test_a_terminal_shows_who_is_still_starting(tmp_path: Path) -> None:
    configured(tmp_path, servers={"slow": fake("--start-delay", "1"), "quick": fake()})
    with terminal(tmp_path, "serve") as shown:
        shown.wait_text("1 of 2 up, waiting for slow")
        shown.wait_text("slow    ready")
        shown.press_ctrl_c()
        assert shown.wait_exit() == 0


def test_a_terminal_shows_why_a_server_is_not_there(tmp_path: Path) -> None:
    configured(tmp_path, servers={"ghost": {"command": "no-such-program"}, "fake": fake()})
    with terminal(tmp_path, "serve") as shown:
        screen = shown.wait_text("Ctrl-C stops it.")

    assert "ghost: command 'no-such-program' not found" in screen.partition("SERVER")[2]


def test_where_tokens_are_asked_for_the_snippets_have_a_place_for_one(tmp_path: Path) -> None:
    tokens = {"tokens": [{"name": "laptop", "sha256": "0" * 64}]}
    configured(tmp_path, auth=tokens)
    with terminal(tmp_path, "serve") as shown:
        screen = shown.wait_text("Ctrl-C stops it.")

    assert '--header "Authorization: Bearer TOKEN"' in screen.replace("\n", "")
    assert '"headers": {"Authorization": "Bearer TOKEN"}' in screen.replace("\n", "")
    assert "(laptop)" in screen
    assert "0" * 64 not in screen
