"""What goes on beside a measurement, in processes of its own: slow calls, a scraper."""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tests.bench.load import STARTED
from tests.bench.running import Running

SLOW_CALLS = 16
SETTLE_S = 0.2
EVERY_S = 1.0


@contextmanager
def slow_calls(gateway: Running, server: int, seconds: float) -> Iterator[None]:
    """Keep 16 calls that take a second each going on one server."""
    target = gateway.target(server)
    words = ["--work", "sleep", "--tool", gateway.tool("sleep", server), "--seconds", str(seconds)]
    spread = ["--in-flight", str(SLOW_CALLS), "--sessions", str(SLOW_CALLS)]
    with _module("tests.bench.load", [target.url, *words, *spread]):
        yield


@contextmanager
def scraping(gateway: Running, seconds: float) -> Iterator[None]:
    """Read `/metrics` each second, as Prometheus would that is in a hurry."""
    with _module("tests.bench.beside", [f"{gateway.admin}/metrics", str(seconds)]):
        yield


@contextmanager
def cores_awake() -> Iterator[None]:
    """Let no core go to sleep between two messages; see `awake`."""
    with ExitStack() as awake:
        for _ in range(os.cpu_count() or 1):
            awake.enter_context(_module("tests.bench.awake", []))
        yield


@contextmanager
def _module(module: str, words: Sequence[str]) -> Iterator[None]:
    """A module as a program, from when it says that it has started until the block ends."""
    command = [sys.executable, "-m", module, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if line.strip() != STARTED:
                raise ConnectionError(f"{module} did not start: {line!r}")
            time.sleep(SETTLE_S)
            yield
        finally:
            process.kill()


def main() -> None:
    url, seconds = sys.argv[1:]
    print(STARTED, flush=True)
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        with urllib.request.urlopen(url, timeout=10) as answer:
            answer.read()
        time.sleep(EVERY_S)


if __name__ == "__main__":
    main()
