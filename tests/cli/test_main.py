"""The command as a whole: what there is, how it ends, what it costs to start."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway import __version__
from gateway.cli.ending import told_as_bug
from gateway.cli.main import OUTCOMES, main
from tests.kit.processes import ROOT


@pytest.fixture(autouse=True)
def _own_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


def test_the_version_is_told() -> None:
    told = CliRunner().invoke(main, ["--version"])

    assert (told.exit_code, told.stdout) == (0, f"onegate, version {__version__}\n")


def test_help_lists_the_commands_in_the_order_of_a_day() -> None:
    told = CliRunner().invoke(main, ["--help"]).stdout

    listed = [line.split()[0] for line in told.partition("Commands:\n")[2].splitlines()]
    assert listed == [
        *("serve", "stdio", "check", "schema", "servers", "tools"),
        *("call", "explain", "calls", "health", "token"),
    ]


def test_every_command_that_the_readme_names_exists() -> None:
    readme = (ROOT / "README.md").read_text().partition("## Commands")[2].partition("## ")[0]

    named = {words.split("`")[0].split()[0] for words in readme.split("`onegate ")[1:]}

    assert named
    assert named <= set(main.commands)


def test_calls_can_be_chosen_by_every_outcome_that_the_readme_names() -> None:
    (row,) = (
        line
        for line in (ROOT / "README.md").read_text().splitlines()
        if line.startswith("| `outcome` |")
    )

    assert tuple(row.split("`")[3::2]) == OUTCOMES


@pytest.mark.parametrize(
    "words",
    [
        ["frobnicate"],
        ["servers", "--jason"],
        ["call"],
        ["calls", "--last", "many"],
        ["calls", "--last", "-1"],
        ["calls", "--outcome", "error"],
        ["call", "dice__roll", "{"],
        ["call", "dice__roll", "[1]"],
        ["call", "dice__roll", "six"],
        ["servers", "--admin", "nowhere"],
        ["servers", "--admin", "127.0.0.1:port"],
    ],
)
def test_wrong_usage_exits_with_2_and_says_so_on_stderr(words: list[str]) -> None:
    told = CliRunner().invoke(main, words)

    assert told.exit_code == 2
    assert told.stdout == ""
    assert told.stderr


def test_a_mistyped_command_is_answered_with_the_nearest_one() -> None:
    assert "'servers'" in CliRunner().invoke(main, ["severs"]).stderr


def loaded_by(*words: str) -> set[str]:
    """The modules that a command has loaded when it ends."""
    script = (
        "import sys\nfrom gateway.cli.main import main\n"
        f"try: main({list(words)})\nexcept SystemExit: print(*sys.modules, file=sys.__stdout__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=30
    )
    return set(done.stdout.split())


def test_telling_the_version_loads_nothing_heavy() -> None:
    loaded = loaded_by("--version")

    assert "click" in loaded
    assert not loaded & {"rich", "aiohttp", "pydantic", "asyncio", "structlog", "yaml", "msgspec"}


def test_asking_for_health_loads_no_gateway() -> None:
    loaded = loaded_by("health", "--admin", "127.0.0.1:1")

    assert "gateway.cli.health" in loaded
    assert not loaded & {"rich", "aiohttp", "asyncio", "structlog", "yaml", "gateway.app.gateway"}


def test_a_bug_is_told_in_a_line_that_can_be_reported(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ExceptionGroup("tasks", [KeyError("no\nsuch")])
    except ExceptionGroup as group:
        told_as_bug(type(group), group, group.__traceback__)

    told = capsys.readouterr().err.splitlines()
    assert told[0] == r"onegate: this is a bug in onegate: KeyError: 'no\nsuch'"
    assert "ONEGATE_TRACEBACK=1" in told[1]
    assert len(told) == 2


def test_a_disk_without_room_for_the_output_is_no_bug() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gateway", "schema"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            timeout=30,
        )

    assert done.returncode == 1
    assert done.stderr == "onegate: the output cannot be written: No space left on device\n"


def test_the_current_folder_may_be_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); "
    script += "from gateway.cli.main import main; main(['servers'])"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
        timeout=30,
    )

    assert done.returncode == 1
    assert done.stderr == (
        "onegate: the current folder does not exist any more; change to another\n"
    )
