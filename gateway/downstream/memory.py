"""What is remembered of a server from one run of the gateway to the next.

Its eras, so that no probe is needed; its listing, so that a restarted gateway has
something to offer before the first server is up. A file for each way of starting a
server, under a digest: neither arguments nor environment can be read from its name.
"""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import msgspec
import structlog
from msgspec import Raw

from gateway.catalog.entries import Listing
from gateway.protocol.revisions import Era

log = structlog.get_logger()

FORMAT = 1


class Remembered(msgspec.Struct, frozen=True):
    """`eras`, preferred first; `offer` is the revision a picky server took."""

    format: int = FORMAT
    eras: tuple[Era, ...] = ()
    offer: str | None = None
    transport: str | None = None
    """`http` or `sse`, for servers that are reached over HTTP."""
    version: str = ""
    """Of the server, as it introduced itself: another one calls for another probe."""
    tools: tuple[dict[str, Raw], ...] = ()
    prompts: tuple[dict[str, Raw], ...] = ()
    resources: tuple[dict[str, Raw], ...] = ()
    templates: tuple[dict[str, Raw], ...] = ()
    capabilities: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    """Those of its other era, if it has two."""
    instructions: str | None = None

    @classmethod
    def of(cls, listing: Listing) -> "Remembered":
        return cls(
            tools=listing.tools,  # type: ignore[arg-type]  # shallow by construction
            prompts=listing.prompts,  # type: ignore[arg-type]
            resources=listing.resources,  # type: ignore[arg-type]
            templates=listing.templates,  # type: ignore[arg-type]
            capabilities=tuple(sorted(listing.capabilities)),
            instructions=listing.instructions,
        )

    def listing(self, server: str) -> Listing:
        return Listing(
            server,
            tools=self.tools,
            prompts=self.prompts,
            resources=self.resources,
            templates=self.templates,
            capabilities=frozenset(self.capabilities),
            instructions=self.instructions,
        )


def digest(parts: Sequence[str]) -> str:
    """One name for one way of starting a server."""
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


@dataclass(slots=True)
class Memory:
    """Files under one folder. A folder that cannot be written costs a warning, nothing else."""

    folder: Path | None
    _warned: bool = field(default=False)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One at a time: what is told last is what stays."""

    def recall(self, key: str) -> Remembered | None:
        """Read at start, before anything is served; None for missing or unreadable."""
        if self.folder is None:
            return None
        try:
            found = msgspec.json.decode(self._path(key).read_bytes(), type=Remembered)
        except (FileNotFoundError, NotADirectoryError):
            return None  # and if nothing can be written there, that is said once
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            log.warning("memory.unreadable", file=str(self._path(key)), why=str(error))
            return None
        return found if found.format == FORMAT else None

    async def remember(self, key: str, what: Remembered) -> None:
        if self.folder is None:
            return
        try:
            await asyncio.to_thread(self._write, key, msgspec.json.encode(what))
        except OSError as error:
            self._warn(error)

    def _write(self, key: str, content: bytes) -> None:
        path = self._path(key)
        fresh = path.with_suffix(f".{os.getpid()}.new")
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh.write_bytes(content)
        fresh.replace(path)

    def _warn(self, error: OSError) -> None:
        """Once for all servers, here on the event loop: their files are written at one time."""
        if not self._warned:
            self._warned = True
            log.warning(
                "memory.unwritable",
                folder=str(self._path("").parent),
                why=str(error),
                remedy="set ONEGATE_STATE to a folder that can be written",
            )

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / "servers" / f"{key}.json"
