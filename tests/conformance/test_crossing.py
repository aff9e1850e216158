"""The official suite across eras: the counts that we hold, and the reasons for the rest."""

import pytest

from tests.conformance.crossing import CROSSINGS, legs, reasons, surprises
from tests.conformance.run import Leg
from tests.conformance.suite import Check

COUNTS = {
    "2025-11-25 with a modern server": "scenarios 30/30, checks 69/69",
    "2026-07-28 with a legacy server": "scenarios 36/37, checks 117/119",
}


@pytest.mark.conformance
@pytest.mark.timeout(600)
@pytest.mark.parametrize("crossing", CROSSINGS, ids=lambda each: each.name)
def test_every_scenario_passes_that_a_server_of_the_other_era_makes_possible(
    crossing: object,
) -> None:
    (leg,) = legs([each for each in CROSSINGS if each is crossing])
    assert leg.line == f"{leg.name}: {COUNTS[leg.name]}", list(leg.complaints())
    assert not surprises(leg)


def test_each_scenario_that_fails_has_its_reason_and_none_is_left_over() -> None:
    failed, passed = [Check("a", "FAILURE", "")], [Check("a", "SUCCESS", "")]
    name = "2026-07-28 with a legacy server"
    (known,) = reasons(name)

    new = Leg(name, ["other", known], {"other": failed, known: failed}, is_scored=True)
    assert surprises(new) == [f"{name}: other fails without a reason"]
    fixed = Leg(name, [known], {known: passed}, is_scored=True)
    assert surprises(fixed) == [f"{name}: {known} passes after all"]
