"""The files a configuration consists of, and whether what is in them has changed."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from gateway.config.loaded import Loaded
from gateway.config.model import Config, HttpServer

Prints = Mapping[Path, bytes | None]
"""A digest of each file's content; None where it cannot be read, in the midst of being
replaced most likely, or is a pipe: who reads that takes it from others, or waits for ever."""


def files_of(loaded: Loaded) -> frozenset[Path]:
    """The configuration's own, and all that it names."""
    named = (path for paths in files_of_servers(loaded.config).values() for path in paths)
    return frozenset({loaded.file, *loaded.secret_files, *named})


def files_of_servers(config: Config) -> Mapping[str, tuple[Path, ...]]:
    """By server, those that are read whenever it starts."""
    found: dict[str, tuple[Path, ...]] = {}
    for name, server in config.servers.items():
        if isinstance(server, HttpServer):
            files = (server.ca, server.cert, server.key)
        else:
            files = (server.env_file, None, None)
        found[name] = tuple(file for file in files if file is not None)
    return found


def prints(files: Iterable[Path]) -> Prints:
    """Reads them all. For use in a thread."""
    return {file: _print(file) for file in files}


def _print(file: Path) -> bytes | None:
    try:
        return hashlib.sha256(file.read_bytes()).digest() if file.is_file() else None
    except OSError:
        return None
