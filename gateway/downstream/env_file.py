"""Read the NAME=VALUE lines of an `env_file`.

The common ground of what other tools take: `export`, comments, single quotes for
text as it stands, double quotes with escapes. Nothing is replaced inside values and
nothing is executed.
"""

import os
import re
import select
import time
from pathlib import Path

PIPE_WITHIN_S = 10.0
"""Password managers mount such a file as a pipe, and may ask their user before they write."""

_LINE = re.compile(
    r"""
    (?:export\s+)? (?P<name>[A-Za-z_][A-Za-z0-9_]*) \s*=\s*
    (?: '(?P<literal>[^']*)' \s*(?:\#.*)?
      | "(?P<quoted>(?:[^"\\]|\\.)*)" \s*(?:\#.*)?
      | (?P<bare>(?!['"]).*)
    )
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(.)")
_MEANINGS = {"n": "\n", "r": "\r", "t": "\t"}


def read_text(path: Path) -> str:
    """What is in the file; from a pipe, what is written to it soon: for use in a thread then.

    Raises OSError, or UnicodeDecodeError.
    """
    if not path.is_fifo():
        return path.read_text(encoding="utf-8-sig")
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # else it hangs until somebody writes
    try:
        return _from_pipe(fd, time.monotonic() + PIPE_WITHIN_S).decode("utf-8-sig")
    finally:
        os.close(fd)


def _from_pipe(fd: int, until: float) -> bytes:
    poll, found = select.poll(), bytearray()
    poll.register(fd, select.POLLIN)
    while True:
        # No event: nobody has written yet. One with nothing to read: who wrote has gone.
        left_s = until - time.monotonic()
        if left_s <= 0 or not poll.poll(left_s * 1000):
            raise TimeoutError(0, "nobody wrote to this pipe in time")
        piece = os.read(fd, 1 << 16)
        if not piece:
            return bytes(found)
        found += piece


def parse_env(text: str) -> dict[str, str]:
    """Names and values; the last of a name counts.

    Raises ValueError naming the line, never its content: that may be a secret.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        value = None if match is None else _value(match)
        if match is None or value is None or "\0" in value:
            raise ValueError(f"line {number}: expected NAME=VALUE")
        found[match["name"]] = value
    return found


def _value(match: re.Match[str]) -> str:
    if match["literal"] is not None:
        return match["literal"]
    if match["quoted"] is not None:
        return _ESCAPE.sub(lambda found: _MEANINGS.get(found[1], found[1]), match["quoted"])
    return re.split(r"\s+#", match["bare"], maxsplit=1)[0].strip()
