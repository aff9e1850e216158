"""What a process that stays does without, so that it starts soon and stays small."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

UNUSED = "rich"
"""structlog draws tracebacks with it if it is there. Ours are drawn in `observe.logs`; it and what
it needs would be a tenth of the time to start, and 5 MB."""


def load_lean() -> None:
    """Call this before anything imports structlog. The collector of cycles is off afterwards:
    modules that are being loaded leave it nothing to find. Enable it when all is there."""
    gc.disable()
    with _absent(UNUSED):
        import structlog  # noqa: F401  (it looks around but once)


@contextmanager
def _absent(name: str) -> Iterator[None]:
    """As if it were not installed; see `sys.modules` in "The import system"."""
    held = sys.modules.pop(name, None)
    sys.modules[name] = None  # type: ignore[assignment]  # this is how it is done
    try:
        yield
    finally:
        del sys.modules[name]
        if held is not None:
            sys.modules[name] = held
