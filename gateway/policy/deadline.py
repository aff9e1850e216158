"""The stage that bounds one leg of a call, in silence and in all.

A leg that asks for input has ended, so the time a person spends answering is not counted.

One timer serves all open calls. It is set to the earliest end in sight and looks again
when it rings, so that neither a call nor its progress has to set or stop a timer: nearly
all calls end long before any timer would.
"""

import asyncio
import math

from msgspec.structs import replace

from gateway.calls.call import Call, Limit, Outcome
from gateway.calls.notices import Emitted, Progress
from gateway.calls.pipeline import Handler
from gateway.policy import phrases
from gateway.protocol.errors import DeadlineExceeded

_GRAIN_S = 0.001
"""Timers may ring this much early (uvloop counts milliseconds)."""


class _Watch:
    """One open call: when it has to end, and when it was last heard of."""

    __slots__ = (
        "call", "ends", "expired", "heard", "loop", "outer", "progressed", "taken_back", "task",
    )  # fmt: skip

    def __init__(self, call: Call, loop: asyncio.AbstractEventLoop) -> None:
        task = asyncio.current_task(loop)
        assert task is not None, "a call runs in the task of its request"
        self.call, self.loop, self.task = call, loop, task
        self.outer = task.cancelling()
        self.heard = loop.time()
        self.ends = self.heard + call.verdict.longest.value - call.spent.waited_s
        self.progressed = False
        self.expired: DeadlineExceeded | None = None
        self.taken_back = False

    def emit(self, notice: Emitted) -> None:
        if isinstance(notice, Progress):
            self.heard = self.loop.time()
            self.progressed = True
        self.call.emit(notice)

    def due(self) -> float:
        silence = self.heard + self.call.verdict.timeout.value
        return silence if silence < self.ends else self.ends

    def expire(self) -> None:
        verdict = self.call.verdict
        started = self.ends - verdict.longest.value
        elapsed = self.loop.time() - started
        if self.ends <= self.heard + verdict.timeout.value:
            self.expired = _exceeded(self.call, "longest", verdict.longest, elapsed, "")
        else:
            said = "no progress was reported"
            if self.progressed:
                said = f"the last progress came {_about(self.heard - started)} after its start"
            self.expired = _exceeded(self.call, "timeout", verdict.timeout, elapsed, said)
        self.task.cancel(self.expired.message)

    def take_back(self) -> bool:
        """Take our cancellation back, if there is one. True if nobody else asked for one."""
        if self.expired is None or self.taken_back:
            return False
        self.taken_back = True
        return self.task.uncancel() <= self.outer


class Deadline:
    """Somebody else's TimeoutError or cancellation passes."""

    def __init__(self) -> None:
        self._open: set[_Watch] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rings = -math.inf

    async def __call__(self, call: Call, proceed: Handler) -> Outcome:
        loop = asyncio.get_running_loop()
        watch = _Watch(call, loop)
        self._open.add(watch)
        due = watch.due()
        # A timer that is overdue rings as soon as the loop gets to it: never put that off.
        if loop is not self._loop or not -math.inf < self._rings <= due:
            self._set(loop, due)
        try:
            return await proceed(replace(call, emit=watch.emit))
        except asyncio.CancelledError:
            if watch.expired is not None and watch.take_back():
                raise watch.expired from None
            raise
        finally:
            self._open.discard(watch)
            if watch.expired is not None:  # it may have answered all the same, just in time
                watch.take_back()

    def _set(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._loop, self._rings = loop, when
        self._timer = loop.call_at(when, self._ring, loop) if when < math.inf else None

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._rings = -math.inf
        now, earliest = loop.time() + _GRAIN_S, math.inf
        for watch in tuple(self._open):
            due = watch.due()
            if due > now:
                earliest = min(earliest, due)
            else:
                self._open.discard(watch)
                watch.expire()
        if earliest < math.inf:
            self._set(loop, earliest)


def _exceeded(call: Call, which: str, limit: Limit, elapsed: float, said: str) -> DeadlineExceeded:
    message = (
        f"{call.name} was cancelled after {_about(elapsed)}: "
        f"{which} of {phrases.duration(limit.value)} {phrases.origin(limit)}"
    )
    data = {
        "limit": which,
        "limit_s": limit.value,
        "source": limit.source,
        "elapsed_s": round(elapsed, 3),
    }
    return DeadlineExceeded(f"{message}; {said}" if said else message, data=data)


def _about(seconds: float) -> str:
    return phrases.duration(round(seconds, 1) if seconds >= 1 else round(seconds, 3))
