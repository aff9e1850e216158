"""One process of a server kept ready, so that the next client that needs its own need not
wait for a start."""

import asyncio
from asyncio import TaskGroup
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from gateway.downstream.connection import Connection
from gateway.downstream.environment import CannotStart
from gateway.downstream.seats import Places, Whose
from gateway.downstream.supervise import contained
from gateway.downstream.transports.transport import Transport
from gateway.protocol.errors import GatewayError

log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class Spare:
    """`len` is how many processes it holds: one, or none. Whoever takes it takes its place
    among `places` along."""

    server: str
    open: Callable[[Whose], Awaitable[Connection]]
    opened: Callable[[Connection], Awaitable[None]]
    retire: Callable[[Transport], None]
    tasks: TaskGroup
    clock: Callable[[], float]
    places: Places
    idle_s: float
    _ready: tuple[Whose, Connection, float] | None = None
    """For whom, and since when."""
    _opening: tuple[Whose, "asyncio.Task[None]"] | None = None
    _is_promised: bool = False

    def __len__(self) -> int:
        return int(self._ready is not None or self._opening is not None)

    @property
    def connections(self) -> list[Connection]:
        return [self._ready[1]] if self._ready else []

    def prepare(self, wanted: Whose) -> None:
        """Have one for clients like this. Does nothing if there is one, or none may be."""
        self.drop_dead()
        if self._opening is not None or (self._ready and self._ready[0].is_like(wanted)):
            return
        if self.places.take_spare():
            work = contained(self._open(wanted), self.server)
            self._opening = wanted, self.tasks.create_task(work)
            self._is_promised = False

    async def take(self, wanted: Whose) -> Connection | None:
        """The process, if there is one that will do, or is about to be; None otherwise."""
        opening = self._opening
        if self._ready is None and opening and opening[0].is_like(wanted):
            if self._is_promised:
                return None
            self._is_promised = True
            try:
                await asyncio.wait({opening[1]})
            except asyncio.CancelledError:
                self._is_promised = False
                self.places.line.stir()
                raise
        return self.take_ready(wanted)

    def take_ready(self, wanted: Whose) -> Connection | None:
        """The process, if there is one that will do already."""
        self.drop_dead()
        if self._ready is None or not self._ready[0].is_like(wanted):
            return None
        connection, self._ready = self._ready[1], None
        return connection

    def expire(self) -> None:
        if self._ready is not None and self._ready[2] < self.clock() - self.idle_s:
            self.drop()

    def drop_dead(self) -> None:
        if self._ready is not None and not self._ready[1].is_alive:
            self.drop()

    def drop(self) -> bool:
        """Give it up. False if there is none."""
        if self._ready is None:
            return False
        connection, self._ready = self._ready[1], None
        self.places.give()
        self.retire(connection.transport)
        return True

    async def stop(self) -> None:
        if self._opening is not None:
            task = self._opening[1]
            task.cancel()
            await asyncio.wait({task})
        self.drop()

    async def _open(self, wanted: Whose) -> None:
        try:
            connection = await self.open(wanted)
        except (CannotStart, GatewayError) as error:
            self.places.give()
            log.info("spare.failed", server=self.server, why=error.message)
            return
        except BaseException:
            self.places.give()
            raise
        finally:
            self._opening = None
        self.drop()
        self._ready = wanted, connection, self.clock()
        self.tasks.create_task(contained(self.opened(connection), self.server))
        if not self._is_promised:
            self.places.line.stir()
