"""The checkers a change must satisfy, run on a source tree the way a person would."""

import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(sys.executable).parent

CHECKERS: dict[str, tuple[str, ...]] = {
    "ruff": ("ruff", "check", "--quiet", "--output-format=concise"),
    "format": ("ruff", "format", "--check"),
    "mypy": ("mypy", "--no-error-summary"),
    "imports": ("lint-imports", "--no-logo"),
}
"""Each by the name its test has, with its command line."""


def check(checker: str, root: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run one checker in a tree. What it says on stderr is part of its stdout."""
    program, *words = CHECKERS[checker]
    return subprocess.run(
        [str(PROGRAMS / program), *words, *more],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
    )
