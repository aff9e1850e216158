"""The process's environment, read in this one place, and what it says of our own folders."""

import os
from collections.abc import Mapping
from pathlib import Path


def environment() -> Mapping[str, str]:
    """The process's environment as it is now."""
    return dict(os.environ)


def state_folder(environ: Mapping[str, str]) -> Path | None:
    """Where to remember what was seen; None if there is no place to think of."""
    if chosen := environ.get("ONEGATE_STATE"):
        return Path(chosen)
    if base := environ.get("XDG_STATE_HOME"):
        return Path(base) / "onegate"
    home = environ.get("HOME") or environ.get("USERPROFILE")
    return Path(home) / ".local" / "state" / "onegate" if home else None
