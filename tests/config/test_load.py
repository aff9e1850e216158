"""Which file is loaded, what can be wrong with it as a file, and where its settings came from."""

import json
import os
from pathlib import Path

import pytest

from gateway.config.complaints import ConfigError
from gateway.config.load import find, load
from gateway.config.units import Address
from tests.config.corpus import ENVIRON, error_of_text, load_text, program

GOOD = "servers: {one: {command: server}}\n"


def _error(path: Path | None, cwd: Path, **environ: str) -> str:
    with pytest.raises(ConfigError) as refused:
        load(path, environ, cwd)
    return str(refused.value)


def test_the_file_named_wins_then_the_variable_then_the_folder_then_the_users_own(
    tmp_path: Path,
) -> None:
    own = tmp_path / "home/.config/onegate/onegate.yaml"
    own.parent.mkdir(parents=True)
    named, by_variable, here = (tmp_path / name for name in ("a.yaml", "b.yaml", "onegate.yaml"))
    for file in (own, named, by_variable, here):
        file.write_text(GOOD)
    environ = {"HOME": str(tmp_path / "home"), "ONEGATE_CONFIG": "b.yaml"}

    assert find(Path("a.yaml"), environ, tmp_path) == named
    assert find(None, environ, tmp_path) == by_variable
    environ["ONEGATE_CONFIG"] = ""
    assert find(None, environ, tmp_path) == here
    here.unlink()
    assert find(None, environ, tmp_path) == own
    environ["XDG_CONFIG_HOME"] = str(tmp_path / "xdg")
    with pytest.raises(ConfigError):
        find(None, environ, tmp_path)


def test_no_file_at_all_says_where_it_looked_and_how_to_get_one(tmp_path: Path) -> None:
    said = _error(None, tmp_path, HOME="/home/ann")

    assert said == (
        "onegate.yaml: no configuration found. Looked at onegate.yaml, "
        "/home/ann/.config/onegate/onegate.yaml; ONEGATE_CONFIG is not set. Write one "
        "(config.example.yaml shows all settings), or use the file of a client you have: "
        "-c PATH/claude_desktop_config.json"
    )


def test_a_missing_file_is_one_line_with_what_to_do(tmp_path: Path) -> None:
    assert _error(Path("gone.yaml"), tmp_path) == (
        "gone.yaml: there is no such file; config.example.yaml shows what to write"
    )
    assert _error(None, tmp_path, ONEGATE_CONFIG="gone.yaml") == (
        "ONEGATE_CONFIG: names gone.yaml, and there is no such file"
    )


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()

    assert _error(Path("conf"), tmp_path) == (
        "conf: is a folder; name the file in it, such as conf/onegate.yaml"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    file = tmp_path / "onegate.yaml"
    file.write_text(GOOD)
    file.chmod(0)

    assert _error(None, tmp_path) == "onegate.yaml: may not be read by this user"


def test_a_file_without_end_is_not_read_to_its_end() -> None:
    assert _error(Path("/dev/zero"), Path("/")) == (
        "dev/zero: is larger than 8 MiB; is it a configuration?"
    )


def test_relative_paths_count_from_the_file_and_the_tilde_is_the_home(tmp_path: Path) -> None:
    config = load_text(
        "listen: unix:run/a.sock\n"
        "servers: {one: {command: x, cwd: work, env_file: ~/one.env}}\n"
        "calls: {path: /var/log/calls.jsonl}\n",
        tmp_path,
    ).config

    assert config.listen == (Address(path=str(tmp_path / "run/a.sock")),)
    assert program(config, "one").cwd == tmp_path / "work"
    assert program(config, "one").env_file == Path("/home/ann/one.env")
    assert config.calls.path == Path("/var/log/calls.jsonl")


def test_every_setting_knows_its_line(tmp_path: Path) -> None:
    marks = load_text(
        "servers:\n  one:\n    command: server\n    args:\n      - a\n      - b\n"
        "tools:\n  - match: x\n    timeout: 1s\n",
        tmp_path,
    ).marks

    assert marks.line_of(("tools", 0, "timeout")) == 9
    assert marks.line_of(("tools", 0)) == 8
    assert marks.line_of(("servers", "one", "args", 1)) == 6
    assert marks.line_of(("servers",)) == 1
    for absent in [("tools", 0, "rate"), ("tools", 1), ("servers", "two"), ("log", "level"), ()]:
        assert marks.line_of(absent) is None


def test_a_clients_file_is_looked_up_by_the_same_paths(tmp_path: Path) -> None:
    marks = load_text('{\n"mcpServers": {\n"one": {"command": "x"}}}', tmp_path).marks

    assert marks.line_of(("servers", "one", "command")) == 3


def test_a_merged_setting_has_the_line_where_it_was_written(tmp_path: Path) -> None:
    loaded = load_text(
        "x-rule: &rule\n  timeout: 5s\n  queue: 1\n"
        "tools:\n  - match: x\n    <<: *rule\n    queue: 2\nservers: {one: {command: x}}\n",
        tmp_path,
    )

    assert loaded.config.tools[0].timeout_s == 5
    assert loaded.config.tools[0].queue == 2
    assert loaded.marks.line_of(("tools", 0, "timeout")) == 2
    assert loaded.marks.line_of(("tools", 0, "queue")) == 7


def test_a_thousand_servers_load(tmp_path: Path) -> None:
    text = "servers:\n" + "".join(
        f"  s{n}: {{command: npx, args: [-y, p{n}], env: {{TOKEN: '${{TOKEN}}'}}}}\n"
        for n in range(1000)
    )

    config = load_text(text, tmp_path).config

    assert len(config.servers) == 1000
    assert program(config, "s999").args == ("-y", "p999")


def test_a_thousand_mistakes_are_counted_and_not_all_shown(tmp_path: Path) -> None:
    text = "servers:\n" + "".join(f"  s{n}: {{comand: npx}}\n" for n in range(1000))

    said = error_of_text(text, tmp_path)

    assert said.endswith("\n1000 problems (950 more not shown)")
    assert said.count("did you mean `command`?") == 50


def test_all_complaints_come_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    said = error_of_text(
        "log: {level: loud}\nlisten: :80\nservers:\n  a: {command: '${NOT_SET}'}\n"
        "  b: {url: b.example}\nlog: {}\n",
        tmp_path,
    )

    places = [line.split(": ")[0] for line in said.splitlines() if line.startswith("onegate.yaml")]
    assert places == [
        "onegate.yaml:1:14",
        "onegate.yaml:2:9",
        "onegate.yaml:4:16",
        "onegate.yaml:5:12",
        "onegate.yaml:6:1",
    ]


def test_what_only_concerns_the_client_is_a_warning(tmp_path: Path) -> None:
    loaded = load_text(
        '{"mcpServers": {"one": {"command": "x", "timeout": 60, "autoApprove": ["a"],'
        ' "type": "stdio", "gallery": true}}, "theme": "dark"}',
        tmp_path,
        "mcp.json",
    )

    not_used = "a client's setting, not used here"
    said = [f"{warning.path[-1]}: {warning.problem}" for warning in loaded.warnings]
    assert said == [
        f"timeout: {not_used}; `timeout` in a rule under `tools` bounds calls",
        f"autoApprove: {not_used}; `decision` in a rule under `tools` allows and denies",
        f"gallery: {not_used}",
        f"theme: {not_used}",
    ]


def test_whatever_a_client_calls_a_server_becomes_a_name(tmp_path: Path) -> None:
    """Cline's marketplace names servers by where they live, people by what they do."""
    written = {
        "github.com/upstash/context7-mcp": "context7-mcp",
        "@them/server-files": "server-files",
        "My Server": "My-Server",
        "my server": "my-server",
        "my.server": "my-server-2",
        "a__b_": "a_b",
        "Größe": "Gr-e",
        "…": "server",
        "": "server-2",
        "x/" + "long" * 30: "long" * 10,
        "fine": "fine",
    }
    servers = {name: {"command": f"run {at}"} for at, name in enumerate(written)}
    file = json.dumps({"mcpServers": servers}, indent=1)

    loaded = load_text(file, tmp_path, "mcp.json")

    assert list(loaded.config.servers) == list(written.values())
    assert [one.path[1] for one in loaded.warnings] == list(written)[:-1]
    lines = [loaded.marks.line_of(("servers", name, "command")) for name in written.values()]
    assert lines == [4 + 3 * at for at in range(len(written))]
    assert "called `context7-mcp` here" in loaded.warnings[0].problem


def test_what_is_wrong_with_a_renamed_server_is_said_where_it_stands(tmp_path: Path) -> None:
    file = '{"mcpServers": {"My Server": {"command": "x", "args": 5}}}'

    said = error_of_text(file, tmp_path, "mcp.json")

    assert said.startswith("mcp.json:1:55: mcpServers.My Server.args: expected a list")


def test_what_a_client_switched_off_stays_off(tmp_path: Path) -> None:
    servers = load_text(
        '{"mcpServers": {"a": {"command": "x", "enabled": false},'
        ' "b": {"command": "x", "isActive": true}, "c": {"command": "x", "disabled": true}}}',
        tmp_path,
    ).config.servers

    assert [server.disabled for server in servers.values()] == [True, False, True]


def test_a_key_that_is_not_used_may_refer_to_what_is_not_there(tmp_path: Path) -> None:
    loaded = load_text(
        '{"mcpServers": {"one": {"command": "x", "icon": "${workspaceFolder}/x.png"}},'
        ' "inputs": ["${input:token}"]}',
        tmp_path,
    )

    assert [warning.path for warning in loaded.warnings] == [
        ("mcpServers", "one", "icon"),
        ("inputs",),
    ]


def test_the_environment_is_read_only_where_it_is_asked_for(tmp_path: Path) -> None:
    one = load_text("servers: {one: {command: x, env: {A: '${TOKEN}'}}}", tmp_path)

    assert program(one.config, "one").env == {"A": ENVIRON["TOKEN"]}
    assert dict(program(one.config, "one").env).keys() == {"A"}
