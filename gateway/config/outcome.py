"""What came of reading the configuration in a process of its own."""

import pickle
from collections.abc import Mapping
from pathlib import Path

from gateway.config.aside import NotRead, Reading
from gateway.config.complaints import Complaint, ConfigError
from gateway.config.loaded import Loaded

Outcome = Loaded | tuple[Complaint, ...]
"""A configuration, or all that is wrong with it."""


def outcome(reading: Reading) -> Loaded:
    """Wait for it. Raises `ConfigError`."""
    try:
        found: Outcome = pickle.loads(reading.wait())
    except NotRead as why:
        raise not_read(reading.file, why) from None
    if isinstance(found, Loaded):
        return found
    raise ConfigError(found)


def load_aside(path: Path | None, environ: Mapping[str, str], cwd: Path) -> Loaded:
    """The same as `load.load`, without `places`. Raises `ConfigError`."""
    try:
        reading = Reading(path, environ, cwd)
    except NotRead as why:
        raise not_read(str(path or "the configuration"), why) from None
    return outcome(reading)


def not_read(file: str, why: NotRead) -> ConfigError:
    return ConfigError([Complaint(file, f"cannot be read: {why}")])
