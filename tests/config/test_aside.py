"""Reading in a process of its own: the same values, the same complaints, and nothing left over."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from gateway.config import aside
from gateway.config.aside import Reading
from gateway.config.complaints import ConfigError
from gateway.config.load import load
from gateway.config.outcome import load_aside, outcome
from tests.config.corpus import CORPUS, ENVIRON, load_file


@pytest.mark.parametrize("name", ["everything.yaml", "remote.yaml"])
def test_it_finds_what_is_found_in_this_process(name: str) -> None:
    file = CORPUS / "good" / name

    here, there = load_file(file), load_aside(file, ENVIRON, file.parent)

    assert there.config == here.config
    assert (there.file, there.secrets, there.secret_files) == (
        here.file,
        here.secrets,
        here.secret_files,
    )
    assert there.warnings == here.warnings
    assert there.marks.line_of(("listen",)) == here.marks.line_of(("listen",))


def test_what_is_wrong_is_said_in_the_same_words(tmp_path: Path) -> None:
    file = tmp_path / "onegate.yaml"
    file.write_text("servers:\n  one: {comand: npx}\nlisten: 5\n")

    with pytest.raises(ConfigError) as here:
        load(file, ENVIRON, tmp_path)
    with pytest.raises(ConfigError) as there:
        load_aside(file, ENVIRON, tmp_path)

    assert str(there.value) == str(here.value)
    assert there.value.complaints == here.value.complaints


def test_whoever_has_it_read_does_not_load_what_reads_it() -> None:
    file = CORPUS / "good" / "everything.yaml"
    words = (
        "import sys; from pathlib import Path; from gateway.config.outcome import load_aside\n"
        f"load_aside(Path({str(file)!r}), {ENVIRON!r}, Path('/'))\n"
        "print(*sorted({'pydantic', 'pydantic_core', 'yaml'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, check=True, text=True)

    assert not done.stdout.strip()


def test_secrets_go_over_the_pipe_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "slow")
    file = tmp_path / "onegate.yaml"
    file.write_text("instructions: ${file:slow} ${SECRET}\n")
    reading = Reading(file, {"SECRET": "canary"}, tmp_path)

    process = psutil.Process(reading.process.pid)
    assert "canary" not in f"{process.cmdline()} {process.environ()}"
    (tmp_path / "slow").write_text("slowly")

    assert outcome(reading).config.instructions == "slowly canary"


def test_what_never_comes_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aside, "WITHIN_S", 0.2)
    os.mkfifo(tmp_path / "never")
    file = tmp_path / "onegate.yaml"
    file.write_text("instructions: ${file:never}\n")
    reading = Reading(file, ENVIRON, tmp_path)

    with pytest.raises(ConfigError, match="cannot be read: it takes longer than"):
        outcome(reading)

    assert reading.process.poll() is not None


def test_a_reader_that_dies_is_a_complaint(tmp_path: Path) -> None:
    reading = Reading(tmp_path / "onegate.yaml", ENVIRON, tmp_path)
    reading.process.kill()

    with pytest.raises(ConfigError, match="cannot be read: the process that reads it ended"):
        outcome(reading)


def test_a_machine_that_starts_nothing_is_a_complaint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))

    with pytest.raises(ConfigError, match="cannot be read: no process can be started"):
        load_aside(tmp_path / "onegate.yaml", ENVIRON, tmp_path)
