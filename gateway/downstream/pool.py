"""Connections to one server that not everybody shares.

A *session* seat serves one client's session (or one principal) from its first call on; a
*lease* is one modern client's for the length of one call, questions included, and then
goes to the next of the same principal. All are bounded in number and in idleness.
"""

import asyncio
from asyncio import Future, TaskGroup
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from gateway.downstream.connection import Connection
from gateway.downstream.environment import CannotStart
from gateway.downstream.seats import Key, Places, Seat, Whose
from gateway.downstream.spare import Spare
from gateway.downstream.supervise import contained
from gateway.downstream.transports.transport import Transport
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
    def connections(self) -> list[Connection]:
        return [seat.connection for seat in self._seats] + self.spare.connections

    def of(self, key: Key) -> list[Connection]:
        """The connections that serve only this one."""
        return [seat.connection for seat in self._seats if seat.of.key == key]

    def session_of(self, connection: Connection) -> str | None:
        """The session that this connection serves alone."""
        for seat in self._seats:
            if seat.connection is connection and seat.of.key[0] == "session":
                return seat.of.key[1]
        return None

    def seat_over(self, link: object) -> Seat | None:
        """The seat whose conversation this is."""
        return next((seat for seat in self._seats if seat.connection.link is link), None)

    async def take(self, wanted: Whose) -> Seat:
        """A seat for this key. Starts a process unless one is there; the caller bounds that.

        Raises `ServerUnavailable` at the bounds, or if none can be started.
        """
        while True:
            self._drop_dead()
            for seat in self._seats:
                if seat.serves(wanted):
                    seat.users += 1
                    return seat
            starting = None if wanted.is_lease else self._starting.get(wanted)
            if starting is None:
                return await self._new_seat(wanted)
            await asyncio.wait({starting})  # a session has one process, however it begins

    def give_back(self, seat: Seat, *, clean: bool = True) -> None:
        """The call is over. Not `clean`: the server may still be at it, and what it asks or
        says then must not reach whoever would get the seat next."""
        seat.users -= 1
        seat.idle_since = self.clock()
        if seat.of.is_lease and not clean and seat in self._seats:
            self._remove(seat)

    def close(self, key: Key) -> None:
        """Whoever it belonged to is gone."""
        for seat in [seat for seat in self._seats if seat.of.key == key]:
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
        if wanted.profile is not None and self._mine < self.most:
            self.spare.prepare(wanted)

    async def stop(self) -> None:
        """Give every process up; `retire` sees to their end."""
        if self._yield_one in self.places.yielding:
            self.places.yielding.remove(self._yield_one)
        await self.spare.stop()
        for seat in tuple(self._seats):
            self._remove(seat)

    # --- inside ---

    @property
    def _mine(self) -> int:
        return len(self._seats) + self._opening + len(self.spare)

    def _idle(self) -> list[Seat]:
        return [seat for seat in self._seats if seat.users == 0]

    async def _new_seat(self, wanted: Whose) -> Seat:
        started: Future[None] = asyncio.get_running_loop().create_future()
        if not wanted.is_lease:
            self._starting[wanted] = started
        try:
            connection = await self.spare.take(wanted) or await self._connect(wanted)
        finally:
            self._starting.pop(wanted, None)
            started.set_result(None)
        seat = Seat(wanted, connection, users=1)
        self._seats.append(seat)
        self.seated(connection)
        self.prepare(wanted)
        return seat

    async def _connect(self, wanted: Whose) -> Connection:
        self._claim_place()
        self._opening += 1
        try:
            connection = await self.open(wanted)
        except (CannotStart, GatewayError) as error:
            self.places.give()
            raise ServerUnavailable(
                f"The server {self.server} could not be started for this client: {error.message}",
                server=self.server,
                retryable=not (isinstance(error, CannotStart) and error.permanent),
            ) from None
        except BaseException:
            self.places.give()
            raise
        finally:
            self._opening -= 1
        self.tasks.create_task(contained(self.opened(connection), self.server))
        return connection

    def _claim_place(self) -> None:
        """Room for one more; at the bounds, in the place of what has been idle the longest."""
        if self._mine >= self.most and not (self._yield_one(False) or self._yield_one(True)):
            raise self._full(f"All {self.most} private processes of {self.server} are in use")
        if not self.places.take():
            raise self._full(f"All {self.places.most} private processes of servers are in use")

    def _full(self, what: str) -> ServerUnavailable:
        return ServerUnavailable(
            f"{what}: a client that can be asked something has one of its own. Try again "
            f"when another has finished (`isolation: shared` lets all share one, and asks nobody)",
            server=self.server,
            retryable=True,
            data={"limit": "private processes"},
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
