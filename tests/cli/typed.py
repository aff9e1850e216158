"""Commands as a person types them: in a pipe, or on a terminal of 80 columns."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kit.processes import ROOT, kill_tree
from tests.kit.waiting import eventually

ONEGATE = (sys.executable, "-m", "gateway")
COLUMNS = 80
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environ(folder: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment in which nothing of whoever runs the tests is found."""
    kept = {key: held for key, held in os.environ.items() if not key.startswith("ONEGATE_")}
    own = {"XDG_CONFIG_HOME": str(folder), "ONEGATE_STATE": str(folder / "state")}
    return {**kept, **own, "PYTHONPATH": str(ROOT), "TERM": "xterm", **(more or {})}


def onegate(
    folder: Path, *words: str, text: str = "", env: Mapping[str, str] | None = None
) -> Ended:
    """Run a command in `folder`, its output in pipes."""
    done = subprocess.run(
        [*ONEGATE, *words],
        input=text,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environ(folder, env),
        timeout=50,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@dataclass(slots=True)
class Terminal:
    """A command on a terminal. What it shows, to stdout and stderr alike, is collected."""

    process: subprocess.Popen[bytes]
    fd: int
    raw: bytes = b""
    codes: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All it has shown so far, without colours."""
        while select.select([self.fd], [], [], 0)[0]:
            try:
                fresh = os.read(self.fd, 65536)
            except OSError:  # Linux says EIO when nobody holds the other end any more
                break
            if not fresh:
                break
            self.raw += fresh
        return ESCAPES.sub("", self.raw.decode(errors="replace")).replace("\r\n", "\n")

    def wait_text(self, words: str, within_s: float = 30.0) -> str:
        def shown() -> bool:
            ended = self.process.poll() is not None
            assert words in self.text or not ended, f"it left:\n{self.text}"
            return words in self.text

        eventually(shown, within_s, what=f"{words!r} in:\n{self.text}")
        return self.text

    def wait_exit(self, within_s: float = 20.0) -> int:
        end = time.monotonic() + within_s
        eventually(
            lambda: self.text is not None and self.process.poll() is not None,
            end - time.monotonic(),
            what=f"the end of:\n{self.text}",
        )
        return self.process.wait()

    def press_ctrl_c(self) -> None:
        os.write(self.fd, b"\x03")


@contextmanager
def terminal(folder: Path, *words: str, env: Mapping[str, str] | None = None) -> Iterator[Terminal]:
    """Start a command on a terminal of its own; in the end it is killed if it still runs."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))

    def on_terminal() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [*ONEGATE, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=environ(folder, env),
        preexec_fn=on_terminal,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        kill_tree(process.pid)
        process.wait()
        os.close(ours)


def write_config(folder: Path, **keys: Any) -> Path:
    """`onegate.yaml` in a folder, where commands find it by themselves."""
    file = folder / "onegate.yaml"
    file.write_text(json.dumps(keys, indent=2))
    return file


def demo(name: str, **keys: Any) -> dict[str, Any]:
    """A section of `servers:` that runs one of the example servers."""
    return {
        "command": sys.executable,
        "args": ["-m", f"gateway.demo.{name}"],
        "env_inherit": ["PYTHONPATH"],
        **keys,
    }
