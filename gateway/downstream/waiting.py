"""Calls that wait for a process to come free, over all servers, in the order they came.

What comes free is given to the first that can use it in the moment it comes free, so nobody
who comes later can slip in between; and it is never lost: a call that is given up in that
moment passes it on. Belongs to one event loop; costs nothing while nobody waits.
"""

import asyncio
from asyncio import Future
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Granted = TypeVar("Granted")


@dataclass(slots=True, eq=False)
class _Waiter(Generic[Granted]):
    of: object
    attempt: Callable[[], Granted | None]
    granted: "Future[Granted]"


@dataclass(slots=True, eq=False)
class WaitingLine(Generic[Granted]):
    _waiters: list[_Waiter[Granted]] = field(default_factory=list)
    _is_stirring: bool = False
    _again: bool = False

    def of(self, whose: object) -> int:
        """How many wait for something of this pool's."""
        return sum(1 for waiter in self._waiters if waiter.of is whose)

    async def wait(
        self,
        whose: object,
        attempt: Callable[[], Granted | None],
        return_: Callable[[Granted], None],
        within_s: float,
    ) -> Granted:
        """Wait until `attempt` grants something; `return_` takes back what nobody wants.

        Raises `TimeoutError`, or what `dismiss` was given.
        """
        granted: Future[Granted] = asyncio.get_running_loop().create_future()
        waiter = _Waiter(whose, attempt, granted)
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(within_s):
                return await granted
        except BaseException:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif _is_granted(granted):  # just now, and to nobody
                return_(granted.result())
            raise

    def stir(self) -> None:
        """Something has come free, or may have: let them try, the longest waiting first."""
        if not self._waiters:
            return
        self._again = True
        if self._is_stirring:  # an attempt frees what it takes: see to it afterwards
            return
        self._is_stirring = True
        try:
            while self._again:
                self._again = False
                self._grant()
        finally:
            self._is_stirring = False

    def _grant(self) -> None:
        for waiter in tuple(self._waiters):
            if waiter.granted.done():
                continue  # given up; it takes itself out
            granted = waiter.attempt()
            if granted is not None:
                self._waiters.remove(waiter)
                waiter.granted.set_result(granted)

    def dismiss(self, whose: object, why: Exception) -> None:
        """There will be nothing for these any more."""
        for waiter in [waiter for waiter in self._waiters if waiter.of is whose]:
            self._waiters.remove(waiter)
            if not waiter.granted.done():
                waiter.granted.set_exception(why)


def _is_granted(future: "Future[Granted]") -> bool:
    return future.done() and not future.cancelled() and future.exception() is None
