"""The files of `deploy/`, and the programs that judge and run them."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.kit.processes import ROOT

DEPLOY = ROOT / "deploy"
WHERE = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


def shipped(name: str) -> str:
    """The text of a file under `deploy/`."""
    return (DEPLOY / name).read_text()


def adapted(text: str, changes: Mapping[str, str]) -> str:
    """The text with what belongs to a real machine replaced by what belongs to a test.

    Each thing to replace must be there: a test of something else would be none.
    """
    for old, new in changes.items():
        assert old in text, f"{old!r} is not in it any more:\n{text}"
        text = text.replace(old, new)
    return text


def wanted(name: str) -> str:
    """The path of a program that tests/locked/system.sh installs; without it, skip."""
    found = shutil.which(name, path=WHERE)
    if found is None:
        pytest.skip(f"needs {name}: see tests/locked/system.sh")
    return found


def replaced(folder: Path, name: str, text: str) -> Path:
    """Write a file into a test's folder. Returns its path."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file
