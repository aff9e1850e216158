"""A conversation from its first line to its last: it ends with stdin, with stdout, or when told."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from gateway.edge.stdio.conversation import Conversation, Far
from gateway.edge.stdio.mouth import Mouth, Pipe
from gateway.edge.stdio.work import Work
from gateway.protocol import methods

FINISH_S = 0.5
"""What is under way when stdin ends may still be answered this long: a script writes its
questions, closes the pipe, and reads."""
BEGUN_S = 2.0
"""So long they wait at most for a gateway that still starts: clients lose patience then."""
LOOK_EVERY_S = 0.02


class Ends(Protocol):
    """The client's pipes."""

    def open(
        self,
        feed: Callable[[bytes], None],
        ended: Callable[[], None],
        broken: Callable[[], None],
    ) -> Pipe:
        """Read from now on. `ended`: stdin is over; `broken`: nobody reads stdout any more."""


class Holding:
    """`told_to_end` is what signals call; `mouth` is there before the far end is made."""

    def __init__(
        self,
        ends: Ends,
        work: Work,
        tell: Callable[[str], None],
        has_begun: Callable[[], bool] = lambda: True,
    ) -> None:
        """`has_begun`: the gateway is there to answer, or it is nobody's task to start it."""
        self.work = work
        self._has_begun = has_begun
        self._tell = tell
        self._over = asyncio.Event()
        self._is_quiet = True
        """Nobody reads answers any more, or there is no time for them."""
        self._conversation: Conversation | None = None
        self._early: list[bytes] = []
        self._has_ended = False
        self.mouth = Mouth(ends.open(self._feed, self._ended, self.end), self._broken)

    def end(self) -> None:
        """At once."""
        self._is_quiet = True
        self._over.set()

    async def hold(self, far: Far) -> None:
        """Until it is over. The far end is the caller's to close."""
        self._conversation = conversation = Conversation(far, self.mouth, self.work)
        self._is_quiet = self._over.is_set() and not self._has_ended
        for data in self._early:
            conversation.feed(data)
        self._early.clear()
        if self._has_ended:
            conversation.finish()
        await self._over.wait()
        await self._finish(conversation)

    async def _finish(self, conversation: Conversation) -> None:
        loop = asyncio.get_running_loop()
        latest = loop.time() + BEGUN_S
        until = loop.time() + FINISH_S
        while not self._is_quiet and loop.time() < until:
            if not any(a.request.method != methods.LISTEN for a in conversation.serving):
                break
            await asyncio.sleep(LOOK_EVERY_S)
            if not self._has_begun():
                until = min(loop.time() + FINISH_S, latest)

    def _feed(self, data: bytes) -> None:
        if self._conversation is None:
            self._early.append(data)
        else:
            self._conversation.feed(data)

    def _ended(self) -> None:
        self._has_ended = True
        if self._conversation is not None:
            self._conversation.finish()
        self._over.set()

    def _broken(self, reason: str) -> None:
        self._tell(f"the conversation ends: {reason}")
        self.end()
