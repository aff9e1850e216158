"""Read the configuration in a process of its own, which ends when that is done.

What reads and checks it takes as much memory as all the rest of a gateway, and a third of
the time it needs to start. So a gateway that stays has it done beside itself, and gets the values
over a pipe; what is wrong with the file comes back the same way.
"""

import pickle
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gateway.config.complaints import Complaint, ConfigError
from gateway.config.environ import environment
from gateway.config.loaded import Loaded

READS = "import pickle,sys; sys.path[:] = pickle.load(sys.stdin.buffer); import {0}; {0}.main()"
READER = "gateway.config.reader"
WITHIN_S = 60.0
"""A file may lie on a slow disk; what takes longer is a pipe that nobody writes to."""

Request = tuple[Path | None, Mapping[str, str], Path]
"""What `load.load` is given."""
Answer = Loaded | tuple[Complaint, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """Has begun. `finish` it once."""

    file: str
    process: "subprocess.Popen[bytes]"

    @classmethod
    def begin(cls, path: Path | None, environ: Mapping[str, str], cwd: Path) -> "Reading":
        """Begin to read the file that `load.load` would. Raises `ConfigError` if no process can
        be started."""
        shown = str(path or "the configuration")
        try:
            process = subprocess.Popen(
                # It finds what we found, wherever we were started; and nothing in this folder.
                [sys.executable, "-P", "-S", "-c", READS.format(READER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**environment(), "PYDANTIC_DISABLE_PLUGINS": "__all__"},
                start_new_session=True,  # Ctrl-C is ours to hear
            )
        except OSError as error:
            raise _failed(shown, f"no process can be started: {error.strerror}") from None
        request: Request = (path, dict(environ), cwd)
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:  # it has ended: `finish` sees why
            process.stdin.write(pickle.dumps(sys.path) + pickle.dumps(request))
        process.stdin = None
        return cls(shown, process)

    def finish(self) -> Loaded:
        """Wait for it. Raises `ConfigError`."""
        with self.process:
            try:
                written, told = self.process.communicate(timeout=WITHIN_S)
            except subprocess.TimeoutExpired:
                raise _failed(self.file, f"it takes longer than {WITHIN_S:.0f} s") from None
            finally:
                self.process.kill()  # does nothing where it has ended
        if self.process.returncode:
            said = told.decode(errors="replace").strip().rpartition("\n")[2]
            why = said or f"the process that reads it ended with {self.process.returncode}"
            raise _failed(self.file, f"{why}; `onegate check` reads it by itself")
        answer: Answer = pickle.loads(written)
        if isinstance(answer, Loaded):
            return answer
        raise ConfigError(answer)


def load_aside(path: Path | None, environ: Mapping[str, str], cwd: Path) -> Loaded:
    """The same as `load.load`, without `places`. Raises `ConfigError`."""
    return Reading.begin(path, environ, cwd).finish()


def _failed(file: str, why: str) -> ConfigError:
    return ConfigError([Complaint(file, f"cannot be read: {why}")])
