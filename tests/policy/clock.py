"""An event loop whose time passes at once: an hour of waiting takes no time at all."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Got = TypeVar("Got")


class _Selector(selectors.DefaultSelector):
    """Instead of sleeping until the next timer it moves the clock there."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> list[Any]:
        events = super().select(0)
        if events or (timeout is not None and timeout <= 0):
            return events
        assert timeout is not None, "everybody waits for something that nobody will do"
        self.now += timeout
        return []


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.selector = _Selector()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.now


def run(main: Coroutine[Any, Any, Got]) -> Got:
    """Like `asyncio.run`, on a loop whose clock (`now()`) jumps from timer to timer."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)


def now() -> float:
    return asyncio.get_running_loop().time()


async def settle() -> None:
    """Let every task run until it waits for time or for somebody."""
    for _ in range(20):
        await asyncio.sleep(0)
