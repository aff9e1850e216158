"""Connections to one legacy server that not everybody shares.

A *session* seat serves one client's session (or one principal) from its first call on; a
*lease* is one modern client's for the length of one call, questions included, and then
goes to the next of the same principal. All are bounded in number and in idleness.
"""

from asyncio import TaskGroup
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from gateway.calls.call import Caller
from gateway.downstream.connection import Connection
from gateway.downstream.environment import CannotStart
from gateway.downstream.supervise import contained
from gateway.downstream.transports.transport import Transport
from gateway.eras.profile import Profile
from gateway.protocol.errors import GatewayError, ServerUnavailable
from gateway.protocol.revisions import Era

log = structlog.get_logger()

Key = tuple[str | None, ...]
"""Whose: the kind of seat, and the session or principal it belongs to."""


@dataclass(frozen=True, slots=True)
class Whose:
    """The seat a call needs, where the shared connection will not do."""

    key: Key
    profile: Profile | None
    era: Era
    is_lease: bool = False


@dataclass(slots=True)
class Places:
    """How many private processes there may be, over all servers."""

    most: int = 256
    taken: int = 0


@dataclass(slots=True, eq=False)
class Seat:
    of: Whose
    connection: Connection
    users: int = 0
    idle_since: float = 0.0

    @property
    def is_free(self) -> bool:
        return self.users == 0 and self.connection.is_alive


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
    _seats: list[Seat] = field(default_factory=list)
    _spare: tuple[Whose, Connection] | None = None
    _spare_opening: bool = False
    _opening: int = 0

    def __len__(self) -> int:
        return len(self._seats)

    @property
    def connections(self) -> list[Connection]:
        spare = [self._spare[1]] if self._spare else []
        return [seat.connection for seat in self._seats] + spare

    def of(self, key: Key) -> list[Connection]:
        """The connections that serve only this one."""
        return [seat.connection for seat in self._seats if seat.of.key == key]

    async def take(self, wanted: Whose) -> Seat:
        """A seat for this key. Starts a process unless one is there; the caller bounds that.

        Raises `ServerUnavailable` at the bounds or if none can be started, `GatewayError`.
        """
        self._drop_dead()
        for seat in self._seats:
            if seat.of == wanted and not (wanted.is_lease and seat.users):
                seat.users += 1
                return seat
        seat = Seat(wanted, await self._connect(wanted), users=1)
        self._seats.append(seat)
        self.prepare(wanted)
        return seat

    def give_back(self, seat: Seat) -> None:
        seat.users -= 1
        seat.idle_since = self.clock()

    def close(self, key: Key) -> None:
        """Whoever it belonged to is gone."""
        for seat in [seat for seat in self._seats if seat.of.key == key]:
            self._remove(seat)

    def expire(self) -> None:
        """Stop what has been idle for long. Called now and then."""
        oldest = self.clock() - self.idle_s
        self._drop_dead()
        for seat in tuple(self._seats):
            if seat.of.is_lease and seat.users == 0 and seat.idle_since < oldest:
                self._remove(seat)

    def prepare(self, wanted: Whose) -> None:
        """Keep a process ready for the next client like this: nobody waits for a start."""
        if wanted.profile is None or self._spare_opening or not self._has_room():
            return
        if self._spare is None or not _alike(self._spare[0], wanted):
            self._spare_opening = True
            self.tasks.create_task(contained(self._open_spare(wanted), self.server))

    async def stop(self) -> None:
        """Give every process up; `retire` sees to their end."""
        for seat in tuple(self._seats):
            self._remove(seat)
        if self._spare is not None:
            self._retire(self._spare[1])
            self._spare = None

    # --- inside ---

    async def _connect(self, wanted: Whose) -> Connection:
        spare = self._spare
        if spare is not None and _alike(spare[0], wanted) and spare[1].is_alive:
            self._spare = None
            return spare[1]
        if not self._has_room():
            self._make_room()
        self._opening += 1
        self.places.taken += 1
        try:
            connection = await self.open(wanted)
        except CannotStart as error:
            self.places.taken -= 1
            raise ServerUnavailable(
                f"The server {self.server} could not be started for this client: {error.message}",
                server=self.server,
            ) from None
        except BaseException:
            self.places.taken -= 1
            raise
        finally:
            self._opening -= 1
        self.tasks.create_task(contained(self.opened(connection), self.server))
        return connection

    async def _open_spare(self, wanted: Whose) -> None:
        self.places.taken += 1
        try:
            connection = await self.open(wanted)
        except (CannotStart, GatewayError) as error:
            self.places.taken -= 1
            log.info("spare.failed", server=self.server, why=error.message)
            return
        except BaseException:
            self.places.taken -= 1
            raise
        finally:
            self._spare_opening = False
        before, self._spare = self._spare, (wanted, connection)
        if before is not None:
            self._retire(before[1])
        await self.opened(connection)

    def _has_room(self) -> bool:
        mine = len(self._seats) + self._opening + (self._spare is not None)
        return mine < self.most and self.places.taken < self.places.most

    def _make_room(self) -> None:
        """At the bound the longest idle one makes room; if all are at work, there is none."""
        if self._spare is not None:
            self._retire(self._spare[1])
            self._spare = None
            return
        idle = [seat for seat in self._seats if seat.users == 0]
        if not idle:
            raise ServerUnavailable(
                f"All {len(self._seats)} private processes of {self.server} are in use. "
                "Try again when another client has finished, or set `isolation: shared`",
                server=self.server,
                retryable=True,
            )
        self._remove(min(idle, key=lambda seat: seat.idle_since))

    def _drop_dead(self) -> None:
        for seat in [seat for seat in self._seats if not seat.connection.is_alive]:
            self._remove(seat)
        if self._spare is not None and not self._spare[1].is_alive:
            self._retire(self._spare[1])
            self._spare = None

    def _remove(self, seat: Seat) -> None:
        self._seats.remove(seat)
        self._retire(seat.connection)

    def _retire(self, connection: Connection) -> None:
        self.places.taken -= 1
        self.retire(connection.transport)


def _alike(one: Whose, other: Whose) -> bool:
    """Whether a process started for one would do for the other."""
    return (one.profile, one.era) == (other.profile, other.era)


def whose(isolation: str, caller: Caller, era: Era, profile: Profile | None) -> Whose | None:
    """Who may share a process with whom (`isolation` of the server); None: everybody.

    `auto`: a client that cannot be asked anything shares with all such; one that can is
    kept apart, so that no question can reach the wrong person.
    """
    mine = ("principal", caller.principal)
    theirs = mine if caller.session is None else ("session", caller.session)
    match isolation:
        case "shared":
            return None
        case "principal":
            return Whose(mine, profile, era)
        case "session":  # a modern client has none: the next best is who it is
            return Whose(theirs, profile, era)
    if profile is None:
        return None
    if caller.session is None:
        return Whose(("lease", caller.principal), profile, era, is_lease=True)
    return Whose(theirs, profile, era)
