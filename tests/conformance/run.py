"""Run every leg of the conformance suite through the gateway and print a line for each.

`make conformance`, or `python -m tests.conformance.run`. Exits with 0 if the scored scenarios fail
exactly where expected-failures.yml says so.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.conformance.client import SCENARIOS, UNSCORED
from tests.conformance.suite import Check, Results, run_client, run_requirements, scored
from tests.kit.gateway import running_gateway
from tests.kit.processes import ROOT

EXPECTED = Path(__file__).with_name("expected-failures.yml")
ELSEWHERE = " over HTTP"
# Not scored, but ours to keep: what came after the revision, or waits for the suite's own example.
EXTRAS = {
    "2026-07-28": (
        "json-schema-2020-12",
        "http-header-validation",
        "http-custom-header-server-validation",
    ),
    "2025-11-25": ("json-schema-2020-12", "server-session-lifecycle", "server-sse-polling"),
}


@dataclass(frozen=True)
class Leg:
    """Some scenarios of one revision and how they went. A scenario passes without a failure."""

    name: str
    scenarios: Sequence[str]
    results: Results
    is_scored: bool

    @property
    def failing(self) -> list[str]:
        return [
            name
            for name in self.scenarios
            if not (checks := self.results.get(name))
            or any(each.status == "FAILURE" for each in checks)
        ]

    @property
    def checks(self) -> list[Check]:
        """Those that count: warnings do, notes and skipped ones do not."""
        every = (check for name in self.scenarios for check in self.results.get(name, ()))
        return [check for check in every if check.counts]

    @property
    def line(self) -> str:
        passed = len(self.scenarios) - len(self.failing)
        fine = sum(check.status == "SUCCESS" for check in self.checks)
        return (
            f"{self.name}: scenarios {passed}/{len(self.scenarios)}, "
            f"checks {fine}/{len(self.checks)}"
        )

    def complaints(self) -> Iterator[str]:
        """What did not go well, one line each."""
        for name in self.scenarios:
            if name not in self.results:
                yield f"{name}: did not run"
            for check in self.results.get(name, ()):
                if check.counts and check.status != "SUCCESS":
                    yield f"{name}: {check.status} {check.name}: {check.message[:300]}"


def legs(url: str, how: str = "") -> Iterator[Leg]:
    """Run one revision after the other; its scored leg first, then its extras one by one."""
    for revision, extras in EXTRAS.items():
        results = run_requirements(revision, url)
        yield Leg(revision + how, scored(revision), results, is_scored=True)
        for scenario in extras:
            named = f"{revision}{how} {scenario} (not scored)"
            yield Leg(named, [scenario], results, is_scored=False)


def client_legs() -> Iterator[Leg]:
    """The gateway as the client: every scenario without authorization, by revision."""
    for revision in EXTRAS:
        wanted = {name for one in SCENARIOS if (name := _of(revision, one)) is not None}
        results = {name: run_client(revision, name) for name in sorted(wanted)}
        named = f"{revision} as a client"
        yield Leg(named, sorted(wanted - UNSCORED), results, is_scored=True)
        for name in sorted(wanted & UNSCORED):
            yield Leg(f"{named} {name} (not scored)", [name], results, is_scored=False)


def _of(revision: str, scenario: str) -> str | None:
    """The name of a scenario, if it is of this revision."""
    own, _, name = scenario.partition(" ")
    return name if own == revision else None


@contextmanager
def served_elsewhere() -> Iterator[str]:
    """The same server behind two gateways: the second one reaches it over Streamable HTTP."""
    with served() as inner, tempfile.TemporaryDirectory() as folder:
        server = {"url": inner, "prefix": "", "required": True}
        with running_gateway(Path(folder), {"elsewhere": server}) as outer:
            yield outer.url.replace("127.0.0.1", "localhost")


@contextmanager
def served() -> Iterator[str]:
    """The URL of a gateway with the everything-server behind it, under its own names.

    By the name `localhost`, which the suite wants for its check of foreign hosts.
    """
    everything = {
        "command": sys.executable,
        "args": ["-m", "tests.everything.server"],
        "cwd": str(ROOT),
        "prefix": "",
        "required": True,
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        running_gateway(Path(folder), {"everything": everything}) as gateway,
    ):
        yield gateway.url.replace("127.0.0.1", "localhost")


def surprises(done: Sequence[Leg], expected: set[str]) -> list[str]:
    """Where scored scenarios differ from what is expected of them, one sentence each."""
    failing = {name for leg in done if leg.is_scored for name in leg.failing}
    return [
        *(f"{name} fails and is not in {EXPECTED.name}" for name in sorted(failing - expected)),
        *(f"{name} passes: take it out of {EXPECTED.name}" for name in sorted(expected - failing)),
    ]


def expected_failures() -> set[str]:
    return set(yaml.safe_load(EXPECTED.read_text())["server"])


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--url", help="an endpoint that runs already, in place of our own")
    url = options.parse_args().url
    return report(every_leg() if url is None else legs(url))


def every_leg() -> Iterator[Leg]:
    """Both revisions through one gateway and through two, and the gateway as the client."""
    with served() as url:
        yield from legs(url)
    with served_elsewhere() as url:
        yield from legs(url, ELSEWHERE)
    yield from client_legs()


def report(every: Iterable[Leg]) -> int:
    """Run and print these legs; the exit code."""
    done = []
    for leg in every:
        print(leg.line, flush=True)
        for complaint in leg.complaints():
            print(f"    {complaint}")
        done.append(leg)
    wrong = surprises(done, expected_failures())
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
