"""`onegate check` and `onegate schema`: configurations looked over."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli.main import main
from tests.kit.processes import ROOT

GOOD = "servers:\n  dice: {command: python, args: [-m, gateway.demo.dice]}\n"
DOUBTFUL = "servers:\n  ghost: {command: no-such-program-at-all}\n"
BAD = "servers:\n  dice: {comand: python}\nlisen: 127.0.0.1:1\n"


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.delenv("ONEGATE_CONFIG", raising=False)


def check(text: str, *words: str) -> Result:
    Path("onegate.yaml").write_text(text)
    return CliRunner().invoke(main, ["check", *words])


def test_a_good_configuration_is_ok_and_summed_up() -> None:
    told = check(GOOD)

    assert (told.exit_code, told.stderr) == (0, "")
    assert told.stdout.splitlines() == [
        "onegate.yaml: OK",
        "  1 server: dice",
        "  0 rules for tools; else allow",
        "  clients connect to 127.0.0.1:8765",
        "  operators connect to 127.0.0.1:8766",
    ]


def test_every_error_is_told_at_once_on_stderr_with_its_place() -> None:
    told = check(BAD)

    assert (told.exit_code, told.stdout) == (2, "")
    assert "onegate.yaml:2:10: servers.dice.comand: unknown key" in told.stderr
    assert "did you mean `command`?" in told.stderr
    assert "onegate.yaml:3:1: lisen: unknown key" in told.stderr


def test_a_doubt_is_a_warning_and_costs_nothing_unless_asked() -> None:
    told, strict = check(DOUBTFUL), check(DOUBTFUL, "--strict")

    assert (told.exit_code, strict.exit_code) == (0, 1)
    assert "onegate.yaml:2:20: warning: servers.ghost.command: no such program" in told.stderr
    assert told.stdout.startswith("onegate.yaml: OK, with 1 warning\n")


def test_a_program_is_looked_for_on_the_path_that_its_server_gets(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "only-here"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    section = {"command": "only-here", "env": {"PATH": str(program.parent)}}

    told = check(json.dumps({"servers": {"one": section, "two": {"command": "only-here"}}}))

    assert "servers.two.command" in told.stderr
    assert "servers.one.command" not in told.stderr


@pytest.mark.parametrize(
    ("text", "ok", "code", "severity"), [(BAD, False, 2, "error"), (DOUBTFUL, True, 0, "warning")]
)
def test_json_tells_each_problem_by_parts(text: str, ok: bool, code: int, severity: str) -> None:
    told = check(text, "--json")

    report = json.loads(told.stdout)
    assert (told.exit_code, report["ok"]) == (code, ok)
    first = report["problems"][0]
    assert first["severity"] == severity
    assert (first["file"], first["line"]) == ("onegate.yaml", 2)
    assert first["path"][0] == "servers"


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_no_secret_is_shown_whatever_is_wrong(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKER", "hunter2hunter2")
    text = "servers:\n  a: {command: x, env: {T: s3cr3t-value}, cwd: [a], args: ['${TRACKER}']}\n"

    told = check(text, *words)

    assert told.exit_code == 2
    for secret in ("hunter2hunter2", "s3cr3t-value"):
        assert secret not in told.output


def test_the_file_may_be_named_in_both_ways(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(GOOD)

    for words in (["other.yaml"], ["-c", "other.yaml"]):
        assert CliRunner().invoke(main, ["check", *words]).stdout.startswith("other.yaml: OK")


def test_without_any_configuration_it_says_where_it_looked() -> None:
    told = CliRunner().invoke(main, ["check"])

    assert told.exit_code == 2
    assert "no configuration found. Looked at onegate.yaml" in told.stderr


def test_the_example_configuration_leaves_no_doubts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    told = CliRunner().invoke(main, ["check", "--strict", "config.example.yaml"])

    assert (told.exit_code, told.stderr) == (0, "")


def test_the_schema_is_one_json_document() -> None:
    told = CliRunner().invoke(main, ["schema"])

    assert told.exit_code == 0
    assert json.loads(told.stdout)["title"] == "onegate"
