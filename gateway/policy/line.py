"""Waiting for a turn, first come first served."""

import asyncio
from collections import deque


class Line:
    """So many at a time; the others wait in the order they came. Belongs to one event loop.

    A turn is handed over at the moment it is given back, so nobody can slip in between,
    and it is never lost: a waiter that goes away passes on what it may just have got.
    """

    __slots__ = ("_at_a_time", "_running", "_waiting")

    def __init__(self) -> None:
        self._at_a_time = 1.0
        self._running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        return not self._running and not self._waiting

    def enter(self, at_a_time: float) -> bool:
        """Take a turn if one is free and nobody waits for it. `leave` when done."""
        self._at_a_time = at_a_time
        if self._waiting:
            self._hand_over()  # the bound may just have been raised
        if self._running >= at_a_time:
            return False
        self._running += 1
        return True

    async def wait(self, patience_s: float) -> None:
        """Wait for a turn. `leave` when done. Raises TimeoutError after `patience_s`."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        mine = False
        try:
            async with asyncio.timeout(patience_s):
                await turn
            mine = True
        finally:
            if not mine:
                self._withdraw(turn)

    def leave(self) -> None:
        self._running -= 1
        self._hand_over()

    def _withdraw(self, turn: asyncio.Future[None]) -> None:
        if turn in self._waiting:
            self._waiting.remove(turn)
        elif turn.done() and not turn.cancelled():  # it became ours just now: pass it on
            self._running -= 1
        self._hand_over()

    def _hand_over(self) -> None:
        while self._waiting and self._running < self._at_a_time:
            turn = self._waiting.popleft()
            if not turn.done():
                self._running += 1
                turn.set_result(None)
