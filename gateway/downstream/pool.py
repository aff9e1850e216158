"""Connections to one server that not everybody shares.

A *session* seat serves one client's session (or one principal) from its first call on; a
*lease* is one modern client's for the length of one call, questions included, and then
goes to the next of the same principal. All are bounded in number and in idleness; who
comes when all are at work waits for one, first come first served.
"""

import asyncio
from asyncio import Future, TaskGroup
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import structlog

from gateway.calls.call import Spent
from gateway.calls.notices import Owner
from gateway.config.model import AnyServer
from gateway.downstream.connection import Connection
from gateway.downstream.environment import CannotStart
from gateway.downstream.seats import Key, Place, Places, Seat, Whose
from gateway.downstream.spare import Spare
from gateway.downstream.supervise import contained
from gateway.downstream.transports.transport import Transport
from gateway.policy.phrases import duration
from gateway.protocol.errors import GatewayError, ServerUnavailable

log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class Pool:
    server: str
    open: Callable[[Whose], Awaitable[Connection]]
    opened: Callable[[Connection], Awaitable[None]]
    """Told of each new connection: it may list more than the shared one does."""
    retire: Callable[[Transport], None]
    tasks: TaskGroup
    clock: Callable[[], float]
    places: Places
    most: int = 32
    """Private processes of this server."""
    queue: int = 64
    """Calls that may wait for one of them."""
    idle_s: float = 300.0
    """How long a process nobody has a claim to is kept: a lease between calls, a spare."""
    claimed_idle_s: float = 1800.0
    """The same for one that belongs to a session or a principal: it may hold state of theirs."""
    seated: Callable[[Connection], None] = lambda connection: None
    """Told of each connection that has just been given to a client."""
    spare: Spare = field(init=False)
    _seats: list[Seat] = field(default_factory=list)
    _starting: dict[Whose, "Future[None]"] = field(default_factory=dict)
    """Sessions whose process is on its way."""
    _opening: int = 0

    def __post_init__(self) -> None:
        self.spare = Spare(
            self.server,
            self.open,
            self.opened,
            self.retire,
            self.tasks,
            self.clock,
            self.places,
            self.idle_s,
        )
        self.places.yielding.append(self._yield_one)

    def __len__(self) -> int:
        return len(self._seats)

    @property
    def waiting(self) -> int:
        """Calls that wait for a process to come free."""
        return self.places.line.of(self)

    @property
    def uses(self) -> dict[str, int]:
        """How many processes there are, by what they are there for now."""
        busy = len(self._seats) - len(self._idle())
        return {
            "busy": busy,
            "idle": len(self._seats) - busy,
            "starting": self._opening,
            "spare": len(self.spare),
        }

    def go_by(self, section: AnyServer) -> None:
        """From now on these bounds hold. Nobody loses what they have."""
        self.most, self.queue = section.processes, section.queue
        self.idle_s = self.spare.idle_s = section.process_idle_s
        self.claimed_idle_s = section.owned_process_idle_s
        self.places.line.stir()

    @property
    def connections(self) -> list[Connection]:
        return [seat.connection for seat in self._seats] + self.spare.connections

    def of(self, key: Key) -> list[Connection]:
        """The connections that serve only this one."""
        return [seat.connection for seat in self._seats if seat.of.key == key]

    def owner_of(self, connection: Connection) -> Owner | None:
        """Whom this connection serves alone."""
        found = (seat.of.owner for seat in self._seats if seat.connection is connection)
        return next(found, None)

    def seat_over(self, link: object) -> Seat | None:
        """The seat whose conversation this is."""
        return next((seat for seat in self._seats if seat.connection.link is link), None)

    async def take(self, wanted: Whose, within_s: float = 0.0, spent: Spent | None = None) -> Seat:
        """A seat for this key. Starts a process unless one is there; the caller bounds that.

        At the bounds it waits for one to come free, so long, and adds the time to `spent`.
        Raises `ServerUnavailable` if none does, or none can be started.
        """
        until = asyncio.get_running_loop().time() + within_s
        while True:
            seat = self._seat_for(wanted)
            if seat is not None:
                return seat
            starting = None if wanted.is_lease else self._starting.get(wanted)
            if starting is None:
                return await self._new_seat(wanted, until, spent or Spent())
            await asyncio.wait({starting})  # a session has one process, however it begins

    def give_back(self, seat: Seat, *, clean: bool = True) -> None:
        """The call is over. Not `clean`: the server may still be at it, and what it asks or
        says then must not reach whoever would get the seat next."""
        seat.users -= 1
        seat.idle_since = self.clock()
        if seat.of.is_lease and not clean and seat in self._seats:
            self._remove(seat)
        elif not seat.users:
            if seat.is_forsaken and seat in self._seats:
                self._remove(seat)
            else:
                self.places.line.stir()

    def close(self, key: Key) -> None:
        """Whoever it belonged to is gone. Calls that go on all the same have it to their end."""
        for seat in [seat for seat in self._seats if seat.of.key == key]:
            if seat.users:
                seat.is_forsaken = True
            else:
                self._remove(seat)

    def expire(self) -> None:
        """Stop what has been idle for long. Called now and then."""
        now = self.clock()
        self._drop_dead()
        self.spare.expire()
        for seat in self._idle():
            kept_s = self.idle_s if seat.of.is_lease else self.claimed_idle_s
            if seat.idle_since < now - kept_s:
                self._remove(seat)

    def prepare(self, wanted: Whose) -> None:
        """Keep a process ready for the next client like this: nobody waits for a start."""
        if wanted.profile is not None and self._mine < self.most and not self.waiting:
            self.spare.prepare(wanted)

    async def stop(self) -> None:
        """Give every process up; `retire` sees to their end."""
        if self._yield_one in self.places.yielding:
            self.places.yielding.remove(self._yield_one)
        said = f"The server {self.server} is being stopped: no process of it came free before"
        self.places.line.dismiss(self, ServerUnavailable(said, server=self.server, retryable=True))
        await self.spare.stop()
        for seat in tuple(self._seats):
            self._remove(seat)

    # --- inside ---

    @property
    def _mine(self) -> int:
        return len(self._seats) + self._opening + len(self.spare)

    def _idle(self) -> list[Seat]:
        return [seat for seat in self._seats if seat.users == 0]

    def _seat_for(self, wanted: Whose) -> Seat | None:
        """One that is there. While calls wait none is idle: nobody is overtaken."""
        self._drop_dead()
        for seat in self._seats:
            if seat.serves(wanted):
                seat.users += 1
                return seat
        return None

    async def _new_seat(self, wanted: Whose, until: float, spent: Spent) -> Seat:
        started: Future[None] = asyncio.get_running_loop().create_future()
        if not wanted.is_lease:
            self._starting[wanted] = started
        try:
            if not self.waiting and (connection := await self.spare.take(wanted)) is not None:
                return self._seated(wanted, connection)
            granted = None if self.waiting else self._attempt(wanted)
            if granted is None:
                granted = await self._wait(wanted, until, spent)
            if isinstance(granted, Seat):
                return granted
            return self._seated(wanted, await self._connect(wanted))
        finally:
            self._starting.pop(wanted, None)
            started.set_result(None)

    def _seated(self, wanted: Whose, connection: Connection) -> Seat:
        seat = Seat(wanted, connection, users=1)
        self._seats.append(seat)
        self.seated(connection)
        self.prepare(wanted)
        return seat

    async def _wait(self, wanted: Whose, until: float, spent: Spent) -> Seat | Place:
        within_s = until - asyncio.get_running_loop().time()
        if self.waiting >= self.queue:
            raise self._full(f"as many calls wait for one as may (`queue`: {self.queue})")
        if within_s <= 0:  # or has been waited already
            raise self._full("none is free now")
        began = self.clock()
        try:
            return await self.places.line.wait(
                self, partial(self._attempt, wanted), self._returned, within_s
            )
        except TimeoutError:
            raise self._full(f"none came free in {duration(round(within_s, 1))}") from None
        finally:
            waited_s = self.clock() - began
            spent.waited_s += waited_s
            spent.server_s -= waited_s  # it is on that account otherwise

    def _attempt(self, wanted: Whose) -> Seat | Place | None:
        """What this call can have at once: a seat, or a place for one; at the bounds that of
        what has been idle the longest."""
        seat = self._seat_for(wanted)
        if seat is not None:
            return seat
        if (connection := self.spare.take_ready(wanted)) is not None:
            return self._seated(wanted, connection)
        while self._mine >= self.most:
            if not (self._yield_one(False) or self._yield_one(True)):
                return None
        if not self.places.take():
            return None
        self._opening += 1
        return Place()

    def _returned(self, granted: Seat | Place) -> None:
        if isinstance(granted, Seat):
            self.give_back(granted)
        else:
            self._opening -= 1
            self.places.give()

    async def _connect(self, wanted: Whose) -> Connection:
        """Start a process in a place that has been claimed."""
        try:
            connection = await self.open(wanted)
        except (CannotStart, GatewayError) as error:
            self._returned(Place())
            raise ServerUnavailable(
                f"The server {self.server} could not be started for this client: {error.message}",
                server=self.server,
                retryable=not (isinstance(error, CannotStart) and error.permanent),
            ) from None
        except BaseException:
            self._returned(Place())
            raise
        self._opening -= 1
        self.tasks.create_task(contained(self.opened(connection), self.server))
        return connection

    def _full(self, and_: str) -> ServerUnavailable:
        key = f"servers.{self.server}.processes"
        what = f"All {self.most} private processes of {self.server}"
        if self._mine < self.most:
            key, what = "limits.processes", f"All {self.places.most} private processes of servers"
        return ServerUnavailable(
            f"{what} are in use (`{key}`), and {and_}. A client that can be asked something has "
            "one of its own as long as its call lasts, the time for its answers included. Try "
            "again when another has finished (`isolation: shared` lets all share one, and asks "
            "nobody)",
            server=self.server,
            retryable=True,
            data={"limit": key},
        )

    def _yield_one(self, sessions_too: bool) -> bool:
        """Make room. A spare goes first, then leases, then what sessions hold but do not use."""
        if self.spare.drop():
            return True
        idle = [seat for seat in self._idle() if sessions_too or seat.of.is_lease]
        if not idle:
            return False
        seat = min(idle, key=lambda seat: seat.idle_since)
        log.info("seat.yielded", server=self.server, pid=seat.connection.transport.pid)
        self._remove(seat)
        return True

    def _drop_dead(self) -> None:
        for seat in [seat for seat in self._seats if not seat.connection.is_alive]:
            self._remove(seat)

    def _remove(self, seat: Seat) -> None:
        self._seats.remove(seat)
        self.places.give()
        self.retire(seat.connection.transport)
