"""How long a call may be silent, how long it may last, and what its caller is told."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.calls.call import Call, Completed, Limit, Outcome, Verdict
from gateway.calls.notices import Emitted, LogLine, Progress
from gateway.calls.pipeline import Handler
from gateway.policy.deadline import Deadline
from gateway.protocol.errors import DeadlineExceeded, ServerFailure
from tests.policy.calls import DONE, call
from tests.policy.clock import now, run, settle


def limits(timeout: float = 10, longest: float = 600) -> Verdict:
    return Verdict(
        True, "time__*", Limit(timeout, "onegate.yaml:27"), Limit(longest, "onegate.yaml:28")
    )


async def silent_server(_call: Call) -> Outcome:
    await asyncio.sleep(1_000_000)
    return DONE


def talking(notice: Callable[[int], Emitted], every: float, times: int) -> Handler:
    async def server(call: Call) -> Outcome:
        for step in range(times):
            await asyncio.sleep(every)
            call.emit(notice(step))
        return DONE

    return server


def test_a_silent_call_ends_at_its_timeout_and_says_where_that_is_set() -> None:
    async def main() -> None:
        started = now()
        with pytest.raises(DeadlineExceeded) as caught:
            await Deadline()(call(verdict=limits()), silent_server)
        assert now() - started == pytest.approx(10, abs=0.01)
        assert caught.value.message == (
            "time__now was cancelled after 10s: timeout of 10s set at onegate.yaml:27; "
            "no progress was reported"
        )
        assert caught.value.data["limit"] == "timeout"
        assert caught.value.data["source"] == "onegate.yaml:27"

    run(main())


def test_a_call_that_comes_while_an_end_is_overdue_does_not_put_it_off() -> None:
    """The loop was busy past the end of the first call, and takes up a second one first."""

    async def main() -> None:
        deadline = Deadline()
        loop: Any = asyncio.get_running_loop()

        async def ends_at_once() -> Outcome:
            loop.selector.now += 15
            return await deadline(call(verdict=limits(timeout=60)), brief_server)

        async def brief_server(_call: Call) -> Outcome:
            return DONE

        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(_expired(deadline(call(verdict=limits()), silent_server)))
            await settle()
            tasks.create_task(ends_at_once())
        assert first.result() == pytest.approx(15, abs=0.01)

    async def _expired(ended: Awaitable[Outcome]) -> float:
        started = now()
        with pytest.raises(DeadlineExceeded):
            await ended
        return now() - started

    run(main())


def test_progress_starts_the_silence_anew() -> None:
    async def main() -> None:
        started = now()
        heard: list[Emitted] = []
        server = talking(lambda step: Progress({"progress": step}), every=9, times=10)
        made = call(verdict=limits(), emit=heard.append)
        assert await Deadline()(made, server) is DONE
        assert now() - started == pytest.approx(90)
        assert len(heard) == 10  # and it still reaches the caller

    run(main())


def test_silence_after_progress_is_told_from_a_call_that_never_spoke() -> None:
    async def main() -> None:
        async def server(call: Call) -> Outcome:
            await asyncio.sleep(4)
            call.emit(Progress({"progress": 1}))
            return await silent_server(call)

        started = now()
        with pytest.raises(DeadlineExceeded, match="the last progress came 4s after its start"):
            await Deadline()(call(verdict=limits()), server)
        assert now() - started == pytest.approx(14, abs=0.01)

    run(main())


def test_log_lines_are_not_progress() -> None:
    async def main() -> None:
        server = talking(lambda step: LogLine("info", {}), every=6, times=5)
        with pytest.raises(DeadlineExceeded, match="timeout of 10s"):
            await Deadline()(call(verdict=limits()), server)

    run(main())


def test_endless_progress_ends_at_the_longest_time() -> None:
    async def main() -> None:
        started = now()
        server = talking(lambda step: Progress({"progress": step}), every=1, times=100_000)
        with pytest.raises(DeadlineExceeded) as caught:
            await Deadline()(call(verdict=limits(longest=60)), server)
        assert now() - started == pytest.approx(60, abs=0.01)
        assert "longest of 60s set at onegate.yaml:28" in caught.value.message
        assert caught.value.data["limit"] == "longest"

    run(main())


def test_a_limit_nobody_set_is_called_the_default() -> None:
    async def main() -> None:
        with pytest.raises(DeadlineExceeded, match="timeout of 60s the default"):
            await Deadline()(call(verdict=Verdict(True, "default")), silent_server)

    run(main())


def test_time_spent_waiting_for_a_turn_counts_towards_the_longest_time() -> None:
    async def main() -> None:
        started = now()
        made = call(verdict=limits(timeout=30, longest=20), waited_s=15)
        with pytest.raises(DeadlineExceeded, match="cancelled after 20s: longest of 20s"):
            await Deadline()(made, silent_server)
        assert now() - started == pytest.approx(5, abs=0.01)

    run(main())


def test_each_of_many_calls_ends_at_its_own_time() -> None:
    async def main() -> None:
        deadline, started = Deadline(), now()
        ended: dict[int, float] = {}

        async def one(silence: int) -> None:
            with pytest.raises(DeadlineExceeded):
                await deadline(call(verdict=limits(silence)), silent_server)
            ended[silence] = now() - started

        async with asyncio.TaskGroup() as tasks:
            for timeout in (30, 5, 60, 7, 1):
                tasks.create_task(one(timeout))
        assert ended == {each: pytest.approx(each, abs=0.01) for each in (1, 5, 7, 30, 60)}

    run(main())


def test_a_shorter_limit_that_comes_later_is_kept_too() -> None:
    async def main() -> None:
        deadline = Deadline()
        async with asyncio.TaskGroup() as tasks:
            long = tasks.create_task(_outcome(deadline, limits(50)))
            await asyncio.sleep(1)
            started = now()
            assert await _outcome(deadline, limits(2)) is DeadlineExceeded
            assert now() - started == pytest.approx(2, abs=0.01)
            assert await long is DeadlineExceeded

    run(main())


async def _outcome(deadline: Deadline, verdict: Verdict) -> object:
    try:
        return await deadline(call(verdict=verdict), silent_server)
    except DeadlineExceeded as error:
        return type(error)


def test_the_server_hears_of_the_cancellation_and_other_calls_go_on() -> None:
    async def main() -> None:
        deadline, cancelled = Deadline(), []

        async def server(call: Call) -> Outcome:
            try:
                return await silent_server(call)
            except asyncio.CancelledError as error:
                cancelled.append(str(error))
                raise

        async def quick(_call: Call) -> Outcome:
            await asyncio.sleep(20)
            return DONE

        async with asyncio.TaskGroup() as tasks:
            other = tasks.create_task(_await(deadline, quick))
            with pytest.raises(DeadlineExceeded):
                await deadline(call(verdict=limits()), server)
            assert await other is DONE
        assert len(cancelled) == 1
        assert "timeout of 10s" in cancelled[0]

    run(main())


async def _await(deadline: Deadline, server: Handler) -> Outcome:
    return await deadline(call(verdict=limits(100)), server)


def test_somebody_elses_timeout_passes_as_it_is() -> None:
    async def main() -> None:
        async def server(_call: Call) -> Outcome:
            async with asyncio.timeout(1):
                await asyncio.sleep(5)
            return DONE

        with pytest.raises(TimeoutError):
            await Deadline()(call(verdict=limits()), server)

    run(main())


def test_a_call_cancelled_by_its_client_is_cancelled_and_not_timed_out() -> None:
    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(Deadline()(call(verdict=limits()), silent_server))
            await asyncio.sleep(1)
            task.cancel()
            await asyncio.wait({task})
        assert task.cancelled()

    run(main())


def test_a_client_that_leaves_at_the_very_deadline_cancels() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(Deadline()(call(verdict=limits()), silent_server))
            loop.call_later(10, task.cancel)
            await asyncio.wait({task})
        assert task.cancelled()

    run(main())


def test_an_answer_in_the_last_moment_counts_and_leaves_no_cancellation_behind() -> None:
    async def main() -> None:
        async def server(call: Call) -> Outcome:
            try:
                return await silent_server(call)
            except asyncio.CancelledError:
                return Completed({}, size=7)

        assert await Deadline()(call(verdict=limits()), server) == Completed({}, size=7)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(1)  # would raise if our cancellation were still to come

    run(main())


def test_an_error_of_the_server_in_the_last_moment_leaves_no_cancellation_behind() -> None:
    async def main() -> None:
        async def server(call: Call) -> Outcome:
            try:
                return await silent_server(call)
            except asyncio.CancelledError:
                raise ServerFailure(-32000, "too late") from None

        with pytest.raises(ServerFailure):
            await Deadline()(call(verdict=limits()), server)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    run(main())


def test_calls_that_end_in_time_leave_nothing_behind() -> None:
    async def main() -> None:
        deadline = Deadline()

        async def server(_call: Call) -> Outcome:
            await asyncio.sleep(0.5)
            return DONE

        for _ in range(100):
            assert await deadline(call(verdict=limits()), server) is DONE
        await asyncio.sleep(100)
        await settle()
        assert not deadline._open
        with pytest.raises(DeadlineExceeded):  # and the timer still works
            await deadline(call(verdict=limits()), silent_server)

    run(main())


def test_one_stage_can_serve_a_second_event_loop_after_the_first() -> None:
    deadline = Deadline()

    async def main() -> None:
        with pytest.raises(DeadlineExceeded):
            await deadline(call(verdict=limits(0.02)), silent_server)

    async def left_alone() -> None:
        async def server(_call: Call) -> Outcome:
            return DONE

        await deadline(call(verdict=limits(0.001)), server)

    asyncio.run(left_alone())
    asyncio.run(main())
