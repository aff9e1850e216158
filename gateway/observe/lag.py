"""Watch how late the event loop is: the first sign of work that does not belong on it."""

import asyncio
from collections.abc import Awaitable, Callable

EVERY_S = 0.25


async def watch_lag(
    tell: Callable[[float], None],
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Sleep, see how much longer it took, tell; until cancelled."""
    while True:
        due = clock() + EVERY_S
        await sleep(EVERY_S)
        tell(max(0.0, clock() - due))
