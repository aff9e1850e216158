"""While a call is parked: what is kept of it, how much, how long, and what then."""

import asyncio

import msgspec
import pytest

from gateway.eras.legacy.leg import MOST_ASKS
from gateway.eras.legacy.parked import Bounds, Room
from gateway.protocol.errors import BadAnswer, CannotAnswer, InvalidParams, TooManyWaiting
from tests.questions.parking import (
    Lot,
    answered,
    conversation,
    keys_of,
    logged,
    opened,
    question,
    settled,
    text_of,
    token_of,
    told,
)

YES = {"action": "accept"}
CANCEL = {"action": "cancel"}


@conversation
async def test_questions_that_come_together_are_put_together() -> None:
    lot = Lot()
    call = lot.call()
    leg = lot.begin(call)
    waiting = asyncio.gather(leg.wait(call))
    await settled()
    leg.asked(question(0))
    await settled()
    assert not waiting.done(), "it has woken up, and waits for more of them"
    leg.asked(question("second"))

    (outcome,) = await waiting

    assert keys_of(outcome) == ["q1", "q2"]


@conversation
async def test_a_question_that_comes_while_the_client_is_away_is_put_when_it_is_back() -> None:
    lot = Lot()
    leg, token = await lot.asked()
    leg.asked(question("later"))

    outcome = await lot.resume(token, q1=YES)

    assert keys_of(outcome) == ["q2"]
    assert lot.channel.answered == {0: YES}


@conversation
async def test_a_question_taken_back_is_not_put_and_its_answer_goes_nowhere() -> None:
    lot = Lot()
    leg, token = await lot.asked()
    leg.withdrawn(0)

    retry = asyncio.gather(lot.resume(token, q1=YES))
    await settled()
    assert not retry.done()
    answered(leg)
    (outcome,) = await retry

    assert text_of(outcome) == "done"
    assert not lot.channel.answered


@conversation
async def test_a_question_that_outlives_its_call_is_answered_all_the_same() -> None:
    """Servers ask for roots beside their calls, and wait however the calls end."""
    lot = Lot()
    leg, _token = await lot.asked()

    answered(leg)
    await settled()

    assert lot.channel.answered == {0: CANCEL}


@conversation
async def test_questions_are_moot_once_the_server_has_gone_on() -> None:
    lot = Lot()
    moots = []
    for number, end in enumerate(("withdrawn", "answered", "given up")):
        call = lot.call()
        leg = lot.begin(call)
        leg.asked(question(number))
        outcome = await leg.wait(call)
        moot = getattr(outcome, "moot", None)
        assert moot is not None
        assert not moot.done()
        match end:
            case "withdrawn":
                leg.withdrawn(number)
            case "answered":
                answered(leg)
                await settled()
            case _:
                leg.abandon("no more")
        moots.append(moot.done())

    assert moots == [True, True, True]


@conversation
async def test_of_what_is_said_meanwhile_the_last_progress_is_kept_and_log_lines_are_not() -> None:
    """Progress must increase, so the last is enough (protocol rule A8)."""
    lot = Lot()
    leg, token = await lot.asked()
    speaking = leg.opened.call
    assert speaking is not None
    assert speaking.log_level is None
    for said in (told(1), logged("hello"), told(2)):
        speaking.emit(said)
    assert not lot.emitted

    retry = asyncio.gather(lot.resume(token, q1=YES))
    await settled()

    assert lot.emitted == [told(2)]
    answered(leg)
    await retry


@conversation
async def test_who_never_comes_back_is_given_up_and_the_server_told() -> None:
    lot = Lot(bounds=Bounds(age_s=100))
    leg, _ = await lot.asked(None, 0, "b")
    lot.now += 99
    lot.parked.expire()
    assert not opened(leg).cancelled

    lot.now += 1
    lot.parked.expire()

    assert lot.channel.answered == {0: CANCEL, "b": CANCEL}
    assert opened(leg).cancelled == ["No answer from the client in time"]
    assert lot.freed == [leg]
    assert len(lot.parked) == 0
    assert lot.room.taken == 0


@conversation
async def test_each_kind_of_question_is_given_up_in_its_own_way() -> None:
    lot = Lot()
    call = lot.call()
    leg = lot.begin(call)
    for method in ("elicitation/create", "sampling/createMessage", "roots/list"):
        leg.asked(msgspec.structs.replace(question(method), method=method))
    await leg.wait(call)

    leg.abandon("gone")

    assert lot.channel.answered == {"elicitation/create": CANCEL}
    assert {key: code for key, (code, _) in lot.channel.refused.items()} == {
        "sampling/createMessage": -1,
        "roots/list": -32603,
    }


@conversation
async def test_a_call_that_runs_again_does_not_expire_however_old() -> None:
    lot = Lot(bounds=Bounds(age_s=100))
    leg, token = await lot.asked()
    retry = asyncio.gather(lot.resume(token, q1=YES))
    await settled()
    lot.now += 1000
    lot.parked.expire()

    assert not opened(leg).cancelled
    answered(leg)
    (outcome,) = await retry
    assert text_of(outcome) == "done"


@conversation
async def test_at_shutdown_all_that_wait_are_given_up() -> None:
    lot = Lot()
    legs = [(await lot.asked(None, number))[0] for number in range(3)]

    lot.parked.close("The gateway is stopping")

    assert lot.channel.answered == {0: CANCEL, 1: CANCEL, 2: CANCEL}
    assert [opened(leg).cancelled for leg in legs] == [["The gateway is stopping"]] * 3
    assert lot.freed == legs


@conversation
async def test_a_client_that_will_not_come_back_can_say_so() -> None:
    lot = Lot()
    leg, token = await lot.asked()

    lot.parked.abandon(None)
    lot.parked.abandon("no token")
    assert not opened(leg).cancelled
    lot.parked.abandon(token)

    assert opened(leg).cancelled == ["The client gave up"]


# -- bounds --


@conversation
async def test_so_many_may_wait_and_no_more() -> None:
    lot = Lot(bounds=Bounds(calls=3, per_principal=2))
    for principal in ("ann", "ann", "bob"):
        await lot.asked(lot.call(principal=principal))

    with pytest.raises(TooManyWaiting) as refusal:
        await lot.asked(lot.call(principal="eve"), "one too many")

    assert not refusal.value.retryable, "the server has begun with it"
    assert lot.channel.answered == {"one too many": CANCEL}
    assert len(lot.parked) == 3


@conversation
async def test_one_principal_cannot_take_all_the_places() -> None:
    lot = Lot(bounds=Bounds(calls=10, per_principal=2))
    for _ in range(2):
        await lot.asked()

    with pytest.raises(TooManyWaiting):
        await lot.asked()
    leg, token = await lot.asked(lot.call(principal="bob"))

    retry = lot.resume(token, lot.call(principal="bob"), q1=YES)
    answered(leg)
    assert text_of(await retry) == "done"


@conversation
async def test_what_has_its_answer_takes_nobodys_place() -> None:
    lot = Lot(bounds=Bounds(calls=1))
    leg, _ = await lot.asked()
    answered(leg)
    await settled()

    await lot.asked()

    assert len(lot.parked) == 1


@conversation
async def test_a_server_that_asks_round_after_round_is_stopped() -> None:
    lot = Lot(bounds=Bounds(rounds=3))
    leg, token = await lot.asked()
    for number in (1, 2):
        call = lot.retry(token, None, {f"q{number}": YES})
        retry = asyncio.gather(lot.parked.resume(call))
        await settled()
        leg.asked(question(number))
        (outcome,) = await retry
        token = token_of(outcome)

    call = lot.retry(token, None, {"q3": YES})
    retry = asyncio.gather(lot.parked.resume(call))
    await settled()
    leg.asked(question("fourth"))
    with pytest.raises(CannotAnswer) as refusal:
        await retry

    assert refusal.value.kind == "refused"
    assert "more than 3 times in one call (`limits.rounds`)" in refusal.value.message
    assert opened(leg).cancelled
    assert lot.channel.answered["fourth"] == CANCEL
    assert lot.freed == [leg]


@conversation
async def test_a_flood_of_questions_is_cut_off() -> None:
    lot = Lot()
    leg = lot.begin()
    for number in range(MOST_ASKS + 2):
        leg.asked(question(number))

    assert set(lot.channel.refused) == {MOST_ASKS, MOST_ASKS + 1}
    assert len(leg.asks) == MOST_ASKS


@conversation
async def test_questions_too_long_to_be_kept_end_the_call() -> None:
    lot = Lot(bounds=Bounds(leg_bytes=1000))
    with pytest.raises(TooManyWaiting, match="more than can be kept"):
        await lot.asked(None, "big", size=2000)

    assert lot.channel.answered == {"big": CANCEL}
    assert lot.room.taken == 0


@conversation
async def test_a_long_question_while_the_client_is_away_is_refused_and_the_call_goes_on() -> None:
    lot = Lot(bounds=Bounds(leg_bytes=1000))
    leg, token = await lot.asked()
    leg.asked(question("big", size=2000))

    assert lot.channel.refused["big"][0] == -32603
    retry = lot.resume(token, q1=YES)
    answered(leg)
    assert text_of(await retry) == "done"


@conversation
async def test_an_answer_too_long_to_be_kept_is_said_to_be_so() -> None:
    lot = Lot(bounds=Bounds(leg_bytes=1000))
    leg, token = await lot.asked()
    answered(leg, size=2000)
    await settled()

    with pytest.raises(BadAnswer, match="too much to be kept"):
        await lot.resume(token, q1=YES)
    assert lot.freed == [leg]


@conversation
async def test_a_long_answer_reaches_whoever_waits_for_it_but_is_not_kept() -> None:
    lot = Lot(bounds=Bounds(leg_bytes=1000))
    leg, token = await lot.asked()
    retry = asyncio.gather(lot.resume(token, q1=YES))
    await settled()
    answered(leg, size=2000)
    (outcome,) = await retry

    assert text_of(outcome) == "done"
    with pytest.raises(InvalidParams):
        await lot.resume(token, q1=YES)
    assert lot.room.taken == 0


@conversation
async def test_all_servers_share_the_room_and_kept_answers_make_way_for_calls_that_wait() -> None:
    room = Room(most_bytes=3000)
    one, other = Lot(room=room), Lot(room=room)
    leg, token = await one.asked()
    answered(leg, size=1500)
    await settled()
    await other.asked(size=1400)

    with pytest.raises(TooManyWaiting):
        await other.asked(size=1400)
    assert text_of(await one.resume(token, q1=YES)) == "done", "of the other server: untouched"
    await one.asked(size=1400)

    with pytest.raises(InvalidParams):
        await one.resume(token, q1=YES)
    assert room.taken <= room.most_bytes
    for lot in (one, other):
        lot.parked.close("over")
        lot.now += 10_000
        lot.parked.expire()
    assert room.taken == 0
