"""The official suite, through the gateway: the counts that we hold."""

from collections.abc import Iterable

import pytest

from tests.conformance.run import (
    ELSEWHERE,
    Leg,
    client_legs,
    expected_failures,
    legs,
    served,
    served_elsewhere,
    surprises,
)
from tests.conformance.suite import Check


def lines(done: Iterable[Leg], *, scored: bool) -> list[str]:
    return [leg.line for leg in done if leg.is_scored is scored]


def complaints(done: Iterable[Leg]) -> list[str]:
    return [f"{leg.name}: {line}" for leg in done for line in leg.complaints()]


@pytest.mark.conformance
@pytest.mark.timeout(600)
def test_every_scenario_passes_through_the_gateway() -> None:
    """The revision of 2025 has a check more for servers that answer lists on streams."""
    with served() as url:
        done = list(legs(url))

    assert lines(done, scored=True) == [
        "2026-07-28: scenarios 37/37, checks 120/120",
        "2025-11-25: scenarios 30/30, checks 69/69",
    ], complaints(done)
    assert len(lines(done, scored=False)) == 6
    assert complaints(done) == []
    assert surprises(done, expected_failures()) == []


@pytest.mark.conformance
@pytest.mark.timeout(600)
def test_every_scenario_passes_with_the_server_behind_streamable_http() -> None:
    with served_elsewhere() as url:
        done = list(legs(url, ELSEWHERE))

    assert lines(done, scored=True) == [
        "2026-07-28 over HTTP: scenarios 37/37, checks 120/120",
        "2025-11-25 over HTTP: scenarios 30/30, checks 69/69",
    ], complaints(done)
    assert complaints(done) == []


@pytest.mark.conformance
@pytest.mark.timeout(600)
def test_every_scenario_without_authorization_passes_with_the_gateway_as_the_client() -> None:
    done = list(client_legs())

    assert lines(done, scored=True) == [
        "2026-07-28 as a client: scenarios 7/7, checks 55/55",
        "2025-11-25 as a client: scenarios 4/4, checks 11/11",
    ], complaints(done)
    assert len(lines(done, scored=False)) == 2
    assert complaints(done) == []


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
