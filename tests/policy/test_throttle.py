"""How often and how many at a time: who waits, who is refused, and that no turn is lost."""

import asyncio
import random

import pytest

from gateway.calls.call import Call, Limit, Outcome, Verdict
from gateway.calls.pipeline import Handler
from gateway.policy.deadline import Deadline
from gateway.policy.rules import Turns
from gateway.policy.throttle import Throttle
from gateway.protocol.errors import DeadlineExceeded, Throttled
from tests.policy.calls import DONE, call
from tests.policy.clock import now, run, settle


class Slow:
    """A server that takes a second for each call and remembers how many were there at once."""

    def __init__(self, takes_s: float = 1) -> None:
        self.takes_s, self.inside, self.most = takes_s, 0, 0
        self.order: list[str | None] = []

    async def __call__(self, call: Call) -> Outcome:
        self.order.append(call.caller.principal)
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await asyncio.sleep(self.takes_s)
        finally:
            self.inside -= 1
        return DONE


def at_a_time(
    count: float, queue: float = 64, timeout: float = 60, longest: float = 600
) -> Verdict:
    return Verdict(
        True, "time__*", Limit(timeout, "default"), Limit(longest, "default"),
        Limit(count, "onegate.yaml:30"), Limit(queue, "onegate.yaml:31"),
    )  # fmt: skip


def often(count: float, per_s: float) -> Verdict:
    return Verdict(True, "time__*", rate=Limit(count, "onegate.yaml:32"), per_s=per_s)


def throttle(**servers: Turns) -> Throttle:
    return Throttle(servers.get, now)


def of_server(count: float, queue: float = 64) -> Turns:
    return Turns(Limit(count, "onegate.yaml:9"), Limit(queue, "default"))


def test_a_call_without_limits_goes_straight_on() -> None:
    async def main() -> None:
        went = throttle()(call(), Slow())
        assert getattr(went, "__qualname__", "") == "Slow.__call__"  # nothing is wrapped around it
        assert await went is DONE

    run(main())


def test_no_more_run_than_may_and_the_rest_run_in_the_order_they_came() -> None:
    async def main() -> None:
        server, stage, verdict = Slow(), throttle(), at_a_time(3)
        callers = [str(number) for number in range(20)]
        async with asyncio.TaskGroup() as tasks:
            for name in callers:
                tasks.create_task(_ended(stage, call(verdict=verdict, principal=name), server))
        assert server.most == 3
        assert server.order == callers
        assert all(line.idle for line in stage._lines.values())

    run(main())


def test_when_the_queue_is_full_the_next_is_told_which_limit_and_where_it_is_set() -> None:
    async def main() -> None:
        server, stage, verdict = Slow(), throttle(), at_a_time(1, queue=2)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(_ended(stage, call(verdict=verdict), server))
            await settle()
            with pytest.raises(Throttled) as caught:
                await stage(call(verdict=verdict), server)
        assert caught.value.message == (
            "time__now is busy: concurrency of 1 set at onegate.yaml:30 is in use, and as many "
            "wait as may (queue of 2, set at onegate.yaml:31); try again in 1s"
        )
        assert caught.value.data == {
            "limit": "queue", "source": "onegate.yaml:31", "retry_after_s": 1.0
        }  # fmt: skip
        assert len(server.order) == 3

    run(main())


def test_without_a_queue_a_busy_tool_refuses_at_once() -> None:
    async def main() -> None:
        server, stage, verdict = Slow(), throttle(), at_a_time(1, queue=0)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_ended(stage, call(verdict=verdict), server))
            await settle()
            with pytest.raises(Throttled, match="queue of 0"):
                await stage(call(verdict=verdict), server)

    run(main())


def test_nobody_waits_for_a_turn_longer_than_the_call_may_be_silent() -> None:
    async def main() -> None:
        server, stage, verdict = Slow(100), throttle(), at_a_time(1, timeout=5)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_ended(stage, call(verdict=verdict), server))
            await settle()
            started, waiting = now(), call(verdict=verdict)
            with pytest.raises(Throttled, match="no turn came up in 5s"):
                await stage(waiting, server)
            assert now() - started == pytest.approx(5, abs=0.01)
            assert waiting.spent.waited_s == pytest.approx(5, abs=0.01)

    run(main())


def test_waiting_counts_towards_the_longest_time_of_the_call() -> None:
    async def main() -> None:
        stage, deadline, verdict = throttle(), Deadline(), at_a_time(1, longest=50)

        async def server(call: Call) -> Outcome:
            return await deadline(call, Slow(40))

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_ended(stage, call(verdict=verdict), server))
            await settle()
            started = now()
            with pytest.raises(DeadlineExceeded, match="longest of 50s"):
                await stage(call(verdict=verdict), server)
            assert now() - started == pytest.approx(50, abs=0.01)

    run(main())


def test_a_waiter_that_leaves_gives_its_place_up() -> None:
    async def main() -> None:
        server, stage, verdict = Slow(), throttle(), at_a_time(1, queue=1)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_ended(stage, call(verdict=verdict, principal="first"), server))
            await settle()
            gone = tasks.create_task(_ended(stage, call(verdict=verdict, principal="gone"), server))
            await settle()
            gone.cancel()
            await settle()
            tasks.create_task(_ended(stage, call(verdict=verdict, principal="next"), server))
        assert server.order == ["first", "next"]
        assert all(line.idle for line in stage._lines.values())

    run(main())


def test_a_turn_given_to_a_waiter_at_the_moment_it_leaves_goes_to_the_next() -> None:
    async def main() -> None:
        stage, verdict, release = throttle(), at_a_time(1), asyncio.Event()
        ran: list[str | None] = []

        async def server(call: Call) -> Outcome:
            ran.append(call.caller.principal)
            await release.wait()
            return DONE

        async def first() -> None:
            await stage(call(verdict=verdict, principal="first"), server)
            second.cancel()  # in the same step in which the turn was handed over

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(first())
            await settle()
            second = tasks.create_task(
                _ended(stage, call(verdict=verdict, principal="second"), server)
            )
            tasks.create_task(_ended(stage, call(verdict=verdict, principal="third"), server))
            await settle()
            release.set()
        assert ran == ["first", "third"]
        assert all(line.idle for line in stage._lines.values())

    run(main())


def test_turns_survive_any_order_of_ends_and_cancellations() -> None:
    async def main(seed: int) -> None:
        dice = random.Random(seed)
        server, stage = Slow(), throttle(time=of_server(3))
        async with asyncio.TaskGroup() as tasks:
            for _ in range(60):
                server.takes_s = dice.choice([0, 0.5, 1])
                task = tasks.create_task(_ended(stage, call(verdict=at_a_time(2)), server))
                if dice.random() < 0.5:
                    asyncio.get_running_loop().call_later(
                        dice.choice([0, 0.5, 1, 2, 3]), task.cancel
                    )
                await asyncio.sleep(dice.choice([0, 0, 0.5]))
        assert server.most <= 2
        assert all(line.idle for line in stage._lines.values())
        assert await stage(call(verdict=at_a_time(1)), server) is DONE

    for seed in range(30):
        run(main(seed))


def test_a_bound_that_is_raised_lets_those_in_first_who_waited() -> None:
    async def main() -> None:
        server, stage = Slow(), throttle()
        async with asyncio.TaskGroup() as tasks:
            for name in ("first", "second", "third"):
                made = call(verdict=at_a_time(1), principal=name)
                tasks.create_task(_ended(stage, made, server))
            await settle()
            made = call(verdict=at_a_time(2), principal="late")
            tasks.create_task(_ended(stage, made, server))
        assert server.order == ["first", "second", "third", "late"]
        assert server.most == 2

    run(main())


def test_a_server_has_a_bound_over_all_its_tools_and_others_do_not_feel_it() -> None:
    async def main() -> None:
        busy, other = Slow(), Slow()
        stage = throttle(time=of_server(2))
        async with asyncio.TaskGroup() as tasks:
            for number in range(6):
                tasks.create_task(_ended(stage, call(f"time__tool{number}"), busy))
            await settle()
            started = now()
            await stage(call("files__read"), other)
            assert now() - started == pytest.approx(1)
        assert busy.most == 2

    run(main())


def test_a_busy_server_is_named_in_the_refusal() -> None:
    async def main() -> None:
        server, stage = Slow(), throttle(time=of_server(1, queue=0))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_ended(stage, call("time__a"), server))
            await settle()
            with pytest.raises(
                Throttled, match=r"The server time is busy: concurrency of 1 set at onegate\.yaml:9"
            ):
                await stage(call("time__b"), server)

    run(main())


def test_a_failing_call_gives_its_turn_back() -> None:
    async def main() -> None:
        async def broken(_call: Call) -> Outcome:
            raise DeadlineExceeded("too slow")

        stage, verdict = throttle(time=of_server(1, queue=0)), at_a_time(1, queue=0)
        for _ in range(3):
            with pytest.raises(DeadlineExceeded):
                await stage(call(verdict=verdict), broken)
        assert all(line.idle for line in stage._lines.values())

    run(main())


def test_a_rate_lets_so_many_through_at_once_and_then_as_time_passes() -> None:
    async def main() -> None:
        stage, server, verdict = throttle(), Slow(0), often(5, 10)
        for _ in range(5):
            await stage(call(verdict=verdict), server)
        with pytest.raises(Throttled) as caught:
            await stage(call(verdict=verdict), server)
        assert caught.value.message == (
            "time__now is being called too often: rate of 5/10s set at onegate.yaml:32; "
            "try again in 2s"
        )
        assert caught.value.data["retry_after_s"] == 2.0
        await asyncio.sleep(2)
        await stage(call(verdict=verdict), server)
        with pytest.raises(Throttled):
            await stage(call(verdict=verdict), server)
        await asyncio.sleep(1000)  # unused time is not saved up beyond the burst
        for _ in range(5):
            await stage(call(verdict=verdict), server)
        with pytest.raises(Throttled):
            await stage(call(verdict=verdict), server)

    run(main())


def test_each_principal_and_each_tool_has_a_rate_of_its_own() -> None:
    async def main() -> None:
        stage, server, verdict = throttle(), Slow(0), often(1, 60)
        await stage(call(verdict=verdict, principal="ann"), server)
        await stage(call(verdict=verdict, principal="bob"), server)
        await stage(call("time__other", verdict, principal="ann"), server)
        with pytest.raises(Throttled, match="rate of 1/min"):
            await stage(call(verdict=verdict, principal="ann"), server)

    run(main())


def test_buckets_that_are_full_again_are_forgotten() -> None:
    async def main() -> None:
        stage, server = throttle(), Slow(0)
        for number in range(5000):
            await stage(call(f"time__tool{number}", often(1, 1)), server)
            await asyncio.sleep(0.1)
        assert len(stage._rates) < 1100

    run(main())


async def _ended(stage: Throttle, made: Call, server: Handler) -> Outcome:
    return await stage(made, server)
