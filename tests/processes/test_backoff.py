"""When a server is started again: an hour of crashes, told without waiting."""

import pytest

from gateway.downstream.backoff import Exits, RestartPolicy, Retry

POLICY = RestartPolicy()


def retries(life_s: float, until_s: float, chance: float, ready_for_s: float = 0.0) -> list[Retry]:
    """What is decided for a server that lives `life_s` each time, until `until_s`."""
    now, exits, found = 0.0, Exits(), []
    while now < until_s:
        now += life_s
        exits = exits.after(now, POLICY, ready_for_s)
        found.append(exits.retry(POLICY, chance))
        now += found[-1].wait_s
    return found


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_a_crash_right_after_a_good_handshake_is_no_fork_storm(chance: float) -> None:
    """Case B04: at most 6 starts in 30 s, with growing gaps, whatever the dice say."""
    found = retries(life_s=0.1, until_s=30, chance=chance, ready_for_s=0.05)
    assert len(found) <= 6
    waits = [retry.wait_s for retry in found]
    assert waits == sorted(waits)
    assert found[-1].failed


def test_waits_grow_even_if_the_dice_fall_badly() -> None:
    exits, before = Exits(), 0.0
    for number in range(5):
        exits = exits.after(number * 20.0, POLICY)
        shortest, longest = exits.retry(POLICY, 0).wait_s, exits.retry(POLICY, 1).wait_s
        assert before <= shortest < longest
        before = longest


def test_waits_have_a_longest() -> None:
    exits = Exits()
    for number in range(2000):  # each 100 s apart: no crash loop
        exits = exits.after(number * 100.0, POLICY)
    assert exits.retry(POLICY, 1) == Retry(POLICY.longest_wait_s, failed=False)


def test_only_a_stable_time_wipes_the_slate() -> None:
    exits = Exits()
    for now in (1.0, 2.0, 3.0):
        exits = exits.after(now, POLICY)
    assert exits.after(62.9, POLICY, 59.9).in_a_row == 4
    assert exits.after(63.0, POLICY, 60.0) == Exits(1, (63.0,))


def test_a_crash_loop_ends_in_a_slow_retry_and_stays_there_until_stable() -> None:
    found = retries(life_s=1, until_s=3600, chance=1)
    assert [retry.failed for retry in found[:6]] == [False] * 5 + [True]
    assert all(retry == Retry(300.0, failed=True) for retry in found[5:])
    assert len(found) < 20


def test_a_failed_server_that_recovers_is_forgiven() -> None:
    exits = Exits().after(1.0, POLICY, permanent=True).after(1000.0, POLICY, 500.0)
    assert not exits.retry(POLICY, 0).failed


def test_a_missing_command_has_failed_at_once_and_is_looked_for_now_and_then() -> None:
    exits = Exits().after(1.0, POLICY, permanent=True)
    assert exits.retry(POLICY, 1) == Retry(300.0, failed=True)
    assert exits.retry(POLICY, 0) == Retry(270.0, failed=True)


def test_what_is_remembered_does_not_grow() -> None:
    exits = Exits()
    for number in range(1000):
        exits = exits.after(number / 100, POLICY)
    assert len(exits.at) <= POLICY.exits_allowed + 1
