"""A sealed state opens for whom, and for what, it was sealed."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.identity.seals import Seals

ABOUT = "tools/call it__ask"


@dataclass(frozen=True)
class One:
    name: str
    sha256: str


ANN, BOB = One("ann", "aa" * 32), One("bob", "bb" * 32)
SEALS = Seals([ANN, BOB])


@given(st.text(), st.text())
def test_it_comes_back_exactly_whatever_it_is(about: str, state: str) -> None:
    sealed = SEALS.sealed("ann", about, state)
    assert SEALS.opened("ann", about, sealed) == state
    assert sealed != state


@given(st.text())
def test_nobody_else_opens_it_nor_for_anything_else(state: str) -> None:
    sealed = SEALS.sealed("ann", ABOUT, state)
    for principal, about in (("bob", ABOUT), ("carol", ABOUT), ("ann", ABOUT + "!"), ("ann", "")):
        assert SEALS.opened(principal, about, sealed) is None


@pytest.mark.parametrize("given_back", ["state", ".state", "x.state", "", ".", "\ud800.\udfff"])
def test_what_was_never_sealed_is_not_opened(given_back: str) -> None:
    assert SEALS.opened("ann", ABOUT, given_back) is None


def test_another_state_under_a_good_seal_is_not_opened() -> None:
    seal, _, _ = SEALS.sealed("ann", ABOUT, "state").partition(".")
    for other in ("stat", "State", "state.", ""):
        assert SEALS.opened("ann", ABOUT, f"{seal}.{other}") is None
    assert SEALS.opened("ann", ABOUT, f"{seal}.state") == "state"


def test_what_belongs_to_what_cannot_be_moved_between_the_two() -> None:
    seal, _, _ = SEALS.sealed("ann", "a", "b\0c").partition(".")
    assert SEALS.opened("ann", "a\0b", f"{seal}.c") is None


def test_each_replica_opens_what_another_sealed_until_the_token_is_another() -> None:
    sealed = SEALS.sealed("ann", ABOUT, "state")
    assert Seals([BOB, ANN]).opened("ann", ABOUT, sealed) == "state"
    assert Seals([One("ann", "cc" * 32)]).opened("ann", ABOUT, sealed) is None
    assert Seals().opened("ann", ABOUT, sealed) is None


def test_without_tokens_nothing_is_sealed() -> None:
    assert SEALS.sealed(None, ABOUT, "state") == "state"
    assert SEALS.opened(None, ABOUT, "a.state") == "a.state"
