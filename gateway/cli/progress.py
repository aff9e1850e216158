"""Wait for servers to come up, and tell on a terminal how far they are."""

import asyncio
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from gateway.cli.screen import visible
from gateway.edge.admin.operator import ServerReport

Show = Callable[[str], None]

LOOK_EVERY_S = 0.1
CLEAR = "\r\x1b[K"
STDERR = 2
EVERYTHING = re.compile(b"")
NO_CHATTER = re.compile(rb"(?!(\x1b\[\d+m)*[0-9:.]+(\x1b\[\d+m| )*info )")
"""All lines of the log, less those of the level at which it tells what goes well."""


async def settled(
    servers: Callable[[], Sequence[ServerReport]], show: Show | None, stop: asyncio.Event
) -> Sequence[ServerReport]:
    """Wait until each server has come up or failed once, or until `stop`. Bounded by what each
    may take to start. `show` is told how far they are."""
    began = time.monotonic()
    done: set[str] = set()
    while True:
        reports = servers()
        done |= {each.name for each in reports if each.state != "starting"}
        left = [each.name for each in reports if each.name not in done]
        if stop.is_set() or not left:
            return reports
        if show is not None:
            show(how_far(len(done), left, time.monotonic() - began))
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_EVERY_S):
                await stop.wait()


def how_far(done: int, left: Sequence[str], seconds: float) -> str:
    told = f"Starting servers: {done} of {done + len(left)} up, waiting for {', '.join(left)}"
    return told + (f" ({seconds:.0f} s)" if seconds >= 1 else " ...")


@contextmanager
def progress_line(fd: int, log_passes: re.Pattern[bytes] | None = None) -> Iterator[Show]:
    """A line that is written over and over on the terminal `fd`, and is gone in the end.

    With `log_passes`, standard error is collected meanwhile, so that nothing tears the line;
    lines that match are written out above it.
    """
    with tempfile.TemporaryFile() as held:
        stderr, taken = os.dup(STDERR), 0

        def show(text: str) -> None:
            nonlocal taken
            os.write(fd, CLEAR.encode())
            lines = os.pread(held.fileno(), 2**20, taken)
            lines = lines[: lines.rfind(b"\n") + 1]
            taken += len(lines)
            for line in lines.splitlines(keepends=True):
                if log_passes and log_passes.match(line):
                    os.write(stderr, line)
            os.write(fd, visible(text)[: shutil.get_terminal_size().columns - 1].encode())

        if log_passes is not None:
            os.dup2(held.fileno(), STDERR)
        try:
            yield show
        finally:
            os.dup2(stderr, STDERR)
            show("")
            os.close(stderr)
