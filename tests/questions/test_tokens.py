"""Tokens of parked calls: whose they are, what they are good for, and for how long.

2026-07-28 basic/patterns/mrtr, server requirements: `requestState` is attacker-controlled
input; it is bound to the principal and the request, expires, and is new each round.
"""

import asyncio
import secrets

import msgspec
import pytest

from gateway.protocol.errors import GatewayError, InvalidParams, ServerUnavailable, Superseded
from gateway.protocol.jsonrpc import Raw
from tests.kit.waiting import eventually_async
from tests.questions.parking import (
    Lot,
    answered,
    both,
    conversation,
    keys_of,
    opened,
    question,
    settled,
    text_of,
    token_of,
)

YES = {"action": "accept"}


@conversation
async def test_each_round_has_a_token_of_its_own() -> None:
    lot = Lot()
    leg, first = await lot.asked()

    for number in range(1, 4):
        leg_asks = lot.resume(first, q1=YES, q2=YES, q3=YES, q4=YES)
        waiting = asyncio.gather(leg_asks)
        await settled()
        leg.asked(question(number))
        (outcome,) = await waiting
        assert token_of(outcome) != first
        first = token_of(outcome)

    assert lot.channel.answered == {0: YES, 1: YES, 2: YES}


@conversation
async def test_a_token_is_good_for_its_own_request_alone() -> None:
    lot = Lot()
    _, token = await lot.asked()
    others = [
        lot.call(principal="bob"),
        lot.call(principal=None),
        lot.call(name="it__other"),
        lot.call(arguments='{"a": 1, "b": [3]}'),
        lot.call(arguments="{}"),
        lot.call(more="a member"),
        msgspec.structs.replace(lot.call(), method="prompts/get"),
    ]

    for call in others:
        with pytest.raises(InvalidParams):
            await lot.resume(token, call, q1=YES)

    assert not lot.channel.answered
    assert len(lot.parked) == 1


@conversation
async def test_a_client_may_write_the_same_request_down_differently() -> None:
    lot = Lot()
    leg, token = await lot.asked()

    again = lot.resume(token, lot.call(arguments='{ "b":[2],\n"a":1}'), q1=YES)
    answered(leg)

    assert text_of(await again) == "done"


@conversation
async def test_whatever_is_wrong_with_a_token_the_words_are_the_same() -> None:
    """A thief learns nothing: neither whether a token exists, nor whose it is."""
    lot = Lot()
    _, token = await lot.asked()
    _, expired = await lot.asked(lot.call(principal="eve"))
    lot.now += lot.bounds.age_s
    lot.parked.expire()
    _, fresh = await lot.asked()
    said = set()

    for bad, call in (
        (f"{fresh}-TAMPERED", lot.call()),
        (fresh, lot.call(principal="bob")),
        (secrets.token_urlsafe(24), lot.call()),
        (expired, lot.call(principal="eve")),
        (token, lot.call()),
        ("", lot.call()),
    ):
        with pytest.raises(InvalidParams) as refusal:
            await lot.resume(bad, call, q1=YES)
        said.add((refusal.value.message, refusal.value.code, str(refusal.value.data)))
    for odd in (None, 7, [fresh], {"token": fresh}):
        call = msgspec.structs.replace(
            lot.call(), params={**lot.call().params, "requestState": odd}
        )
        with pytest.raises(InvalidParams) as refusal:
            await lot.parked.resume(call)
        said.add((refusal.value.message, refusal.value.code, str(refusal.value.data)))

    assert len(said) == 1
    assert next(iter(said))[1] == -32602


@conversation
async def test_answers_are_delivered_once_however_often_they_come() -> None:
    lot = Lot()
    leg, token = await lot.asked()

    results = both(lot.resume(token, q1=YES), lot.resume(token, q1={"action": "decline"}))
    running = asyncio.gather(results)
    await settled()
    answered(leg)
    ((early, late),) = await running

    assert lot.channel.answered == {0: YES}
    assert isinstance(early, Superseded)
    assert early.code == -32603
    assert not isinstance(late, BaseException)
    assert text_of(late) == "done"


@conversation
async def test_a_lost_question_can_be_fetched_again_under_the_same_token() -> None:
    """The client came back with answers, and lost what followed: it comes with the same again."""
    lot = Lot()
    leg, first = await lot.asked()
    going_on = asyncio.gather(lot.resume(first, q1=YES))
    await settled()
    leg.asked(question("next"))
    (lost,) = await going_on

    found = [await lot.resume(first, q1=YES) for _ in range(20)]

    assert {token_of(each) for each in found} == {token_of(lost)}
    assert all(keys_of(each) == keys_of(lost) for each in found)
    again = lot.resume(token_of(lost), q2=YES)
    answered(leg)
    assert text_of(await again) == "done"
    assert lot.channel.answered == {0: YES, "next": YES}


@conversation
async def test_a_lost_answer_can_be_fetched_again_for_a_while() -> None:
    lot = Lot()
    leg, token = await lot.asked()
    first = asyncio.gather(lot.resume(token, q1=YES))
    await settled()
    answered(leg)
    await first

    assert text_of(await lot.resume(token, q1=YES)) == "done"
    lot.now += lot.bounds.kept_s - 1
    lot.parked.expire()
    assert text_of(await lot.resume(token, q1=YES)) == "done"

    lot.now += 1
    lot.parked.expire()
    with pytest.raises(InvalidParams):
        await lot.resume(token, q1=YES)
    assert lot.room.taken == 0


@conversation
async def test_the_token_of_two_rounds_ago_is_good_for_nothing() -> None:
    lot = Lot()
    leg, oldest = await lot.asked()
    token = oldest
    for number in (1, 2):
        going_on = asyncio.gather(lot.resume(token, q1=YES, q2=YES))
        await settled()
        leg.asked(question(number))
        (outcome,) = await going_on
        token = token_of(outcome)

    with pytest.raises(InvalidParams):
        await lot.resume(oldest, q1=YES)


@conversation
async def test_what_is_no_answer_is_asked_for_again_and_what_nobody_asked_is_ignored() -> None:
    lot = Lot()
    leg, token = await lot.asked(None, "a", "b", "c")

    outcome = await lot.resume(token, q1=7, q2=None, q3=YES, q9=YES, user_name=YES)

    assert keys_of(outcome) == ["q1", "q2"]
    assert lot.channel.answered == {"c": YES}
    rest = lot.resume(token_of(outcome), q1=YES, q2=YES)
    answered(leg)
    assert text_of(await rest) == "done"
    assert set(lot.channel.answered) == {"a", "b", "c"}


@conversation
async def test_a_retry_without_any_answers_is_asked_again() -> None:
    lot = Lot()
    _, token = await lot.asked()
    bare = lot.call(requestState=token)
    odd = lot.call(requestState=token, inputResponses=7)

    outcome = await lot.parked.resume(bare)
    assert keys_of(outcome) == ["q1"]
    with pytest.raises(InvalidParams):  # another request: it has a member more than the first had
        await lot.parked.resume(lot.call(requestState=token_of(outcome), extra=1))
    odd = lot.call(requestState=token_of(outcome), inputResponses=7)
    assert keys_of(await lot.parked.resume(odd)) == ["q1"]


@conversation
async def test_a_server_that_dies_while_its_call_waits_is_an_honest_error_for_the_retry() -> None:
    lot = Lot()
    leg, token = await lot.asked()
    leg.opened.answer.set_exception(ServerUnavailable("it left", server="it"))
    await settled()

    for _ in range(2):
        with pytest.raises(ServerUnavailable, match="it left"):
            await lot.resume(token, q1=YES)

    assert lot.freed == [leg]
    assert lot.channel.answered == {0: {"action": "cancel"}}, "it may wait for that all the same"


@conversation
async def test_an_answer_that_comes_while_nobody_waits_is_kept_for_the_retry() -> None:
    """The server gave up waiting. Its process is free from then on; the client has the rest
    of its own time to come back, not only the while that delivered answers are kept."""
    lot = Lot()
    leg, token = await lot.asked()
    answered(leg, "without you")
    await settled()

    assert lot.freed == [leg]
    lot.now += lot.bounds.kept_s * 2
    lot.parked.expire()
    assert text_of(await lot.resume(token, q1=YES)) == "without you"
    assert lot.channel.answered == {0: {"action": "cancel"}}, "it may wait for that all the same"
    assert lot.freed == [leg]


@conversation
async def test_cancelling_the_retry_gives_the_call_up() -> None:
    lot = Lot()
    leg, token = await lot.asked()

    retry = asyncio.gather(lot.resume(token, q1=YES))
    await settled()
    retry.cancel()
    with pytest.raises(asyncio.CancelledError):
        await retry

    assert opened(leg).cancelled
    assert lot.freed == [leg]
    with pytest.raises(InvalidParams):
        await lot.resume(token, q1=YES)


@conversation
async def test_cancelling_a_retry_that_another_took_over_cancels_nothing() -> None:
    lot = Lot()
    leg, token = await lot.asked()
    early = asyncio.gather(lot.resume(token, q1=YES))
    await settled()
    late = asyncio.gather(lot.resume(token, q1=YES))
    await asyncio.sleep(0)

    early.cancel()
    await asyncio.gather(early, return_exceptions=True)
    assert not opened(leg).cancelled
    answered(leg)
    (outcome,) = await late

    assert text_of(outcome) == "done"


@conversation
async def test_a_retry_that_is_given_up_before_it_gets_there_gives_its_own_call_up_alone() -> None:
    """It may stand in line for its turn, or wait for a body. A thief that leaves is nobody."""
    lot = Lot()
    leg, token = await lot.asked()

    lot.parked.forsake(lot.call())
    lot.parked.forsake(lot.retry("guess", None, {}))
    lot.parked.forsake(lot.retry(token, lot.call(principal="bob"), {}))
    assert leg.end is None
    going_on = asyncio.gather(lot.resume(token, q1=YES))
    await settled()
    lot.parked.forsake(lot.retry(token, None, {}))
    assert leg.end is None, "another retry goes on with it"
    leg.asked(question("next"))
    (outcome,) = await going_on

    lot.parked.forsake(lot.retry(token_of(outcome), None, {}))

    assert opened(leg).cancelled == ["The client gave up"]
    assert lot.freed == [leg]


@conversation
async def test_a_client_that_comes_back_with_less_is_asked_no_more_than_it_declares() -> None:
    """2026-07-28, basic/patterns/mrtr: the capabilities that count are those of the request."""
    lot = Lot()
    leg, token = await lot.asked()
    less = lot.call(can=Raw(b'{"sampling":{}}'))

    again = asyncio.gather(lot.resume(token, less, q1=YES))
    await settled()
    leg.asked(question("next"))
    await eventually_async(lambda: lot.channel.refused)
    answered(leg)
    (outcome,) = await again

    assert text_of(outcome) == "done"
    assert lot.channel.refused == {
        "next": (-32602, "This client cannot be asked elicitation/create")
    }


@conversation
async def test_a_client_that_refuses_refuses_in_its_own_words() -> None:
    lot = Lot()
    leg, token = await lot.asked()
    refusal = {"onegate/refused": {"code": -1, "message": "User rejected"}}

    again = lot.resume(token, q1=refusal)
    answered(leg)
    await again

    assert lot.channel.refused == {0: (-1, "User rejected")}
    assert not lot.channel.answered


@conversation
async def test_an_error_of_the_server_is_the_retrys_error() -> None:
    lot = Lot()
    leg, token = await lot.asked()
    again = asyncio.gather(lot.resume(token, q1=YES), return_exceptions=True)
    await settled()
    leg.opened.answer.set_exception(GatewayError("no"))

    (error,) = await again

    assert isinstance(error, GatewayError)
    assert error.message == "no"
