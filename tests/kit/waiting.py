"""Waiting for a condition, never for a time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
LOOK_EVERY_S = 0.01


def eventually(predicate: Callable[[], T], within_s: float = 5.0, *, what: str = "") -> T:
    """The first true value of `predicate`. Looks once more at the end; AssertionError after it."""
    end = time.monotonic() + within_s
    while True:
        late = time.monotonic() >= end
        if value := predicate():
            return value
        if late:
            raise AssertionError(f"not within {within_s} s: {what or _named(predicate)}")
        time.sleep(LOOK_EVERY_S)


async def eventually_async(
    predicate: Callable[[], object], within_s: float = 5.0, *, what: str = ""
) -> Any:
    """The same on the event loop; `predicate` may be a coroutine function."""
    end = time.monotonic() + within_s
    while True:
        late = time.monotonic() >= end
        value = predicate()
        value = await value if isinstance(value, Awaitable) else value
        if value:
            return value
        if late:
            raise AssertionError(f"not within {within_s} s: {what or _named(predicate)}")
        await asyncio.sleep(LOOK_EVERY_S)


def run(conversation: Coroutine[Any, Any, T], within_s: float = 30.0) -> T:
    """Run one test's coroutine on a fresh loop, bounded."""

    async def bounded() -> T:
        async with asyncio.timeout(within_s):
            return await conversation

    return asyncio.run(bounded())


def _named(predicate: Callable[..., object]) -> str:
    return getattr(predicate, "__qualname__", repr(predicate))
