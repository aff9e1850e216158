"""What the distribution promises: its command, its dependencies, and their locked versions."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gateway
from tests.kit.house import modules

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IMPORTED_AS = {"pyyaml": "yaml", "prometheus-client": "prometheus_client"}


def names(requirements: list[str]) -> set[str]:
    """Distribution names, as the index spells them when it compares."""
    found = (re.match(r"[\w.-]+", line) for line in requirements)
    return {re.sub(r"[-_.]+", "-", each[0]).lower() for each in found if each}


def locked(file: str) -> list[str]:
    return (ROOT / "tests/locked" / file).read_text().splitlines()


def imported() -> set[str]:
    """Top-level packages from elsewhere that the gateway imports."""
    found = set[str]()
    for module in modules(ROOT):
        for node in ast.walk(module.tree) if module.is_product else ():
            if isinstance(node, ast.Import):
                found |= {each.name.split(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.split(".")[0])
    return found - sys.stdlib_module_names - {"gateway"}


def test_the_dependencies_are_what_the_gateway_imports_and_nothing_else() -> None:
    declared = {IMPORTED_AS.get(name, name) for name in names(PROJECT["dependencies"])}
    # pydantic-core comes with pydantic, at the one version that fits it.
    assert declared == imported() - {"pydantic_core"}


def test_every_dependency_is_locked_to_one_version() -> None:
    run, dev = locked("run.txt"), locked("dev.txt")
    assert names(PROJECT["dependencies"]) <= names(run)
    assert names(PROJECT["optional-dependencies"]["dev"]) <= names(dev)
    assert set(run) <= set(dev)
    assert all(re.match(r"[\w.-]+==[\w.!+]+($|; )", line) for line in dev), dev


def test_the_command_and_the_module_are_the_same_program() -> None:
    assert PROJECT["scripts"] == {"onegate": "gateway.cli.main:main"}
    said = [
        subprocess.run([*command, "--version"], cwd=ROOT, capture_output=True, text=True).stdout
        for command in (
            [sys.executable, "-m", "gateway"],
            [sys.executable, "-c", "from gateway.cli.main import main; main()"],
        )
    ]
    assert gateway.__version__ in said[0]
    assert said[0].split()[-1] == said[1].split()[-1]


def test_the_installed_version_is_the_one_the_package_says() -> None:
    try:
        installed = importlib.metadata.version("onegate")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("run from the checkout, not installed")
    assert installed == gateway.__version__


def test_importing_the_package_imports_nothing_heavy() -> None:
    """The example servers start as `python -m gateway.demo.dice`, so they pay for it each time."""
    script = (
        "import sys; before = set(sys.modules); import gateway; print(*set(sys.modules) - before)"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == ["gateway"]


def test_make_says_what_is_missing_when_there_is_no_python(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "tests/locked"):
        target = tmp_path / name
        target.parent.mkdir(exist_ok=True)
        target.symlink_to(ROOT / name)
    said = subprocess.run(
        ["make", "-C", str(tmp_path), "run", "PYTHON="], capture_output=True, text=True
    )
    assert said.returncode == 2
    assert "Python 3.11 or later" in said.stderr
    assert "Traceback" not in said.stderr
