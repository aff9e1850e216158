"""The tasks of one conversation: owned by a group, and ended when the conversation is."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


Quiet = Coroutine[Any, Any, None]


class Work:
    """Starts tasks. Those that still run at the end are cancelled."""

    def __init__(
        self, tasks: asyncio.TaskGroup, contain: Callable[[Quiet], Quiet] = lambda work: work
    ) -> None:
        """`contain` is what keeps a bug in one request from ending the conversation."""
        self._tasks = tasks
        self._contain = contain
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def serve(self, request: Quiet) -> "asyncio.Task[None]":
        """Start what is done for one message of the client's."""
        return self.start(self._contain(request))

    def end(self) -> None:
        for task in tuple(self._running):
            task.cancel()
