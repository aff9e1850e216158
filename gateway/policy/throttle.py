"""The stage that bounds how often, and how many at a time, entries and servers are called."""

from collections.abc import Awaitable, Callable
from functools import partial

from gateway.calls.call import Call, Limit, Outcome
from gateway.calls.pipeline import Handler
from gateway.policy import phrases
from gateway.policy.line import Line
from gateway.policy.rates import Rates
from gateway.policy.rules import Turns
from gateway.protocol.errors import Throttled

_Key = tuple[str, str]
"""What the line is for (`tool` or `server`), and its name."""

KEPT = 1024
"""Lines; beyond that, those in which nobody stands are forgotten."""

_SOON_S = 1.0
"""What a caller is told to wait when nobody can know: calls of others have to end."""


class Throttle:
    """Runs after `authorize`, so that names are known entries and the tables stay bounded.

    A call without any such limit pays for a few comparisons. Standing in line counts
    towards the call's own limits: nobody waits longer than its timeout, and what it waited
    is taken off its `longest`.
    """

    def __init__(self, turns_of: Callable[[str], Turns | None], clock: Callable[[], float]) -> None:
        """`turns_of` tells a server's own bound, if it has one (`Rules.turns.get`)."""
        self._turns_of, self._clock = turns_of, clock
        self._rates = Rates(clock)
        self._lines: dict[_Key, Line] = {}

    def __call__(self, call: Call, proceed: Handler) -> Awaitable[Outcome]:
        assert call.entry is not None, "authorize runs before"
        verdict, route = call.verdict, call.entry.route
        if verdict.rate is not None:
            self._check_rate(call, verdict.rate)
        turns = self._turns_of(route.server)
        if turns is not None:  # always the server's last, so that no two wait for each other
            server = ("server", route.server)
            proceed = partial(self._in_turn, proceed, server, turns.concurrency, turns.queue)
        if verdict.concurrency is None:
            return proceed(call)
        own = (route.kind, call.entry.name)
        return self._in_turn(proceed, own, verdict.concurrency, verdict.queue, call)

    async def _in_turn(
        self, proceed: Handler, key: _Key, concurrency: Limit, queue: Limit, call: Call
    ) -> Outcome:
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = Line()
        if not line.enter(concurrency.value):
            await self._wait(call, line, key, Turns(concurrency, queue))
        try:
            return await proceed(call)
        finally:
            line.leave()
            if line.idle and len(self._lines) > KEPT:
                self._forget_idle()

    def _check_rate(self, call: Call, rate: Limit) -> None:
        per_s = call.verdict.per_s
        wait_s = self._rates.take((call.caller.principal, call.name), rate.value, per_s)
        if wait_s:
            words = phrases.rate(rate.value, per_s)
            raise _throttled(
                f"{call.name} is being called too often: rate of {words} {phrases.origin(rate)}",
                ("rate", rate),
                wait_s,
            )

    async def _wait(self, call: Call, line: Line, key: _Key, bound: Turns) -> None:
        """Until it is this call's turn. Raises `Throttled`."""
        if line.waiting >= bound.queue.value:
            busy = f"{_in_use(key, bound)}, and as many wait as may (queue of "
            full = f"{bound.queue.value:.0f}, {phrases.origin(bound.queue)})"
            raise _throttled(busy + full, ("queue", bound.queue), _SOON_S)
        verdict, started = call.verdict, self._clock()
        patience_s = min(verdict.timeout.value, verdict.longest.value) - call.spent.waited_s
        try:
            await line.wait(patience_s)
        except TimeoutError:
            waited = phrases.duration(round(self._clock() - started, 1))
            raise _throttled(
                f"{_in_use(key, bound)}, and no turn came up in {waited}",
                ("concurrency", bound.concurrency),
                _SOON_S,
            ) from None
        finally:
            call.spent.waited_s += self._clock() - started

    def waiting(self) -> list[tuple[str, str, int]]:
        """Who waits now: `server` or a kind of entry, its name, and how many calls."""
        return [(*key, line.waiting) for key, line in self._lines.items() if line.waiting]

    def _forget_idle(self) -> None:
        for key in [key for key, line in self._lines.items() if line.idle]:
            del self._lines[key]


def _in_use(key: _Key, bound: Turns) -> str:
    who = f"The server {key[1]}" if key[0] == "server" else key[1]
    limit = bound.concurrency
    return f"{who} is busy: concurrency of {limit.value:.0f} {phrases.origin(limit)} is in use"


def _throttled(message: str, bound: tuple[str, Limit], wait_s: float) -> Throttled:
    setting, limit = bound
    shown_s = max(round(wait_s, 1), 0.1)
    data = {"limit": setting, "source": limit.source, "retry_after_s": shown_s}
    return Throttled(f"{message}; try again in {phrases.duration(shown_s)}", data=data)
