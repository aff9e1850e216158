"""How a command ends when it cannot do what was asked: a few plain lines and an exit code.

0 fine, 1 the thing asked for failed, 2 wrong usage or configuration, 130 Ctrl-C.
"""

import errno
import sys
from pathlib import Path
from traceback import extract_tb
from types import TracebackType
from typing import IO, Any

import click

PACKAGE = Path(__file__).parents[1]

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What writing the output to a file meets where the disk is full or broken."""


class Failed(click.ClickException):
    """What was asked for failed. The message says what, where, and what to do."""

    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"onegate: {self.message}", file=file, err=True)


class Misconfigured(click.ClickException):
    """The configuration cannot be used. The message is its complaints, ready to read."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.message, file=file, err=True)


def told_as_bug(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Stands in for Python's own traceback (`sys.excepthook`): one line a person can report."""
    if issubclass(kind, KeyboardInterrupt):
        sys.exit(130)
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        click.echo(f"onegate: the output cannot be written: {error.strerror}", err=True)
        return
    for cause in causes(error):
        where = _where(cause.__traceback__) or _where(trace)
        told = f"{type(cause).__name__}: {cause}".replace("\n", " ")
        click.echo(f"onegate: this is a bug in onegate: {told}{where}", err=True)
    click.echo("Run it again with ONEGATE_TRACEBACK=1, and report what it says.", err=True)


def causes(error: BaseException) -> list[BaseException]:
    """What really happened, where tasks have wrapped it into groups."""
    if isinstance(error, BaseExceptionGroup):
        return [cause for one in error.exceptions for cause in causes(one)]
    return [error]


def _where(trace: TracebackType | None) -> str:
    """The innermost line of our own, if there is one."""
    ours = [frame for frame in extract_tb(trace) if Path(frame.filename).is_relative_to(PACKAGE)]
    if not ours:
        return ""
    file = Path(ours[-1].filename).relative_to(PACKAGE.parent)
    return f" ({file}:{ours[-1].lineno})"
