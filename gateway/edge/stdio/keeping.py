"""Keep on disk what a gateway answered last: a file for each gateway, and token.

Its name is a digest, so neither can be read from it.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Raw

from gateway.edge.stdio.work import Work
from gateway.eras.seen import Seen
from gateway.protocol.jsonrpc import Fields, Request

FORMAT = 1
LATER_S = 0.2
"""Lists come together; they are written together."""


class Kept(msgspec.Struct, frozen=True):
    format: int = FORMAT
    results: dict[str, Raw] = {}


def file_of(folder: Path, about: Sequence[str]) -> Path:
    """`about`: the gateway's address and our token, or its configuration."""
    digest = sha256("\0".join(about).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return folder / "bridge" / f"{digest}.json"


class Keeping:
    """Reads once, writes what is new. A folder that cannot be written costs one line of log."""

    def __init__(self, file: Path | None, work: Work, tell: Callable[[str], None]) -> None:
        self.seen = Seen()
        self._file = file
        self._work = work
        self._tell = tell
        self._writing: asyncio.Task[None] | None = None
        self._is_warned = False
        if file is not None:
            self.seen.recall(_read(file))
        self._before = dict(self.seen.results)

    def keep(self, request: Request, revision: str, result: Fields) -> bool:
        """True if this is new."""
        is_new = self.seen.keep(request, revision, result)
        if is_new and self._writing is None and self._file is not None:
            self._writing = self._work.start(self._write_soon(self._file))
        return is_new

    async def _write_soon(self, file: Path) -> None:
        try:
            await asyncio.sleep(LATER_S)
        finally:  # also at the end of the conversation
            self._writing = None
            self._write(file)

    def _write(self, file: Path) -> None:
        """Beside what others have written meanwhile: several may stand before one gateway."""
        ours = {k: v for k, v in self.seen.results.items() if self._before.get(k) != v}
        fresh = file.with_suffix(f".{os.getpid()}.new")
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh.write_bytes(msgspec.json.encode(Kept(results=_read(file) | ours)))
            fresh.replace(file)
        except OSError as error:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
            if not self._is_warned:
                self._is_warned = True
                self._tell(f"cannot remember lists in {file.parent}: {error.strerror}")


def _read(file: Path) -> dict[str, Raw]:
    """What is kept there; nothing if it is not ours, or damaged."""
    try:
        text = file.read_text("utf-8") if file.is_file() else ""
        kept = msgspec.json.decode(text, type=Kept)
    except (OSError, ValueError):
        return {}
    return {k: Raw(bytes(v)) for k, v in kept.results.items()} if kept.format == FORMAT else {}
