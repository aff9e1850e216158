"""The suite across eras: one revision's scenarios, against a server that has the other era alone.

Not all can pass: some want what a server of the other era cannot say. Those stand in
across-eras.yml, each with the reason; any other failure, and any that passes after all, is a
surprise. `python -m tests.conformance.crossing` runs these legs alone.
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.conformance.run import Leg
from tests.conformance.suite import run_requirements, scored, warm_up
from tests.kit.gateway import running_gateway
from tests.kit.processes import ROOT

REASONS = Path(__file__).with_name("across-eras.yml")


@dataclass(frozen=True)
class Crossing:
    """The scenarios of one revision, and the only era that the server speaks."""

    revision: str
    era: str

    @property
    def name(self) -> str:
        return f"{self.revision} with a {self.era} server"


CROSSINGS = (Crossing("2025-11-25", "modern"), Crossing("2026-07-28", "legacy"))


@contextmanager
def served(era: str) -> Iterator[str]:
    """The URL of a gateway in front of an everything-server of one era, under its own names."""
    words = ["-m", "tests.everything.server", "--era", era]
    server = {"command": sys.executable, "args": words, "cwd": str(ROOT), "prefix": ""}
    section = {**server, "protocol": era, "required": True}
    with (
        tempfile.TemporaryDirectory() as folder,
        running_gateway(Path(folder), {"everything": section}) as gateway,
    ):
        yield gateway.url.replace("127.0.0.1", "localhost")


def legs(crossings: Sequence[Crossing] = CROSSINGS) -> Iterator[Leg]:
    for crossing in crossings:
        with served(crossing.era) as url:
            warm_up(crossing.revision, url)
            results = run_requirements(crossing.revision, url)
        yield Leg(crossing.name, scored(crossing.revision), results, is_scored=True)


def reasons(leg: str) -> Mapping[str, str]:
    """Scenarios that cannot pass in this leg, and why."""
    found = yaml.safe_load(REASONS.read_text()).get(leg)
    return dict(found or {})


def surprises(leg: Leg) -> list[str]:
    """Where a leg went otherwise than its reasons say, one sentence each."""
    known, failing = reasons(leg.name), set(leg.failing)
    return [
        *(f"{leg.name}: {name} fails without a reason" for name in sorted(failing - set(known))),
        *(f"{leg.name}: {name} passes after all" for name in sorted(set(known) - failing)),
    ]


def report() -> int:
    """Run and print these legs; the exit code."""
    wrong: list[str] = []
    for leg in legs():
        known = reasons(leg.name)
        print(leg.line, flush=True)
        for name in leg.failing:
            print(f"    {name}: {known.get(name, 'without a reason')}")
        for complaint in leg.complaints():
            if complaint.partition(":")[0] not in known:
                print(f"    {complaint}")
        wrong += surprises(leg)
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(report())
