"""One gateway for all of these tests, with every real server behind it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.gateway import Gateway, running_gateway
from tests.kit.processes import ROOT
from tests.peers import install

# A dozen servers start at once, each with a sibling that is asked for its era.
START_S = 180
Entry = dict[str, Any]


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that servers may see: a note, and a repository with one commit."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "note.txt").write_text("A note.\n")
    repository = folder / "repository"
    for command in (
        ["git", "init", "-q", str(repository)],
        [
            *["git", "-C", str(repository), "-c", "user.name=Ada", "-c", "user.email=ada@test"],
            *["commit", "-q", "--allow-empty", "-m", "The first commit"],
        ],
    ):
        subprocess.run(command, check=True, capture_output=True, timeout=30)
    return folder


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory, files: Path) -> Iterator[Gateway]:
    servers = {**ours(), **from_npm(files), **from_pypi(files), **notes()}
    with running_gateway(tmp_path_factory.mktemp("peers"), servers, wait="/livez") as started:
        started.wait_tools(
            *(f"{name}__{tool}" for name, tool in ONE_TOOL.items()), within_s=START_S
        )
        yield started


# A tool of each, to see that it is there.
ONE_TOOL = {
    "legacy": "test_simple_text",
    "modern": "test_simple_text",
    "everything": "echo",
    "files": "read_text_file",
    "memory": "read_graph",
    "thinking": "sequentialthinking",
    "time": "get_current_time",
    "git": "git_log",
    "sqlite": "list_tables",
    "notes-1": "add",
    "notes-2": "add",
    "notes-fast": "add",
    "notes-old": "add",
}


def ours() -> dict[str, Entry]:
    """The everything-server, once for each era. One process for everybody: whether a call was
    cancelled is asked of the process that it ran in, by another call."""
    return {
        era: _server(sys.executable, "-m", "tests.everything.server", "--era", era)
        | {"isolation": "shared"}
        for era in ("legacy", "modern")
    }


def from_npm(files: Path) -> dict[str, Entry]:
    def run(name: str, *arguments: str) -> Entry:
        return _server(install.node(), install.npm_program(f"mcp-server-{name}"), *arguments)

    memory = run("memory") | {"env": {"MEMORY_FILE_PATH": str(files / "memory.jsonl")}}
    return {
        "everything": run("everything"),
        "files": run("filesystem", str(files)),
        "memory": memory,
        "thinking": run("sequential-thinking"),
    }


def from_pypi(files: Path) -> dict[str, Entry]:
    newest, older = install.scripts("mcp-2"), install.scripts("mcp-1")
    repository, database = str(files / "repository"), str(files / "sqlite.db")
    return {
        "time": _server(str(newest / "mcp-server-time")),
        "git": _server(str(newest / "mcp-server-git"), "--repository", repository),
        "sqlite": _server(str(older / "mcp-server-sqlite"), "--db-path", database),
    }


def notes() -> dict[str, Entry]:
    """The small servers of this folder, each on its SDK."""
    sdks = {
        "notes-1": ("mcp-1", "with_mcp_1"),
        "notes-2": ("mcp-2", "with_mcp_2"),
        "notes-fast": ("mcp-2", "with_fastmcp"),
        "notes-old": ("mcp-old", "with_mcp_1"),
    }
    return {
        name: _server(install.python(environment), "-m", f"tests.peers.servers.{module}")
        for name, (environment, module) in sdks.items()
    }


def _server(command: str, *arguments: str) -> Entry:
    """Slow machines start slowly: real servers import a lot."""
    return {
        "command": command,
        "args": list(arguments),
        "cwd": str(ROOT),
        "start_timeout": f"{START_S}s",
    }
