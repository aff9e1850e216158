"""One line on a terminal that tells who is still starting; lines of the log pass above it."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from types import TracebackType

from gateway.cli.screen import visible

CLEAR = "\r\x1b[K"
STDOUT, STDERR = 1, 2


class ProgressLine:
    """While it is shown, standard error is collected, and written out above it at each change."""

    def __enter__(self) -> "ProgressLine":
        self._held = tempfile.TemporaryFile()
        self._stderr = os.dup(STDERR)
        if os.isatty(STDERR):
            os.dup2(self._held.fileno(), STDERR)
        self._passed = 0
        return self

    def show(self, done: int, of: int, left: Sequence[str], seconds: float) -> None:
        told = f"Starting servers: {done} of {of} up. Waiting for {', '.join(left)}"
        told += f" ({seconds:.0f} s)" if seconds >= 1 else " ..."
        width = shutil.get_terminal_size().columns - 1
        self._write(visible(told)[:width])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.dup2(self._stderr, STDERR)
        self._write("")
        os.close(self._stderr)
        self._held.close()

    def _write(self, text: str) -> None:
        os.write(STDOUT, CLEAR.encode())
        fresh = os.pread(self._held.fileno(), 2**20, self._passed)
        self._passed += len(fresh)
        if fresh:
            os.write(self._stderr, fresh)
        os.write(STDOUT, text.encode())
