"""Commands that ask a running gateway, as programs and people read them."""

import json
import signal
import socket
import threading
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from tests.cli.typed import ONEGATE, Ended, demo, environ, onegate, terminal, write_config
from tests.kit.fakes import fake
from tests.kit.gateway import Gateway, fetch, running_gateway
from tests.kit.ports import free_port
from tests.kit.processes import ROOT, program
from tests.kit.waiting import eventually

TOKEN = "t-0123456789"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("asked")
    servers = {
        "dice": demo("dice"),
        "fake": fake("--only", "echo,fail,error,progress,hang", required=True),
        "ghost": {"command": "no-such-program", "args": ["--token=hunter2hunter2"]},
    }
    rules = [{"match": "dice__word*", "decision": "deny"}, {"match": "dice__*", "timeout": "7s"}]
    path = {"PYTHONPATH": str(ROOT)}
    with running_gateway(folder, servers, tools=rules, env=path) as running:
        running.wait_tools("dice__roll_dice", "fake__echo")
        yield running


def ask(gateway: Gateway, *words: str) -> Ended:
    return onegate(gateway.file.parent, *words, "-c", str(gateway.file))


def test_servers_tells_of_each_how_it_is(gateway: Gateway) -> None:
    told = ask(gateway, "servers")

    rows = {row[0]: row for row in (line.split() for line in told.out.splitlines())}
    assert told.code == 0
    assert rows["dice"][:4] == ["dice", "ready", "modern+legacy", "2"]
    assert rows["ghost"][1] == "failed"
    assert "no-such-program" in told.out


def test_servers_as_json_holds_no_secret(gateway: Gateway) -> None:
    told = ask(gateway, "servers", "--json")

    reports = {each["name"]: each for each in told.json["servers"]}
    assert reports["fake"]["required"] is True
    assert reports["dice"]["pids"]
    assert "hunter2hunter2" not in told.out + told.err


def test_tools_tells_what_each_does_and_what_is_denied(gateway: Gateway) -> None:
    told = ask(gateway, "tools")

    rows = {line.split()[0]: line.split(maxsplit=2) for line in told.out.splitlines()}
    assert rows["dice__roll_dice"][1:] == [
        "allow",
        "Roll one or more dice. Returns each roll and their total.",
    ]
    assert rows["dice__word_count"][1] == "deny"
    assert "there may be more: ghost" in told.err


def test_explain_tells_every_setting_with_its_line(gateway: Gateway) -> None:
    told = ask(gateway, "explain", "dice__word_count")

    lines = gateway.file.read_text().splitlines()
    decided = next(at for at, line in enumerate(lines, 1) if '"decision": "deny"' in line)
    limited = next(at for at, line in enumerate(lines, 1) if '"timeout": "7s"' in line)
    rows = {row[0]: row[1:] for row in (line.split() for line in told.out.splitlines()) if row}
    assert rows["decision"] == ["deny", f"onegate.json:{decided}"]
    assert rows["timeout"] == ["7s", f"onegate.json:{limited}"]
    assert rows["longest"] == ["10m", "default"]
    assert "word_count" in told.out
    assert "-m gateway.demo.dice" in told.out


def test_explain_as_json(gateway: Gateway) -> None:
    told = ask(gateway, "explain", "dice__roll_dice", "--json").json

    assert (told["server"], told["tool"], told["decision"]) == ("dice", "roll_dice", "allow")
    assert told["command"][1:] == ["-m", "gateway.demo.dice"]


@pytest.mark.parametrize("command", ["explain", "call"])
@pytest.mark.parametrize("name", ["roll_dice", "dice__rol_dice", "dice_roll_dice"])
def test_an_unknown_tool_is_answered_with_near_names(
    command: str, name: str, gateway: Gateway
) -> None:
    told = ask(gateway, command, name)

    assert (told.code, told.out) == (1, "")
    assert f"no server offers a tool '{name}'; did you mean dice__roll_dice" in told.err


def test_a_tool_of_a_server_that_is_down_is_told_with_the_reason(gateway: Gateway) -> None:
    told = ask(gateway, "call", "ghost__anything")

    assert told.code == 1
    assert "the server ghost is failed: command 'no-such-program' not found" in told.err


def test_call_prints_what_the_tool_answers(gateway: Gateway) -> None:
    told = ask(gateway, "call", "fake__echo", "text=hello there")

    assert (told.code, told.err) == (0, "")
    assert told.out.splitlines()[0] == "hello there"


@pytest.mark.parametrize("words", [['{"a": 1, "b": "x"}'], ["a=1", "b=x"]], ids=["object", "pairs"])
def test_arguments_arrive_as_given(words: list[str], gateway: Gateway) -> None:
    told = ask(gateway, "call", "fake__echo", *words, "--json")

    assert told.json["structuredContent"]["arguments"] == {"a": 1, "b": "x"}


def test_arguments_may_come_on_standard_input(gateway: Gateway) -> None:
    words = ["call", "fake__echo", "-", "-c", str(gateway.file)]

    assert onegate(gateway.file.parent, *words, text='{"text": "piped"}').out.startswith("piped")


def test_a_tool_that_fails_is_told_on_stderr(gateway: Gateway) -> None:
    told = ask(gateway, "call", "fake__fail", "text=no such table")

    assert (told.code, told.out, told.err) == (1, "", "no such table\n")


def test_a_tool_that_fails_exits_with_1_for_programs_too(gateway: Gateway) -> None:
    failed = ask(gateway, "call", "fake__fail", "--json")
    refused = ask(gateway, "call", "fake__error", "--json")

    assert (failed.code, failed.json["isError"]) == (1, True)
    assert (refused.code, refused.json["error"]["code"]) == (1, -32000)


def test_the_operator_hears_that_a_tool_is_denied_and_by_what(gateway: Gateway) -> None:
    told = ask(gateway, "call", "dice__word_count", "text=x")

    assert told.code == 1
    assert 'dice__word_count is denied by the rule for "dice__word*"' in told.err


def test_calls_tells_the_latest_and_can_choose(gateway: Gateway) -> None:
    ask(gateway, "call", "fake__echo", "text=a")
    ask(gateway, "call", "fake__fail")

    newest = ask(gateway, "calls", "--last", "2", "--json").out.splitlines()
    failed = ask(gateway, "calls", "--outcome", "tool_error", "--server", "fake", "--last", "1")

    assert [json.loads(line)["tool"] for line in newest] == ["echo", "fail"]
    assert "fake__fail" in failed.out.splitlines()[1]
    assert len(failed.out.splitlines()) == 2


def test_health_is_well(gateway: Gateway) -> None:
    told, as_json = ask(gateway, "health"), ask(gateway, "health", "--json")

    assert (told.code, told.out.split(":")[0]) == (0, "ready")
    assert as_json.json["ok"] is True


def test_the_admin_address_alone_is_enough(gateway: Gateway, tmp_path: Path) -> None:
    told = onegate(tmp_path, "servers", "--admin", gateway.admin, "--json")

    assert [each["name"] for each in told.json["servers"]] == ["dice", "fake", "ghost"]


def test_a_call_on_a_terminal_leaves_only_its_answer(gateway: Gateway) -> None:
    words = ["call", "fake__echo", "text=done", "-c", str(gateway.file)]
    with terminal(gateway.file.parent, *words) as shown:
        assert shown.wait_exit() == 0
        assert shown.text.rstrip().splitlines()[-2:] != []
        assert "done" in shown.text


def test_progress_is_told_while_a_call_runs(gateway: Gateway) -> None:
    body = json.dumps({"tool": "fake__progress", "arguments": {"steps": 3, "ms": 50}}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/jsonl"}

    status, answer = fetch(f"{gateway.admin}/api/call", body, headers)

    *told, last = map(json.loads, answer.splitlines())
    assert status == 200
    assert [each["progress"]["progress"] for each in told] == [1, 2, 3]
    assert "result" in last


def test_a_terminal_shows_how_far_a_call_is(gateway: Gateway) -> None:
    words = ["call", "fake__progress", "steps=40", "ms=50", "-c", str(gateway.file)]
    with terminal(gateway.file.parent, *words) as shown:
        shown.wait_text("step ")
        assert shown.wait_exit() == 0


def test_ctrl_c_cancels_the_call_at_the_gateway(gateway: Gateway) -> None:
    argv = [*ONEGATE, "call", "fake__hang", "-c", str(gateway.file)]
    folder = gateway.file.parent
    with program(argv, folder / "hang.log", env=environ(folder), cwd=folder) as hanging:
        eventually(lambda: 'calls_in_flight{server="fake"} 1.0' in gateway.page("/metrics"), 10)
        hanging.send(signal.SIGINT)
        assert (hanging.wait_exit(), hanging.text) == (130, "")

    def cancelled() -> bool:
        records = json.loads(gateway.page("/api/calls?tool=fake__hang"))["calls"]
        return [each["outcome"] for each in records] == ["cancelled"]

    eventually(cancelled, 10)


@pytest.mark.parametrize("words", [["servers"], ["tools"], ["explain", "dice__roll_dice"]])
def test_no_line_is_wider_than_the_terminal(words: list[str], gateway: Gateway) -> None:
    with terminal(gateway.file.parent, *words, "-c", str(gateway.file)) as shown:
        assert shown.wait_exit() == 0
        table = shown.text.partition("\n\n")[0] if words == ["servers"] else shown.text
        assert "dice" in table
        assert max(len(line.rstrip()) for line in table.splitlines() if "Command" not in line) <= 80


def test_colour_is_left_out_where_it_is_not_wanted(gateway: Gateway) -> None:
    words = ["servers", "-c", str(gateway.file)]
    with terminal(gateway.file.parent, *words) as coloured:
        coloured.wait_exit()
    with terminal(gateway.file.parent, *words, env={"NO_COLOR": "1"}) as bare:
        bare.wait_exit()

    assert b"\x1b[32m" in coloured.raw
    assert b"\x1b[32m" not in bare.raw


def test_a_gateway_that_is_not_ready_is_not_well(tmp_path: Path) -> None:
    servers = {"late": fake("--start-delay", "60", required=True, stop_grace="100ms")}
    with running_gateway(tmp_path, servers, wait="/livez") as gateway:
        told = ask(gateway, "health")

    assert (told.code, told.out) == (1, "")
    assert told.err.splitlines() == ["not ready", "server late: starting"]


def test_where_nobody_runs_health_fails(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"

    told = onegate(tmp_path, "health", "--admin", address)
    as_json = onegate(tmp_path, "health", "--admin", address, "--json")

    assert (told.code, told.err) == (1, f"onegate: no gateway runs at {address}\n")
    assert (as_json.code, as_json.json["ok"]) == (1, False)


def test_a_unix_socket_is_asked_as_well(tmp_path: Path) -> None:
    listen, admin = f"127.0.0.1:{free_port()}", f"unix:{tmp_path}/admin.sock"
    write_config(tmp_path, listen=listen, admin=admin, servers={"fake": fake()})
    with terminal(tmp_path, "serve") as serving:
        serving.wait_text("Ctrl-C stops it")
        by_file, by_address = (
            onegate(tmp_path, "tools"),
            onegate(tmp_path, "tools", "--admin", admin),
        )
        serving.press_ctrl_c()
        assert serving.wait_exit() == 0

    assert "fake__echo" in by_file.out
    assert by_address.out == by_file.out


def test_beyond_loopback_a_token_is_asked_for_and_taken_from_the_environment(
    tmp_path: Path,
) -> None:
    admin = f"0.0.0.0:{free_port()}"
    auth = {"tokens": [{"name": "ops", "sha256": sha256(TOKEN.encode()).hexdigest()}]}
    listen = f"127.0.0.1:{free_port()}"
    write_config(tmp_path, listen=listen, admin=admin, auth=auth, servers={"fake": fake()})
    with terminal(tmp_path, "serve") as serving:
        serving.wait_text("Ctrl-C stops it")
        without = onegate(tmp_path, "tools")
        wrong = onegate(tmp_path, "tools", env={"ONEGATE_TOKEN": "guessed"})
        right = onegate(tmp_path, "tools", env={"ONEGATE_TOKEN": TOKEN})
        health = onegate(tmp_path, "health")

    assert (without.code, wrong.code, right.code, health.code) == (1, 1, 0, 0)
    assert "set ONEGATE_TOKEN" in without.err and "set ONEGATE_TOKEN" in wrong.err
    assert "fake__echo" in right.out


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 2\r\n\r\n{}", "is not onegate"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nServer: onegate\r\nContent-Length: 2\r\n\r\n[]", "another version"),
        (b"", "does not speak HTTP"),
    ],
)
def test_whatever_else_answers_there_is_not_taken_for_a_gateway(
    answer: bytes, told: str, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def reply() -> None:
            taken, _ = listening.accept()
            with taken:
                taken.recv(65536)
                taken.sendall(answer)

        replying = threading.Thread(target=reply)
        replying.start()
        ended = onegate(tmp_path, "servers", "--admin", f"127.0.0.1:{port}")
        replying.join(10)

    assert ended.code == 1
    assert told in ended.err
    assert "Traceback" not in ended.err
