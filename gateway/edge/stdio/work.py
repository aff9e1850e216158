"""The tasks of one conversation: owned by a group, and ended when the conversation is."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Work:
    """Starts tasks. Those that still run at the end are cancelled."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def end(self) -> None:
        for task in tuple(self._running):
            task.cancel()
