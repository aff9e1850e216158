"""Learn that a child process has exited, at once and under any event loop.

Watching its pipes is not enough: a grandchild may keep them open. Linux gives a file
descriptor that becomes readable; elsewhere a thread waits.
"""

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress


class ExitWatch:
    """Waits for `process` and reaps it; then calls `exited` once, on the loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        process: "subprocess.Popen[bytes]",
        exited: Callable[[int], object],
    ) -> None:
        self._loop, self._process, self._exited = loop, process, exited
        self._fd = _pidfd(process.pid)
        if self._fd >= 0:
            loop.add_reader(self._fd, self._ready)
        else:
            threading.Thread(target=self._wait, name=f"exit-{process.pid}", daemon=True).start()

    def close(self) -> None:
        """Stop watching. The process may still be there."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _ready(self) -> None:
        code = self._process.poll()
        if code is not None:
            self.close()
            self._exited(code)

    def _wait(self) -> None:
        code = self._process.wait()
        with suppress(RuntimeError):  # the loop is closed: nobody wants to know any more
            self._loop.call_soon_threadsafe(self._exited, code)


def _pidfd(pid: int) -> int:
    """A descriptor for the process; -1 where there is no such thing (macOS, old kernels)."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1
