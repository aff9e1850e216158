"""Commands where no gateway runs: they start what they need, and leave nothing behind."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.standing_in import concerned
from gateway.config.load import load
from tests.cli.typed import ONEGATE, environ, onegate, terminal, write_config
from tests.kit.fakes import fake
from tests.kit.ports import free_port
from tests.kit.processes import is_alive, program
from tests.kit.waiting import eventually


def configured(folder: Path, **keys: Any) -> None:
    servers = {
        "one": fake("--starts", folder / "one.pids", "--only", "echo,hang"),
        "two": fake("--starts", folder / "two.pids", "--only", "echo"),
    }
    own = {"admin": f"127.0.0.1:{free_port()}", "servers": servers}
    write_config(folder, **{**own, "calls": {"path": "calls.jsonl"}, **keys})


def pids(folder: Path, name: str) -> list[int]:
    file = folder / f"{name}.pids"
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []


def assert_gone(folder: Path) -> None:
    assert not [pid for name in ("one", "two") for pid in pids(folder, name) if is_alive(pid)]


def test_a_call_starts_the_server_concerned_and_says_so(tmp_path: Path) -> None:
    configured(tmp_path)

    told = onegate(tmp_path, "call", "one__echo", "text=hi")

    assert (told.code, told.out.splitlines()[0]) == (0, "hi")
    assert told.err.endswith(": starting one.\n")
    assert pids(tmp_path, "one") and not pids(tmp_path, "two")
    assert_gone(tmp_path)


def test_such_a_call_is_recorded_like_any_other(tmp_path: Path) -> None:
    configured(tmp_path)

    onegate(tmp_path, "call", "one__echo", "text=hi")

    (line,) = (tmp_path / "calls.jsonl").read_text().splitlines()
    assert (json.loads(line)["name"], json.loads(line)["principal"]) == ("one__echo", "operator")


@pytest.mark.parametrize("command", ["servers", "tools"])
def test_lists_start_them_all(command: str, tmp_path: Path) -> None:
    configured(tmp_path)

    told = onegate(tmp_path, command)

    assert told.code == 0
    assert told.err.endswith(": starting one and two.\n")
    assert "one" in told.out and "two" in told.out
    assert_gone(tmp_path)


def test_json_is_not_mixed_with_anything(tmp_path: Path) -> None:
    configured(tmp_path, servers={"ghost": {"command": "no-such-program"}})

    told = onegate(tmp_path, "servers", "--json")

    assert told.json["servers"][0]["state"] == "failed"
    assert told.err.count("\n") == 1


def test_explain_needs_no_gateway_either(tmp_path: Path) -> None:
    configured(tmp_path, tools=[{"match": "one__*", "longest": "3m"}])

    told = onegate(tmp_path, "explain", "one__echo")

    assert "3m" in told.out
    assert not pids(tmp_path, "two")


def test_with_the_admin_address_off_it_is_the_same(tmp_path: Path) -> None:
    configured(tmp_path, admin="off")

    told = onegate(tmp_path, "call", "one__echo", "text=hi")

    assert (told.code, told.out.splitlines()[0]) == (0, "hi")
    assert told.err == "The configuration says `admin: off`: starting one.\n"


def test_an_address_that_was_given_is_not_stood_in_for(tmp_path: Path) -> None:
    configured(tmp_path)

    told = onegate(tmp_path, "servers", "--admin", f"127.0.0.1:{free_port()}")

    assert told.code == 1
    assert "start one with `onegate serve`" in told.err
    assert not pids(tmp_path, "one")


@pytest.mark.parametrize("words", [["servers"], ["call", "one__echo"]])
def test_a_broken_configuration_exits_with_2_and_starts_nothing(
    words: list[str], tmp_path: Path
) -> None:
    configured(tmp_path, lisen=1)

    told = onegate(tmp_path, *words)

    assert (told.code, told.out) == (2, "")
    assert "lisen: unknown key" in told.err
    assert "--admin HOST:PORT" in told.err
    assert not pids(tmp_path, "one")


def test_a_record_that_cannot_be_kept_is_told_plainly(tmp_path: Path) -> None:
    configured(tmp_path, calls={"path": "no/such/folder/calls.jsonl"})

    told = onegate(tmp_path, "servers")

    assert told.code == 1
    assert told.err.splitlines()[-1] == (
        "onegate: cannot open no/such/folder/calls.jsonl: No such file or directory"
    )


def test_ctrl_c_in_the_middle_of_a_call_is_quiet_and_leaves_nothing(tmp_path: Path) -> None:
    configured(tmp_path)
    argv = [*ONEGATE, "call", "one__hang"]
    with program(argv, tmp_path / "log", env=environ(tmp_path), cwd=tmp_path) as hanging:
        hanging.wait_text("starting one")
        recorded = tmp_path / "calls.jsonl"
        eventually(lambda: pids(tmp_path, "one"), 10)
        eventually(recorded.exists, 10)
        hanging.send(signal.SIGINT)

        assert hanging.wait_exit() == 130
        assert hanging.text.count("\n") == 1
    assert_gone(tmp_path)


def test_a_terminal_is_told_who_is_still_starting(tmp_path: Path) -> None:
    configured(tmp_path, servers={"slow": fake("--start-delay", "1")})
    with terminal(tmp_path, "tools") as shown:
        shown.wait_text("0 of 1 up, waiting for slow")
        assert shown.wait_exit() == 0
        assert "slow__echo" in shown.text


@pytest.mark.parametrize(
    ("tool", "started"),
    [
        (None, {"a", "b", "bare"}),
        ("a__x", {"a"}),
        ("a__b__x", {"a"}),
        ("other__x", {"b"}),
        ("b__x", {"bare"}),
        ("x", {"bare"}),
        ("off__x", {"bare"}),
    ],
)
def test_prefixes_tell_who_may_offer_a_tool(
    tool: str | None, started: set[str], tmp_path: Path
) -> None:
    section = {"command": "x"}
    off = {"command": "x", "disabled": True}
    servers = {"a": section, "bare": {**section, "prefix": ""}, "off": off}
    servers["b"] = {**section, "prefix": "other"}
    file = write_config(tmp_path, servers=servers)

    assert concerned(load(file, {}, tmp_path).config.servers, tool) == started
