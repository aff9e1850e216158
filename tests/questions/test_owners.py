"""Whose question is it? A legacy server on a pipe does not say (protocol 3.5)."""

import asyncio

from gateway.eras.legacy.leg import Leg
from gateway.eras.legacy.legs import MOST_UNOWNED, Legs
from gateway.protocol.jsonrpc import Request
from tests.questions.parking import Lot, answered, conversation, question, settled


class Connection:
    """One private connection, with as many calls on it as a test begins."""

    def __init__(self) -> None:
        self.lot = Lot()
        self.refused: list[object] = []
        self.legs = Legs(self._refuse)
        self._waiting: list[asyncio.Future[object]] = []

    def _refuse(self, request: Request, code: int, _message: str) -> None:
        assert code == -32601
        self.refused.append(request.id)

    async def call(self, session: str | None = "s", principal: str = "ann") -> Leg:
        call = self.lot.call(principal=principal, session=session)
        leg = self.lot.begin(call)
        self.legs.add(leg)
        self._waiting.append(asyncio.ensure_future(leg.wait(call)))
        await settled()
        return leg

    async def end(self, leg: Leg) -> None:
        answered(leg)
        await settled()

    async def close(self) -> None:
        for waiting in self._waiting:
            waiting.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)


def _asked(leg: Leg) -> list[object]:
    return [ask.id for ask in leg.asks.values()]


@conversation
async def test_of_one_sessions_calls_the_newest_puts_the_question() -> None:
    """All are the same client's, so that it cannot reach anybody else."""
    it = Connection()
    first, second = await it.call(), await it.call()

    it.legs.asked(question("x"))

    assert (_asked(first), _asked(second)) == ([], ["x"])
    await it.close()


@conversation
async def test_a_call_that_runs_is_rather_the_cause_than_one_that_waits() -> None:
    it = Connection()
    running = await it.call()
    waiting = await it.call()
    it.legs.asked(question("first"))
    await asyncio.wait([it._waiting[1]])
    assert not waiting.is_attached

    it.legs.asked(question("second"))

    assert (_asked(running), _asked(waiting)) == (["second"], ["first"])
    await it.close()


@conversation
async def test_where_several_clients_share_only_an_only_call_is_asked() -> None:
    it = Connection()
    first = await it.call(session=None)
    it.legs.asked(question("alone"))
    second = await it.call(session=None)
    it.legs.asked(question("whose?"))
    await it.end(first)
    it.legs.asked(question("alone again"))

    assert it.refused == ["whose?"]
    assert _asked(second) == ["alone again"]
    await it.close()


@conversation
async def test_two_sessions_of_one_principal_are_not_taken_for_one() -> None:
    it = Connection()
    await it.call(session="one")
    second = await it.call(session="two")

    it.legs.asked(question("whose?"))

    assert it.refused == ["whose?"]
    assert not second.asks
    await it.close()


@conversation
async def test_what_is_asked_before_any_call_is_put_with_the_first() -> None:
    """Servers ask for roots as soon as they are up, outside any call."""
    it = Connection()
    for number in range(MOST_UNOWNED + 1):
        it.legs.asked(question(number))
    it.legs.withdrawn(3)

    leg = await it.call(session=None)

    assert _asked(leg) == [0, 1, 2, 4, 5, 6, 7]
    assert it.refused == [MOST_UNOWNED]
    await it.close()


@conversation
async def test_what_is_asked_after_a_call_is_not_put_to_whoever_comes_next() -> None:
    """It may be about that call; the next client may be another."""
    it = Connection()
    await it.end(await it.call(session=None))
    it.legs.asked(question("late"))

    leg = await it.call(session=None)

    assert it.refused == ["late"]
    assert not leg.asks
    await it.close()


@conversation
async def test_what_is_asked_between_two_calls_of_a_session_is_put_with_the_next() -> None:
    it = Connection()
    await it.end(await it.call())
    it.legs.asked(question("between"))

    leg = await it.call()

    assert _asked(leg) == ["between"]
    assert not it.refused
    await it.close()


@conversation
async def test_roots_left_by_a_call_are_put_with_the_next_of_that_client_and_no_other() -> None:
    for session, put, refused in (("s", ["left"], []), ("other", [], ["left"])):
        it = Connection()
        first = await it.call()
        it.legs.asked(Request("left", "roots/list", {}))
        await it.end(first)

        leg = await it.call(session=session)

        assert (_asked(leg), it.refused) == (put, refused)
        await it.close()


@conversation
async def test_a_question_taken_back_is_gone_wherever_it_waits() -> None:
    it = Connection()
    leg = await it.call()
    it.legs.asked(question("x"))
    it.legs.asked(question("y"))

    it.legs.withdrawn("x")

    assert _asked(leg) == ["y"]
    await it.close()


@conversation
async def test_a_log_line_is_for_the_same_call_as_a_question_would_be() -> None:
    mine = Connection()
    assert not mine.legs.hearers()
    await mine.call()
    newest = await mine.call()
    assert [call is newest.opened.call for call in mine.legs.hearers()] == [True]

    shared = Connection()
    only = await shared.call(session=None)
    assert [call is only.opened.call for call in shared.legs.hearers()] == [True]
    await shared.call(session=None)
    assert not shared.legs.hearers()
    for it in (mine, shared):
        await it.close()


@conversation
async def test_nothing_is_held_of_a_call_that_is_over() -> None:
    it = Connection()
    leg = await it.call()
    await it.end(leg)
    it.legs.prune()

    assert not it.legs._open
    assert not it.lot.parked._held
    await it.close()
