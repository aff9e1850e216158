"""The process that reads the configuration for a gateway; `aside` starts it, and says why."""

import gc
import pickle
import sys
from dataclasses import replace

from gateway.config.aside import Request
from gateway.config.complaints import ConfigError
from gateway.config.outcome import Outcome


def main() -> None:
    """Read what standard input asks for; write to standard output what came of it."""
    gc.disable()  # it ends before there is any garbage
    request: Request = pickle.load(sys.stdin.buffer)
    sys.stdout.buffer.write(pickle.dumps(_answer(request)))


def _answer(request: Request) -> Outcome:
    from gateway.config.load import load  # noqa: PLC0415  (after the collector is off)

    try:
        return replace(load(*request), places=None)
    except ConfigError as error:
        return error.complaints
