"""The stage itself: bounds, questions that come late, and what is left of a call; no network."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.calls.call import (
    Call,
    Caller,
    Completed,
    InputRequired,
    Limit,
    Outcome,
    Spent,
    Verdict,
)
from gateway.calls.notices import Board, Progress
from gateway.catalog.entries import Kind
from gateway.policy.background import Background, Bounds
from gateway.policy.companion import Companion
from gateway.protocol.errors import CannotAnswer, ServerUnavailable
from gateway.protocol.revisions import NEWEST, Era
from tests.kit.waiting import eventually_async, run

AFTER = Verdict(True, "*", background=Limit(0.01, "onegate.yaml:1"))
MODERN = NEWEST[Era.MODERN]


def a_call(principal: str | None = None, verdict: Verdict = AFTER) -> Call:
    caller = Caller(MODERN, principal)
    call = Call("1", "tools/call", Kind.TOOL, "old__slow", {"name": "slow"}, caller, Spent())
    return replace(call, verdict=verdict)


def asking(handle: str, principal: str | None = None) -> Call:
    return replace(a_call(principal), params={"arguments": {"handle": handle}})


@dataclass
class Slow:
    """A server whose calls end when the test says so; each time with the next of the ends."""

    ends: list[Outcome | Exception]
    calls: list[Call] = field(default_factory=list)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, call: Call) -> Outcome:
        self.calls.append(call)
        await self.may_end.wait()
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end


@dataclass
class Stage:
    """The stage with its surroundings."""

    background: Background
    companion: Companion
    abandoned: list[Call]
    now: list[float]

    async def begin(self, slow: Callable[[Call], Coroutine[Any, Any, Outcome]], call: Call) -> Any:
        """Start a call; the handle it ended with, or its outcome if it ended."""
        outcome = await self.background(call, slow)
        handed = isinstance(outcome, Completed) and outcome.background
        return handed.handle if handed else outcome


def with_stage(test: Callable[[Stage], Coroutine[Any, Any, None]], **bounds: Any) -> None:
    async def inside() -> None:
        abandoned: list[Call] = []
        now = [1000.0]
        async with asyncio.TaskGroup() as tasks:
            background = Background(
                tasks.create_task,
                lambda: now[0],
                Board(),
                lambda: "again",
                lambda call, asked: abandoned.append(call),
                Bounds(**bounds),
            )
            companion = Companion(background, lambda: now[0])
            await test(Stage(background, companion, abandoned, now))
            background.close()

    run(inside())


def text_of(outcome: Outcome) -> str:
    return str(outcome.result["content"][0]["text"])


def test_without_a_rule_the_call_is_not_touched() -> None:
    async def test(stage: Stage) -> None:
        seen: list[asyncio.Task[Any] | None] = []

        async def quick(call: Call) -> Outcome:
            seen.append(asyncio.current_task())
            return Completed({"it": "is"})

        outcome = await stage.begin(quick, a_call(verdict=Verdict(True, "*")))
        assert outcome == Completed({"it": "is"})
        assert seen == [asyncio.current_task()], "no task of its own"

    with_stage(test)


def test_progress_reaches_the_client_until_it_has_its_handle() -> None:
    async def test(stage: Stage) -> None:
        heard: list[Any] = []
        slow = Slow([Completed({"content": []})])
        handle = await stage.begin(slow, replace(a_call(), emit=heard.append))
        slow.calls[0].emit(Progress({"progress": 5}))
        assert heard == []
        told = await stage.companion.call(asking(handle))
        assert "Progress: 5" in text_of(told)

    with_stage(test)


def test_a_question_that_comes_late_is_nobodys_without_tasks() -> None:
    """A legacy server waits for its answer in mid-call: it is told that none will come."""

    async def test(stage: Stage) -> None:
        slow = Slow([InputRequired({"inputRequests": {}, "requestState": "s"}, ours=True)])
        handle = await stage.begin(slow, a_call())
        slow.may_end.set()
        with pytest.raises(CannotAnswer, match="nobody could be asked"):
            await stage.companion.call(asking(handle))
        assert len(stage.abandoned) == 1

    with_stage(test)


def test_a_question_that_comes_late_is_answered_by_whoever_knows_tasks() -> None:
    async def test(stage: Stage) -> None:
        slow = Slow([InputRequired({"inputRequests": {"k": {}}}), Completed({"content": []})])
        going = stage.background.find(await stage.begin(slow, a_call()), Caller(MODERN))
        assert going is not None
        going.takes_questions = True
        slow.may_end.set()
        assert await going.wait(5)
        assert going.status == "input_required"

        stage.background.answer(going, {"inputResponses": {"k": 1}})
        assert going.status == "working"
        assert await going.wait(5)
        assert (going.status, stage.abandoned) == ("completed", [])
        assert slow.calls[1].params["inputResponses"] == {"k": 1}
        assert slow.calls[1].id == "again"

    with_stage(test)


def test_a_failure_is_raised_where_it_is_fetched() -> None:
    async def test(stage: Stage) -> None:
        slow = Slow([ServerUnavailable("It fell over", server="old")])
        handle = await stage.begin(slow, a_call())
        slow.may_end.set()
        with pytest.raises(ServerUnavailable, match="It fell over"):
            await stage.companion.call(asking(handle))

    with_stage(test)


def test_a_bug_in_the_call_ends_it_for_whoever_asks() -> None:
    async def test(stage: Stage) -> None:
        slow = Slow([ZeroDivisionError()])
        async with asyncio.TaskGroup() as own:
            stage.background.spawn = lambda work: own.create_task(_contained(work))
            going = stage.background.find(await stage.begin(slow, a_call()), Caller(MODERN))
            assert going is not None
            slow.may_end.set()
            assert await going.wait(5)
        assert going.status == "failed"

    with_stage(test)


async def _contained(work: Coroutine[Any, Any, None]) -> None:
    with suppress(ZeroDivisionError):
        await work


def test_another_principals_call_is_as_good_as_none() -> None:
    async def test(stage: Stage) -> None:
        handle = await stage.begin(Slow([]), a_call("ann"))
        assert "no call with this handle" in text_of(
            await stage.companion.call(asking(handle, "bob"))
        )
        assert "still running" in text_of(await stage.companion.call(asking(handle, "ann")))

    with_stage(test)


def test_beyond_the_bound_of_a_principal_calls_are_waited_for_as_ever() -> None:
    async def test(stage: Stage) -> None:
        slow = Slow([Completed({"n": 3})])
        for _ in range(2):
            assert str(await stage.begin(slow, a_call("ann"))).startswith("bg-")
        assert str(await stage.begin(slow, a_call("bob"))).startswith("bg-")

        async def third() -> Outcome:
            return await stage.background(a_call("ann"), slow)

        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(third())
            await asyncio.wait({waiting}, timeout=0.1)
            assert not waiting.done(), "ten times as long as the rule says"
            waiting.cancel()

    with_stage(test, per_principal=2)


def test_calls_that_begin_together_keep_within_the_bound_as_well() -> None:
    """They go on in the background one after the other, as soon as there is room."""

    async def test(stage: Stage) -> None:
        slow = Slow([Completed({"content": []}) for _ in range(3)])
        ended: list[Any] = []

        async def begun() -> None:
            ended.append(await stage.begin(slow, a_call()))

        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(begun())
            await eventually_async(lambda: len(ended) == 2)
            assert len(stage.background) == 2
            slow.may_end.set()
        assert len(stage.background) == 2
        assert [str(each).startswith("bg-") for each in ended] == [True, True, False]

    with_stage(test, per_principal=2)


def test_results_make_room_for_calls_that_run() -> None:
    async def test(stage: Stage) -> None:
        slow = Slow([Completed({"content": []}), Completed({"content": []})])
        first = await stage.begin(slow, a_call())
        going = stage.background.find(first, Caller(MODERN))
        assert going is not None
        slow.may_end.set()
        assert await going.wait(5)
        slow.may_end.clear()
        second = await stage.begin(slow, a_call())
        assert str(second).startswith("bg-")
        assert stage.background.find(first, Caller(MODERN)) is None

    with_stage(test, per_principal=1)


def test_the_oldest_results_go_where_there_are_too_many_bytes() -> None:
    async def test(stage: Stage) -> None:
        handles = []
        for _ in range(3):
            slow = Slow([Completed({"content": []}, size=60)])
            handles.append(await stage.begin(slow, a_call()))
            stage.now[0] += 1
            slow.may_end.set()
            going = stage.background.find(handles[-1], Caller(MODERN))
            assert going is not None
            assert await going.wait(5)
            await asyncio.sleep(0)  # its task has a last word to say
        kept = [stage.background.find(handle, Caller(MODERN)) is not None for handle in handles]
        assert kept == [False, False, True]

    with_stage(test, all_bytes=100)


def test_a_result_nobody_fetched_is_forgotten_and_a_running_call_is_not() -> None:
    async def test(stage: Stage) -> None:
        done, running = Slow([Completed({"content": []})]), Slow([])
        first, second = await stage.begin(done, a_call()), await stage.begin(running, a_call())
        done.may_end.set()
        going = stage.background.find(first, Caller(MODERN))
        assert going is not None
        assert await going.wait(5)
        stage.now[0] += 7200
        stage.background.expire()
        assert stage.background.find(first, Caller(MODERN)) is None
        assert stage.background.find(second, Caller(MODERN)) is not None

    with_stage(test)


def test_a_call_that_is_left_before_its_handle_is_given_up() -> None:
    async def test(stage: Stage) -> None:
        slow = Slow([])
        patient = replace(AFTER, background=Limit(60.0, "default"))

        async def called() -> None:
            await stage.background(a_call(verdict=patient), slow)

        async with asyncio.TaskGroup() as tasks:
            calling = tasks.create_task(called())
            await eventually_async(lambda: slow.calls)
            calling.cancel()
        assert len(stage.background) == 0

    with_stage(test)
