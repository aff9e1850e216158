"""One server in one era, kept running from its first use until it is told to stop.

`keep_running` (in `supervise`) drives it; whoever has a call for the server reads
`connection`, or waits for it.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.downstream.connection import Connection
from gateway.downstream.transports.transport import Transport
from gateway.protocol.errors import ServerUnavailable

WORTH_WAITING_S = 5.0
"""A call waits for a restart this near; for a later one it is told when to come again."""


class Phase(StrEnum):
    """What operators read as the state of a server."""

    STARTING = "starting"
    READY = "ready"
    WAITING = "waiting"
    """Between an exit and the next start."""
    FAILED = "failed"
    """Given up but for a slow retry: it crashes in a loop, or cannot be started at all."""
    STOPPED = "stopped"


@dataclass(slots=True, eq=False)
class Lane:
    """State that one supervisor writes and many calls read."""

    server: str
    open: Callable[[], Awaitable[Connection]]
    ready: Callable[[Connection], Awaitable[None]]
    """What has to be done before calls may come: read the lists."""
    retire: Callable[[Transport], None]
    """Stop a process that never became the lane's connection."""
    clock: Callable[[], float]
    stop_grace_s: float = 5.0
    phase: Phase = Phase.STARTING
    connection: Connection | None = None
    """There if and only if the phase is READY."""
    reason: str = ""
    """Why it is not ready, in words."""
    last_error: str = ""
    """The last reason there was, kept while the server is well again."""
    restarts: Counter[str] = field(default_factory=Counter)
    """By reason: `exit`, `signal`, `start`, `session`."""
    next_start: float = 0.0
    since: float = field(init=False)
    """When it came into this phase, by `clock`; at first, when it came to be."""
    kicked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to cut a wait short."""
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.since = self.clock()

    def become(self, phase: Phase, connection: Connection | None = None, reason: str = "") -> None:
        """Change phase; whoever waits looks again."""
        self.phase, self.connection, self.reason = phase, connection, reason
        self.last_error = reason or self.last_error
        self.since = self.clock()
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def wait_ready(self) -> Connection:
        """A ready connection. Waits only while one can be expected; the caller bounds it.

        Raises `ServerUnavailable`, saying why and when to come again.
        """
        while self.connection is None or not self.connection.is_alive:
            if not self._is_expected():
                raise self.unavailable()
            await self._moved.wait()
        return self.connection

    async def wait_settled(self) -> None:
        """Return once the first start has come to something, good or bad."""
        while self.phase is Phase.STARTING:
            await self._moved.wait()

    def unavailable(self) -> ServerUnavailable:
        later = max(0.0, self.next_start - self.clock())
        again = f" It is started again in {later:.0f} s." if later else ""
        return ServerUnavailable(
            f"The server {self.server} is {self.phase}: {self.reason}.{again}",
            server=self.server,
            retryable=True,
            data={"state": str(self.phase), "retry_after_s": round(later, 1)},
        )

    def _is_expected(self) -> bool:
        if self.phase is Phase.WAITING:
            return self.next_start - self.clock() <= WORTH_WAITING_S
        return self.phase is not Phase.FAILED and self.phase is not Phase.STOPPED
