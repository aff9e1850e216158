"""Private processes (protocol 3.5): how many there are, who gets which, and how each ends."""

import asyncio
from asyncio import TaskGroup
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from gateway.downstream.connection import Connection
from gateway.downstream.environment import CannotStart
from gateway.downstream.pool import Pool
from gateway.downstream.seats import Places, Seat, Whose
from gateway.eras.profile import Profile
from gateway.protocol.errors import GatewayError, ServerUnavailable
from gateway.protocol.revisions import Era
from tests.kit.waiting import run
from tests.questions.parking import settled

ASKABLE, OTHER = Profile(b'{"roots":{}}'), Profile(b'{"sampling":{}}')


@dataclass(eq=False)
class Conversation:
    """What a pool needs of a connection: that it can die, and be stopped."""

    number: int
    of: Whose
    is_alive: bool = True
    pid: int = 0

    @property
    def transport(self) -> "Conversation":
        return self

    @property
    def link(self) -> "Conversation":
        return self


@dataclass(eq=False)
class House:
    """A pool over processes that are not there, and the time."""

    tasks: TaskGroup
    places: Places = field(default_factory=Places)
    most: int = 4
    now: float = 1000.0
    started: list[Conversation] = field(default_factory=list)
    retired: list[Any] = field(default_factory=list)
    opened: list[Any] = field(default_factory=list)
    may_open: asyncio.Event = field(default_factory=asyncio.Event)
    failure: Exception | None = None
    pool: Pool = field(init=False)

    def __post_init__(self) -> None:
        self.may_open.set()
        self.pool = Pool(
            "it",
            self._open,
            self._note,
            self.retired.append,
            self.tasks,
            lambda: self.now,
            self.places,
            most=self.most,
        )

    async def _open(self, wanted: Whose) -> Connection:
        await self.may_open.wait()
        if self.failure is not None:
            raise self.failure
        self.started.append(Conversation(len(self.started), wanted))
        return cast(Connection, self.started[-1])

    async def _note(self, connection: Connection) -> None:
        self.opened.append(connection)

    async def lease(self, principal: str = "ann", profile: Profile = ASKABLE) -> Seat:
        return await self.take(Whose(("lease", principal), profile, Era.LEGACY, is_lease=True))

    async def session(self, id_: str = "s", profile: Profile = ASKABLE) -> Seat:
        return await self.take(Whose(("session", id_), profile, Era.LEGACY))

    async def alone(self, key: str) -> Seat:
        """One for which no spare is kept."""
        return await self.take(Whose(("session", key), None, Era.LEGACY))

    async def take(self, wanted: Whose) -> Seat:
        seat = await self.pool.take(wanted)
        await settled()
        return seat


def housed(**around: Any) -> Callable[[Callable[[House], Coroutine[Any, Any, None]]], Any]:
    """A test with a house of its own."""

    def decorated(body: Callable[[House], Coroutine[Any, Any, None]]) -> Callable[[], None]:
        async def whole() -> None:
            async with TaskGroup() as tasks:
                house = House(tasks, **around)
                try:
                    await body(house)
                finally:
                    house.may_open.set()
                    await house.pool.stop()
                assert house.places.taken == 0
                assert len(house.retired) == len(house.started)

        def test() -> None:
            run(whole(), within_s=10)

        test.__name__ = body.__name__
        return test

    return decorated


@housed()
async def test_a_lease_is_for_one_call_at_a_time_and_then_for_the_next_of_its_principal(
    house: House,
) -> None:
    first = await house.lease()
    second = await house.lease()
    assert first.connection is not second.connection

    house.pool.give_back(first)
    stranger = await house.lease("bob")
    again = await house.lease()

    assert stranger.connection not in (first.connection, second.connection)
    assert again is first


@housed()
async def test_a_lease_whose_call_was_given_up_is_lent_to_nobody(house: House) -> None:
    """The server may still be at it: what it asks then would reach whoever got it next."""
    seat = await house.lease()
    house.pool.give_back(seat, clean=False)

    assert house.retired == [seat.connection]
    assert (await house.lease()) is not seat


@housed()
async def test_a_session_keeps_its_process_whatever_becomes_of_its_calls(house: House) -> None:
    seat = await house.session()
    house.pool.give_back(seat, clean=False)
    assert (await house.session()) is seat
    assert (await house.session()) is seat, "and shares it among its calls"


@housed()
async def test_two_first_calls_of_a_session_start_one_process(house: House) -> None:
    house.may_open.clear()
    both = asyncio.gather(house.alone("s"), house.alone("s"))
    await settled()
    house.may_open.set()
    one, other = await both

    assert one is other
    assert one.users == 2
    assert len(house.started) == 1


@housed()
async def test_if_the_first_of_two_fails_the_second_tries_itself(house: House) -> None:
    house.may_open.clear()
    house.failure = CannotStart("not today", permanent=True)
    first = asyncio.gather(house.alone("s"), return_exceptions=True)
    await settled()
    second = asyncio.gather(house.alone("s"))
    await settled()
    house.may_open.set()
    (error,) = await first
    house.failure = None
    if not second.done():
        await asyncio.wait({second})

    assert isinstance(error, ServerUnavailable)
    assert "not today" in error.message
    assert not error.retryable, "it would fail the same way"


@housed()
async def test_a_sessions_process_ends_with_it(house: House) -> None:
    seat, other = await house.session("s"), await house.session("t")
    house.pool.give_back(seat)

    house.pool.close(("session", "s"))

    assert house.retired == [seat.connection]
    assert house.pool.of(("session", "t")) == [other.connection]


@housed()
async def test_a_sessions_process_has_the_calls_that_go_on_without_it_to_their_end(
    house: House,
) -> None:
    seat = await house.session("s")

    house.pool.close(("session", "s"))
    assert house.retired == []
    house.pool.give_back(seat)

    assert house.retired == [seat.connection]
    assert house.pool.of(("session", "s")) == []


@housed()
async def test_nobody_waits_for_a_start_after_the_first(house: House) -> None:
    await house.session("first")
    assert len(house.started) == 2, "its own, and a spare"
    house.may_open.clear()

    seat = await house.session("second")

    assert seat.connection is cast(Connection, house.started[1])


@housed()
async def test_a_client_gets_the_spare_that_is_just_starting_for_it(house: House) -> None:
    """It said hello, and called at once: one process is started for that, not two."""
    house.may_open.clear()
    wanted = Whose(("session", "s"), ASKABLE, Era.LEGACY)
    house.pool.prepare(wanted)
    taking = asyncio.gather(house.pool.take(wanted))
    await settled()
    house.may_open.set()
    (seat,) = await taking

    assert seat.connection is cast(Connection, house.started[0])


@housed()
async def test_a_spare_that_fails_costs_nobody_anything(house: House) -> None:
    house.failure = GatewayError("broken")
    house.pool.prepare(Whose(("session", "s"), ASKABLE, Era.LEGACY))
    await settled()
    assert house.places.taken == 0
    house.failure = None

    seat = await house.session()

    assert seat.connection is cast(Connection, house.started[0])


@housed()
async def test_a_spare_is_for_clients_that_can_answer_the_same(house: House) -> None:
    await house.session("s")
    other = await house.session("t", OTHER)

    assert other.of.profile == OTHER
    assert cast(Any, other.connection).of.profile == OTHER
    assert [cast(Any, each).of.profile for each in house.pool.spare.connections] == [OTHER]


@housed()
async def test_a_dead_spare_is_replaced_and_a_dead_seat_is_not_lent(house: House) -> None:
    seat = await house.session()
    for each in house.started:
        each.is_alive = False
    house.pool.prepare(seat.of)
    await settled()

    again = await house.session()

    assert again is not seat
    assert again.connection.is_alive


@housed()
async def test_what_idles_long_ends(house: House) -> None:
    lease, session = await house.lease(), await house.session()
    busy = await house.lease("busy")
    house.pool.give_back(lease)
    house.pool.give_back(session)
    house.now += house.pool.idle_s + 1
    house.pool.expire()
    await settled()

    assert lease.connection in house.retired
    assert not house.pool.spare.connections
    assert house.pool.of(session.of.key)
    house.now += house.pool.claimed_idle_s
    house.pool.expire()
    assert session.connection in house.retired
    assert busy.connection not in house.retired


@housed(most=3)
async def test_at_the_bound_a_spare_makes_room_then_leases_then_sessions_that_idle(
    house: House,
) -> None:
    session = await house.alone("s")
    lease = await house.lease()
    assert len(house.started) == 3, "one of them a spare"
    house.pool.give_back(session)
    house.pool.give_back(lease)
    spare = house.pool.spare.connections[0]

    await house.alone("1")
    await house.alone("2")
    await house.alone("3")

    assert house.retired == [spare, lease.connection, session.connection]


@housed(most=2)
async def test_at_the_bound_with_all_at_work_the_client_is_told_what_to_do(house: House) -> None:
    for key in ("1", "2"):
        await house.alone(key)

    with pytest.raises(ServerUnavailable) as refusal:
        await house.alone("3")

    said = refusal.value
    assert said.retryable
    assert said.kind == "unavailable"
    assert "All 2 private processes of it are in use" in said.message
    assert "Try again" in said.message
    assert len(house.started) == 2


@housed(places=Places(most=2), most=10)
async def test_the_bound_over_all_servers_is_said_to_be_that(house: House) -> None:
    for key in ("1", "2"):
        await house.alone(key)
    with pytest.raises(ServerUnavailable, match="All 2 private processes of servers are in use"):
        await house.alone("3")


@housed(places=Places(most=2), most=10)
async def test_one_servers_idle_process_makes_room_for_anothers(house: House) -> None:
    other = House(house.tasks, house.places)
    idle = await other.alone("s")
    await house.alone("1")
    with pytest.raises(ServerUnavailable):
        await house.alone("2")
    other.pool.give_back(idle)

    await house.alone("2")

    assert other.retired == [idle.connection]
    await other.pool.stop()


@housed()
async def test_a_start_that_is_given_up_leaves_its_place_to_others(house: House) -> None:
    house.may_open.clear()
    starting = asyncio.gather(house.alone("s"))
    await settled()
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)

    assert house.places.taken == 0
    house.may_open.set()
    assert (await house.alone("s")).users == 1


@housed()
async def test_stopping_does_not_wait_for_what_is_still_starting(house: House) -> None:
    house.may_open.clear()
    house.pool.prepare(Whose(("session", "s"), ASKABLE, Era.LEGACY))
    await settled()
    assert house.places.taken == 1

    await house.pool.stop()

    assert house.places.taken == 0
    assert not house.started
