"""The official suite, through the gateway: the counts that we hold."""

import pytest

from tests.conformance.run import Leg, expected_failures, legs, served, surprises
from tests.conformance.suite import Check


@pytest.fixture(scope="module")
def done() -> list[Leg]:
    with served() as url:
        return list(legs(url))


@pytest.mark.conformance
@pytest.mark.timeout(600)
def test_every_scored_scenario_of_the_modern_revision_passes(done: list[Leg]) -> None:
    leg = done[0]
    assert leg.line == "2026-07-28: scenarios 37/37, checks 120/120", list(leg.complaints())


@pytest.mark.conformance
@pytest.mark.timeout(600)
def test_every_scored_scenario_of_the_legacy_revision_passes(done: list[Leg]) -> None:
    """Of the suite's 70 checks one looks at event streams, and has nothing to look at where
    three concurrent lists are answered as JSON: `server-sse-streams-functional` is a note then."""
    leg = next(leg for leg in done if leg.name == "2025-11-25")
    assert leg.line == "2025-11-25: scenarios 30/30, checks 69/69", list(leg.complaints())
    notes = [each.name for each in leg.results["server-sse-multiple-streams"] if not each.counts]
    assert notes == ["server-sse-streams-functional"]
    assert not expected_failures()


@pytest.mark.conformance
@pytest.mark.timeout(600)
def test_the_scenarios_that_are_not_scored_pass_as_well(done: list[Leg]) -> None:
    extras = [leg for leg in done if not leg.is_scored]
    assert len(extras) == 6
    assert not [line for leg in extras for line in leg.complaints()]


def test_a_scenario_that_did_not_run_counts_as_failing() -> None:
    leg = Leg("some", ["ran", "did-not"], {"ran": [Check("a", "SUCCESS", "")]}, is_scored=True)
    assert leg.failing == ["did-not"]
    assert leg.line == "some: scenarios 1/2, checks 1/1"
    assert surprises([leg], set()) == ["did-not fails and is not in expected-failures.yml"]


def test_an_expected_failure_that_passes_is_a_surprise() -> None:
    leg = Leg("some", ["ran"], {"ran": [Check("a", "SUCCESS", "")]}, is_scored=True)
    assert surprises([leg], {"ran"}) == ["ran passes: take it out of expected-failures.yml"]


def test_a_warning_lowers_the_checks_but_fails_no_scenario() -> None:
    checks = [Check("a", "SUCCESS", ""), Check("b", "WARNING", "hm"), Check("c", "INFO", "")]
    leg = Leg("some", ["ran"], {"ran": checks}, is_scored=True)
    assert leg.line == "some: scenarios 1/1, checks 1/2"
    assert list(leg.complaints()) == ["ran: WARNING b: hm"]
