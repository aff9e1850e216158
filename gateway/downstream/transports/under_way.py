"""The tasks of one conversation over HTTP, by the request each of them serves."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from gateway.downstream.transports.transport import NotReading

MOST_REQUESTS = 1000
"""Requests one server is sent at a time; beyond it callers wait. Each has a socket."""

AT_ONCE = 64
"""Messages that need no answer, sent to one server at a time. The others wait."""

Work = Coroutine[Any, Any, None]


@dataclass(slots=True, eq=False)
class UnderWay:
    begin: Callable[[Work], "asyncio.Task[None]"]
    ended: Callable[[int], None]
    """A request's task has ended, in whatever way."""
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    """Of those."""
    _requests: dict[int, "asyncio.Task[None]"] = field(default_factory=dict)
    _others: set["asyncio.Task[None]"] = field(default_factory=set)
    _room: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._room.set()

    def __len__(self) -> int:
        """How many requests there are."""
        return len(self._requests)

    @property
    def has_room(self) -> bool:
        return len(self._requests) < MOST_REQUESTS

    async def wait_room(self) -> None:
        await self._room.wait()

    def serve(self, id_: int, work: Work) -> None:
        """Run the work of a request."""
        task = self._requests[id_] = self.begin(work)
        task.add_done_callback(lambda _: self._served(id_))
        if not self.has_room:
            self._room.clear()

    def tell(self, work: Work) -> None:
        """Run what a server is told. Raises `NotReading` if too much of it waits: one that asks
        without end must not cost a connection each time."""
        if len(self._others) >= MOST_REQUESTS:
            work.close()
            raise NotReading("it takes nothing of what it is told")
        self.run(work)

    def run(self, work: Work) -> "asyncio.Task[None]":
        """Run what belongs to no request."""
        task = self.begin(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)
        return task

    def cancel(self, id_: object) -> None:
        """Stop working on a request; its stream is closed."""
        task = self._requests.get(id_) if isinstance(id_, int) else None
        if task is not None:
            task.cancel()

    async def wind_up(self, is_awaited: Callable[[int], bool], within_s: float) -> None:
        """Stop what somebody waits for, and let what the server is only told arrive: that is
        how it learns that nobody waits any more. Bounded."""
        for id_, task in self._requests.items():
            if is_awaited(id_):
                task.cancel()
        if tasks := [*self._requests.values(), *self._others]:
            await asyncio.wait(tasks, timeout=within_s)
        await self.cancel_all()

    async def cancel_all(self) -> None:
        tasks = [*self._requests.values(), *self._others]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _served(self, id_: int) -> None:
        del self._requests[id_]
        self._room.set()
        self.ended(id_)
