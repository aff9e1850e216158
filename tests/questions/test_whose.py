"""Who shares a process with whom (protocol 3.5)."""

import pytest

from gateway.calls.call import Caller
from gateway.downstream.seats import whose
from gateway.eras.profile import Profile
from gateway.protocol.revisions import BY_NAME, Era

MODERN, LEGACY = BY_NAME["2026-07-28"], BY_NAME["2025-11-25"]
ASKABLE = Profile(b'{"roots":{}}')


def modern(principal: str | None = "ann") -> Caller:
    return Caller(MODERN, principal)


def legacy(session: str, principal: str | None = "ann") -> Caller:
    return Caller(LEGACY, principal, session=session)


@pytest.mark.parametrize(
    ("isolation", "one", "other", "profile", "together"),
    [
        ("auto", modern("ann"), legacy("s", "bob"), None, True),
        ("auto", modern("ann"), modern("bob"), ASKABLE, False),
        ("auto", legacy("s"), legacy("t"), ASKABLE, False),
        ("auto", legacy("s"), legacy("s"), ASKABLE, True),
        ("auto", legacy("s"), modern(), ASKABLE, False),
        ("shared", legacy("s", "ann"), modern("bob"), ASKABLE, True),
        ("session", legacy("s"), legacy("t"), None, False),
        ("session", legacy("s"), legacy("s"), None, True),
        ("session", modern("ann"), modern("bob"), None, False),
        ("session", modern("ann"), modern("ann"), None, True),
        ("principal", legacy("s"), legacy("t"), None, True),
        ("principal", legacy("s"), modern(), None, True),
        ("principal", modern("ann"), modern("bob"), None, False),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_who_shares_with_whom(
    isolation: str, one: Caller, other: Caller, profile: Profile | None, together: bool
) -> None:
    mine, theirs = (whose(isolation, each, Era.LEGACY, profile) for each in (one, other))
    assert (mine == theirs) is together


def test_a_lease_is_for_modern_clients_that_can_be_asked() -> None:
    lease = whose("auto", modern(), Era.LEGACY, ASKABLE)
    session = whose("auto", legacy("s"), Era.LEGACY, ASKABLE)
    assert lease is not None
    assert session is not None
    assert (lease.is_lease, session.is_lease) == (True, False)
    assert whose("auto", modern(), Era.LEGACY, None) is None
