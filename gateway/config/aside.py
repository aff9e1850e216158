"""Read the configuration in a process of its own, which ends when that is done.

What reads and checks it takes as much memory as all the rest of a gateway, and a third of
the time it needs to start. So a gateway that stays has it done beside itself, and gets the values
over a pipe; what is wrong with the file comes back the same way (`outcome`). This module imports
next to nothing: a gateway that starts begins with it, and loads all else meanwhile.
"""

import pickle
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from gateway.config.environ import environment

READS = "import pickle,sys; sys.path[:] = pickle.load(sys.stdin.buffer); import {0}; {0}.main()"
READER = "gateway.config.reader"
WITHIN_S = 60.0
"""A file may lie on a slow disk; what takes longer is a pipe that nobody writes to."""

Request = tuple[Path | None, Mapping[str, str], Path]
"""What `load.load` is given."""


class NotRead(Exception):
    """Nothing came of it, and the file need not be to blame. The message says why."""


class Reading:
    """Begins to read the file that `load.load` would. Raises `NotRead`. `wait` for it once."""

    def __init__(self, path: Path | None, environ: Mapping[str, str], cwd: Path) -> None:
        self.file = str(path or "the configuration")
        try:
            self.process = subprocess.Popen(
                # It finds what we found, wherever we were started; and nothing in this folder.
                [sys.executable, "-P", "-S", "-c", READS.format(READER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**environment(), "PYDANTIC_DISABLE_PLUGINS": "__all__"},
                start_new_session=True,  # Ctrl-C is ours to hear
            )
        except OSError as error:
            raise NotRead(f"no process can be started: {error.strerror}") from None
        request: Request = (path, dict(environ), cwd)
        assert self.process.stdin is not None
        with suppress(BrokenPipeError), self.process.stdin as stdin:  # `wait` sees why
            stdin.write(pickle.dumps(sys.path) + pickle.dumps(request))
        self.process.stdin = None

    def wait(self) -> bytes:
        """What `reader` has written. Raises `NotRead`."""
        with self.process:
            try:
                written, told = self.process.communicate(timeout=WITHIN_S)
            except subprocess.TimeoutExpired:
                raise NotRead(f"it takes longer than {WITHIN_S:.0f} s") from None
            finally:
                self.process.kill()  # does nothing where it has ended
        if self.process.returncode:
            said = told.decode(errors="replace").strip().rpartition("\n")[2]
            why = said or f"the process that reads it ended with {self.process.returncode}"
            raise NotRead(f"{why}; `onegate check` reads it by itself")
        return written

    def drop(self) -> None:
        """Nobody waits for it any more."""
        self.process.kill()
