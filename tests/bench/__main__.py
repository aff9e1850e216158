"""Measure: `python -m tests.bench --only small-calls --repeats 1 --seconds 1`."""

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tests.bench import echo, machine
from tests.bench.peers import PEERS, Peer
from tests.bench.report import Report
from tests.bench.workloads import WORKLOADS, Measured, Repeat
from tests.kit.installs import CACHE, InstallFailed

RESULTS = CACHE / "bench"


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure, how often and how long."""

    workloads: Sequence[str]
    peers: Sequence[Peer]
    repeats: int = 3
    seconds: float = 2.0
    idle_sessions: int = 200


def measure(settings: Settings) -> Report:
    """Go through the workloads so many times. Says on stderr where it is."""
    seen = machine.look()
    _say(seen.words())
    if not seen.is_quiet:
        _say("! THE MACHINE IS NOT QUIET: ratios may hold, figures do not")
    echo.command()
    peers = [peer for peer in settings.peers if _is_installed(peer)]
    found: list[Measured] = []
    details: list[dict[str, object]] = []
    for number in range(settings.repeats):
        with ExitStack() as stack:
            repeat = Repeat(peers, settings.seconds, settings.idle_sessions, stack, _say)
            for name in settings.workloads:
                _say(f"repeat {number + 1} of {settings.repeats}: {name}")
                WORKLOADS[name](repeat)
            found.append(repeat.found)
            details += [{"repeat": number, **each} for each in repeat.details]
    return Report(seen, found, settings.workloads, details)


def settings_of(words: Sequence[str] | None = None) -> Settings:
    parser = argparse.ArgumentParser(prog="make bench ARGS=...", description=__doc__)
    parser.add_argument("--only", default=",".join(WORKLOADS), help="workloads: %(default)s")
    parser.add_argument("--peers", default=",".join(PEERS), help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a window: %(default)s")
    parser.add_argument("--idle-sessions", type=int, default=200, help="default: %(default)s")
    given = parser.parse_args(words)
    workloads, peers = given.only.split(","), given.peers.split(",")
    if unknown := {*workloads} - {*WORKLOADS} | {*peers} - {*PEERS}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    chosen = [PEERS[name] for name in peers]
    return Settings(workloads, chosen, given.repeats, given.seconds, given.idle_sessions)


def main() -> None:
    # Whatever ends it, what it has started is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = measure(settings_of())
    print(report.table())
    file = report.write(RESULTS)
    _say(f"All figures: {file}")
    if failing := report.failing():
        _say(f"Does not hold: {'; '.join(failing)}")
        sys.exit(1)


def _is_installed(peer: Peer) -> bool:
    try:
        peer.install()
    except InstallFailed as failure:
        _say(f"! {peer.name} is left out: {failure}")
        return False
    return True


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
