"""HUP: read the file again, or leave because the terminal is gone."""

import json
import os
import signal
from pathlib import Path
from typing import Any

from tests.cli.typed import terminal, write_config
from tests.kit.fakes import fake
from tests.kit.gateway import Gateway, fetch, running_gateway
from tests.kit.ports import free_port
from tests.kit.processes import descendants, is_alive
from tests.kit.waiting import eventually

SERVERS = {"a": fake("--only", "echo")}


def change(gateway: Gateway, **keys: Any) -> None:
    config = json.loads(gateway.file.read_text())
    gateway.file.write_text(json.dumps({**config, **keys}))


def test_hup_without_a_terminal_reads_the_file_again(tmp_path: Path) -> None:
    with running_gateway(tmp_path, SERVERS) as gateway:
        gateway.wait_tools("a__echo")
        before = gateway.server_pids()

        change(gateway, default_decision="deny")
        gateway.program.send(signal.SIGHUP)

        eventually(lambda: gateway.tool_names() == [], what="nothing to be offered")
        assert gateway.server_pids() == before


def test_many_hups_at_once_end_in_what_the_file_says_last(tmp_path: Path) -> None:
    with running_gateway(tmp_path, SERVERS) as gateway:
        for number in range(50):
            change(gateway, servers={"a": {**SERVERS["a"], "prefix": f"p{number}"}})
            gateway.program.send(signal.SIGHUP)

        gateway.wait_tools("p49__echo")
        assert gateway.status("/readyz") == 200


def test_a_bad_file_is_explained_in_the_log_and_shown_to_prometheus(tmp_path: Path) -> None:
    with running_gateway(tmp_path, SERVERS) as gateway:
        gateway.wait_tools("a__echo")
        good = gateway.file.read_text()

        gateway.file.write_text(good.replace('"command"', '"comand"'))
        gateway.program.send(signal.SIGHUP)
        logged = gateway.program.wait_text("config.refused")

        (line,) = (one for one in logged.splitlines() if "config.refused" in one)
        assert "onegate.json:6:7" in json.loads(line)["errors"]
        assert "onegate_config_last_reload_successful 0.0" in gateway.page("/metrics")
        assert gateway.tool_names() == ["a__echo"]

        gateway.file.write_text(good)
        status, body = fetch(f"{gateway.admin}/-/reload", b"")
        assert (status, json.loads(body)["ok"]) == (200, True)
        assert "onegate_config_last_reload_successful 1.0" in gateway.page("/metrics")


def serving_config(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = {
        "listen": f"127.0.0.1:{free_port()}",
        "admin": f"127.0.0.1:{free_port()}",
        "servers": SERVERS,
    }
    write_config(folder, **config)
    return config


def test_a_terminal_that_goes_takes_the_gateway_along(tmp_path: Path) -> None:
    serving_config(tmp_path)
    with terminal(tmp_path, "serve") as shown:
        shown.wait_text("Ctrl-C stops it.")
        started = [each.pid for each in descendants(shown.process.pid)]
        assert started

        spare = os.open(os.devnull, os.O_RDONLY)
        os.dup2(spare, shown.fd)  # our end of the terminal is closed by that
        os.close(spare)

        eventually(lambda: shown.process.poll() is not None, 20, what="the gateway to leave")
        assert shown.process.returncode == 0
        assert not any(map(is_alive, started))


def test_hup_from_elsewhere_is_no_end_for_one_on_a_terminal(tmp_path: Path) -> None:
    config = serving_config(tmp_path)
    with terminal(tmp_path, "serve") as shown:
        shown.wait_text("Ctrl-C stops it.")

        write_config(tmp_path, **{**config, "default_decision": "deny"})
        shown.process.send_signal(signal.SIGHUP)

        shown.wait_text("config.reloaded")
        assert fetch(f"http://{config['admin']}/readyz")[0] == 200
        shown.press_ctrl_c()
        assert shown.wait_exit() == 0
