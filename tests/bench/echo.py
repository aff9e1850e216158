"""The server behind everything that is measured: compiled where there is a C compiler."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.kit.installs import CACHE

HERE = Path(__file__).parent
SOURCE = HERE / "echo_server.c"
FALLBACK = HERE / "echo_server.py"


def command() -> list[str]:
    """How to start it. Compiles it into `.cache/bench/` if that was not done since it changed."""
    program = CACHE / "bench" / "echo_server"
    if program.is_file() and program.stat().st_mtime >= SOURCE.stat().st_mtime:
        return [str(program)]
    compiler = shutil.which("cc")
    if compiler is None:
        print("! no C compiler (cc): the server in Python limits what is measured", file=sys.stderr)
        return [sys.executable, "-S", str(FALLBACK)]
    program.parent.mkdir(parents=True, exist_ok=True)
    # Under another name first: another run of this may be starting it right now.
    made = program.with_suffix(".new")
    subprocess.run([compiler, "-O2", "-o", str(made), str(SOURCE)], check=True, timeout=60)
    made.replace(program)
    return [str(program)]


def environment(name: str, tools: int, start_ms: int = 0) -> dict[str, str]:
    return {"ECHO_NAME": name, "ECHO_TOOLS": str(tools), "ECHO_START_MS": str(start_ms)}


def sections(count: int, tools: int, start_ms: int = 0) -> dict[str, Mapping[str, Any]]:
    """`mcpServers` of a client's file, which all gateways understand: s0, s1, ..."""
    program, *args = command()
    return {
        f"s{number}": {
            "command": program,
            "args": args,
            "env": environment(f"s{number}", tools, start_ms),
        }
        for number in range(count)
    }


def is_echo(words: list[str]) -> bool:
    """Whether a command line is that of such a server."""
    return any(word.endswith(("/echo_server", "/echo_server.py")) for word in words[:3])
