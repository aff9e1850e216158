"""The one ticker of a listener: keep-alives, stalled readers, requests that never come.

One coarse task looks at everything now and then, so that no request needs a timer. Times
are as exact as a tick.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from typing import Protocol


class Open(Protocol):
    """An answer that is not out yet, or a stream held open."""

    def beat(self, now_s: float) -> None:
        """Say something if nothing has been said for long."""

    def wind_up(self) -> None:
        """The gateway stops: end what would not end by itself."""

    def cut(self) -> None:
        """The time to finish is over."""


class Watched(Protocol):
    """A connection to a client."""

    def check(self, pulse: "Pulse") -> None:
        """Close it if it has been stuck for too long."""


class Pulse:
    """`open` holds whatever is being answered; `watch` adds the connections to look at."""

    def __init__(
        self,
        *,
        keep_alive_s: float = 15.0,
        stall_s: float = 60.0,
        head_s: float = 30.0,
        stream_age_s: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`keep_alive_s`: silence on a stream before a comment. `stall_s`: how long a client
        may take nothing of what waits for it. `head_s`: how long until its first request.
        `stream_age_s`: how long a stream may go on over one connection, if its client can go
        on with it over another."""
        self.keep_alive_s = keep_alive_s
        self.stall_s = stall_s
        self.head_s = head_s
        self.stream_age_s = stream_age_s
        self.now_s = clock()
        self.open: set[Open] = set()
        self._quiet: asyncio.Event | None = None
        self._clock = clock
        self._watched: list[Callable[[], Iterable[Watched]]] = []

    @property
    def tick_s(self) -> float:
        soonest = min(self.keep_alive_s, self.stall_s, self.head_s, self.stream_age_s)
        return min(1.0, soonest / 4)

    def watch(self, connections: Callable[[], Iterable[Watched]]) -> None:
        self._watched.append(connections)

    def close(self, one: Open) -> None:
        """It is out, or over."""
        self.open.discard(one)
        if self._quiet is not None and not self.open:
            self._quiet.set()

    async def wait_quiet(self) -> None:
        """Return when nothing is open."""
        if self.open:
            self._quiet = asyncio.Event()
            await self._quiet.wait()

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            await asyncio.sleep(self.tick_s)
            self.beat()

    def beat(self) -> None:
        self.now_s = self._clock()
        for one in tuple(self.open):
            one.beat(self.now_s)
        for connections in self._watched:
            for connection in connections():
                connection.check(self)
