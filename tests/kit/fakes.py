"""How a configuration names the fake server, and any other program of the tests."""

import sys
from pathlib import Path
from typing import Any

SERVERS = Path(__file__).parent / "servers"
FAKE = SERVERS / "fake.py"


def fake_argv(*flags: object) -> list[str]:
    """The command line of the fake server. `-S`: it needs no packages, and starts faster."""
    return [sys.executable, "-S", str(FAKE), *map(str, flags)]


def fake(*flags: object, **keys: Any) -> dict[str, Any]:
    """A section of `servers:` that runs the fake server with these flags; `keys` are added."""
    command, *args = fake_argv(*flags)
    return {"command": command, "args": args, **keys}
