"""One server as the rest of the gateway sees it: what it lists, and where calls go.

Implements `calls.routing.Backend`. A server that serves both eras is met in the
client's own; the process for its second era starts with the first call that needs it.
"""

import asyncio
import dataclasses
from asyncio import TaskGroup
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog
from msgspec.structs import replace

from gateway.calls.call import Call, Caller, Outcome
from gateway.calls.notices import ListChanged, Notice, Owner
from gateway.catalog.entries import Kind, Listing
from gateway.config.model import AnyServer
from gateway.downstream.apart import Apart
from gateway.downstream.backoff import RestartPolicy
from gateway.downstream.connection import Connection, Opener
from gateway.downstream.environment import CannotStart
from gateway.downstream.lane import Lane, Phase
from gateway.downstream.listings import LISTED_TOGETHER, Listings
from gateway.downstream.memory import Memory, Remembered
from gateway.downstream.pace import QUIET_S, Pace
from gateway.downstream.predecessor import Predecessor
from gateway.downstream.supervise import contained, keep_running
from gateway.downstream.transports.failures import NotTaken
from gateway.eras.negotiate import CONFIGURED, needs_apart, try_both
from gateway.eras.questions import STATE
from gateway.protocol.errors import (
    BadAnswer,
    GatewayError,
    ServerFailure,
    ServerUnavailable,
    UnsupportedVersion,
)
from gateway.protocol.revisions import Era

log = structlog.get_logger()

ALONE = (Era.MODERN, Era.LEGACY)
"""Which era is tried first in an even round, and in an odd one."""


@dataclass(slots=True, eq=False)
class Downstream:
    """`published` is told whenever the listing is read anew, with the kinds the server
    itself said had changed; and whose process said so, if not everybody's."""

    name: str
    section: AnyServer
    opener: Opener
    key: str
    """Under which it is remembered on disk."""
    memory: Memory
    tasks: TaskGroup
    clock: Callable[[], float]
    published: Callable[["Downstream", frozenset[Kind], Owner | None], Awaitable[None]]
    connected: Callable[["Downstream", Connection], None]
    """A connection has just become ready: subscribe again, set levels again."""
    apart: Apart
    lists: Listings = field(init=False)
    eras: tuple[Era, ...] = field(init=False)
    policy: RestartPolicy = field(default_factory=RestartPolicy)
    pace: Pace = field(default_factory=Pace)
    in_flight: int = 0
    main: Lane = field(init=False)
    second: Lane | None = None
    predecessor: Predecessor | None = None
    """The one in whose place this comes, until it has gone and this one is started."""
    _stop_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _known: Remembered | None = None
    _supervisors: dict[Lane, "asyncio.Task[None]"] = field(default_factory=dict)
    _failures: dict[Era, Exception] = field(default_factory=dict)
    """Of the last round of finding out."""
    _in_vain: int = 0
    """Rounds of finding out that found nothing."""
    _changed: dict[Kind, bool] = field(default_factory=dict)
    """Lists to be read again, and whether the server itself said so."""
    _learning: dict[Connection, set[Kind]] = field(default_factory=dict)
    """Private ones about to be read again, and what they said had changed."""

    def __post_init__(self) -> None:
        self.eras = CONFIGURED[self.section.protocol]
        self._known = self.memory.recall(self.key)
        listing = self._known.listing(self.name) if self._known else Listing(self.name)
        beside = frozenset(self._known.beside if self._known else ())
        patience_s = self.section.start_timeout_s
        self.lists = Listings(listing, patience_s, self._beside, self._came, self._doubt, beside)
        if self._known:
            self.opener.dial.recall(self._known.transport)
        if not self.eras and self._known:
            self.eras = self._known.eras
        self.main = self._new_lane(self._open_main, self._read_lists)

    @property
    def listing(self) -> Listing:
        return self.lists.current

    @listing.setter
    def listing(self, listing: Listing) -> None:
        self.lists.current = listing

    @property
    def connections(self) -> list[Connection]:
        """Those that clients share."""
        lanes = (self.main, self.second) if self.second else (self.main,)
        return [lane.connection for lane in lanes if lane.connection is not None]

    @property
    def restarts(self) -> Counter[str]:
        """Of all its processes, by reason."""
        return self.main.restarts + (self.second.restarts if self.second else Counter())

    @property
    def is_ready(self) -> bool:
        return self.main.phase is Phase.READY

    def start(self) -> None:
        """Keep the server running until `stop`."""
        self._supervise(self.main)
        if self.predecessor is not None:
            self.predecessor.make_way(self)
            self.predecessor = None

    def _supervise(self, lane: Lane) -> None:
        self._supervisors[lane] = self.tasks.create_task(keep_running(lane, self.policy))

    async def call(self, call: Call) -> Outcome:
        self.in_flight += 1
        try:
            if self.predecessor is not None:
                server = await self.predecessor.server_for(call)
                if server is not self:
                    return await server.call(call)
            if self.apart.concerns(call) and (served := await self._call_apart(call)) is not None:
                return served
            lane = self._lane(call.caller.revision.era)
            connection = lane.connection
            if connection is None:
                connection = await self._wait_connection(call.caller.revision.era)
            try:
                return await connection.outbound.call(call)
            except NotTaken:  # the conversation was over; the next one begins without delay
                connection = await self._wait_connection(call.caller.revision.era)
                return await connection.outbound.call(call)
        finally:
            self.in_flight -= 1

    async def _call_apart(self, call: Call) -> Outcome | None:
        """Serve the call of a client that needs a connection of its own, or goes on with a
        call that waits; None if it is like everybody else's."""
        if not self.eras:
            await self.main.wait_ready()
        era = self._era(call.caller.revision.era)
        if STATE in call.params and needs_apart(era):
            return await self.apart.parked.resume(call)
        wanted = self.apart.whose(call.caller, era)
        return None if wanted is None else await self.apart.call(wanted, call)

    def _era(self, asked: Era) -> Era:
        """The era to speak for a client of this one: its own, if the server has it."""
        return asked if asked in self.eras else self.eras[0]

    def expect(self, caller: Caller) -> None:
        """A client has come; it may soon need a process of its own."""
        if self.eras and self.predecessor is None:
            self.apart.prepare(caller, self._era(caller.revision.era))

    async def stop(self) -> None:
        """End every process of it. Bounded by the ladder of `stopping`; may be called again."""
        async with self._stop_turn:
            if self.main.phase is Phase.STOPPED:
                return
            for supervisor in self._supervisors.values():
                supervisor.cancel()
            if self._supervisors:
                await asyncio.wait(self._supervisors.values())
            await self.apart.stop()
            async with TaskGroup() as stopping:
                for lane in filter(None, (self.main, self.second)):
                    connection = lane.connection
                    lane.become(Phase.STOPPED, reason="the gateway is stopping")
                    if connection is not None:
                        grace_s = self.section.stop_grace_s
                        stopping.create_task(connection.transport.stop(grace_s))

    @property
    def is_busy(self) -> bool:
        """Whether some call is with it, those that wait for their client included."""
        return self.in_flight > 0 or len(self.apart.parked) > 0

    def retry(self) -> None:
        """Somebody has looked after things: try again at once what was given up."""
        for lane in filter(None, (self.main, self.second)):
            if lane.phase is Phase.FAILED:
                lane.kicked.set()

    def go_by(self, section: AnyServer) -> None:
        """Another configuration that this process may run on with."""
        self.section = section
        self.apart.pool.go_by(section)

    def inherit(self, old: "Downstream") -> None:
        """Come in the place of another: its lists stay on offer until this one's are read."""
        self.listing = old.listing
        self.apart.parked.events = old.apart.parked.events  # the old one's may go on for a while
        self.main.restarts = old.restarts + Counter({"reload": 1})

    def runs_as(self, section: AnyServer) -> bool:
        """Whether this configuration would start the very same process."""
        kept: dict[str, Any] = dict.fromkeys(("prefix", "required", "concurrency", "queue"))
        kept |= dict.fromkeys(("processes", "process_idle_s", "owned_process_idle_s"))
        return dataclasses.replace(self.section, **kept) == dataclasses.replace(section, **kept)

    def heard(self, connection: Connection, notice: Notice) -> None:
        """The server says that a list has changed. Read soon, and once for a burst."""
        if not isinstance(notice, ListChanged):
            return
        if connection in self.apart.pool.connections:
            if connection not in self._learning:
                self._learning[connection] = set()
                self._beside(self._learn_again(connection))
            self._learning[connection] |= set() if notice.in_doubt else {notice.kind}
            return
        is_starting = self.main.phase is Phase.STARTING  # its lists are just being read
        if is_starting or self.main.connection is connection:
            if not (self._changed or is_starting):
                self._beside(self._read_changed(connection))
            self._changed[notice.kind] = self._changed.get(notice.kind) or not notice.in_doubt

    def _beside(self, work: Awaitable[None]) -> "asyncio.Task[None]":
        return self.tasks.create_task(contained(work, self.name))

    # --- eras ---

    def _lane(self, era: Era) -> Lane:
        if len(self.eras) < 2 or era is self.eras[0] or era not in self.eras:
            return self.main
        if self.second is None:
            self.second = self._new_lane(partial(self._open_second, era), self._compare)
            self._supervise(self.second)
        return self.second

    def _new_lane(
        self,
        open_: Callable[[], Awaitable[Connection]],
        ready: Callable[[Connection], Awaitable[None]],
    ) -> Lane:
        grace_s = self.section.stop_grace_s
        return Lane(self.name, open_, ready, self.opener.retire, self.clock, grace_s)

    async def _wait_connection(self, era: Era) -> Connection:
        if not self.eras:
            await self.main.wait_ready()  # only now is it known which eras there are
        lane = self._lane(era)
        try:
            return await lane.wait_ready()
        except ServerUnavailable:
            if lane is self.main:
                raise
            return await self.main.wait_ready()  # rather in the other era than not at all

    async def _open_main(self) -> Connection:
        if self.eras:
            try:
                return await self.opener.open(
                    self.eras[0], self._known.offer if self._known else None
                )
            except GatewayError:
                if self.section.protocol == "auto":
                    self.eras = ()  # what was remembered may no longer hold: find out again
                raise
        found = await self._find_out()
        if not found:
            raise self._failures.get(Era.LEGACY) or self._failures[Era.MODERN]
        self.eras = tuple(found)
        self._drop_second()  # if it is for an era that is gone; else it starts when needed again
        main, *others = found.values()
        with self.opener.keeping(main, others):  # the other is started again when it is needed
            await self.lists.compare(*others)
        return main

    async def _find_out(self) -> dict[Era, Connection]:
        """Which eras it serves. After a round in vain one comes first, by turns: perhaps two of
        it cannot live side by side, and nothing should crash twice as often for being asked."""
        self._failures.clear()
        found: dict[Era, Connection] = {}
        alone = ALONE[self._in_vain % 2] if self._in_vain else None
        first = await self._attempt(alone) if alone else None

        async def attempt(era: Era) -> Connection | None:
            return first if era is alone else await self._attempt(era)

        if alone is None or first is not None:
            found = await try_both(
                attempt, self.clock, lambda got: self.opener.retire(got.transport)
            )
        self._in_vain = 0 if found else self._in_vain + 1
        return found

    async def _attempt(self, era: Era) -> Connection | None:
        try:
            return await self.opener.open(era)
        except (CannotStart, GatewayError) as error:
            log.debug("era.refused", server=self.name, era=era.value, why=error.message)
            self._failures[era] = error
            return None

    async def _open_second(self, era: Era) -> Connection:
        try:
            return await self.opener.open(era)
        except (ServerFailure, BadAnswer, UnsupportedVersion):
            if self.section.protocol == "auto":  # it answers, and does not have this era any more
                self._beside(self._lose_second())
            raise

    async def _lose_second(self) -> None:
        self.eras = self.eras[:1]
        self._drop_second()
        await self._compare()
        if self.main.connection is not None:
            await self._remember(self.main.connection)

    def _drop_second(self) -> None:
        second, self.second = self.second, None
        if second is not None:
            self._supervisors.pop(second).cancel()
            connection = second.connection
            second.become(Phase.STOPPED, reason="it does not serve this era any more")
            if connection is not None:
                self.opener.retire(connection.transport)

    # --- lists ---

    async def learn(self, connection: Connection) -> None:
        """A private connection may list more than the shared one."""
        if await self.lists.learn(connection):
            await self.published(self, frozenset(), None)

    async def _learn_again(self, connection: Connection) -> None:
        await asyncio.sleep(QUIET_S)
        said = frozenset(self._learning.pop(connection))
        owner = self.apart.pool.owner_of(connection)
        await self.lists.learn(connection)
        await self.published(self, said if owner else frozenset(), owner)

    async def _read_lists(self, connection: Connection) -> None:
        greeting = connection.greeting
        self.listing = replace(self.listing, instructions=greeting.instructions)
        self._changed.clear()
        await self.lists.read(connection, Kind)
        await self.published(self, frozenset(), None)
        if self._known and self._known.version != greeting.version and len(self.eras) == 1:
            self.eras = () if self.section.protocol == "auto" else self.eras
        self.connected(self, connection)
        self._beside(self._remember(connection))
        if self._changed:  # servers say so at every start: clients hear of it if it is true
            self._beside(self._read_changed(connection, quietly=True))

    async def _compare(self, *second: Connection) -> None:
        if await self.lists.compare(*second):
            await self.published(self, frozenset(), None)
        for connection in second:
            self.connected(self, connection)

    async def _read_changed(self, connection: Connection, *, quietly: bool = False) -> None:
        await asyncio.sleep(self.pace.wait_s(self.clock()))
        changed, self._changed = self._changed, {}
        kinds = frozenset[Kind]().union(*(LISTED_TOGETHER[kind] for kind in changed))
        await self.lists.read(connection, kinds)
        said = frozenset(kind for kind, is_said in changed.items() if is_said and not quietly)
        await self._came(connection, said)

    async def _came(self, connection: Connection, said: frozenset[Kind] = frozenset()) -> None:
        await self.published(self, said, None)
        if connection is self.main.connection:
            await self._remember(connection)

    def _doubt(self, why: str) -> None:
        self.main.last_error = why

    async def _remember(self, connection: Connection) -> None:
        self._known = replace(
            Remembered.of(self.listing),
            eras=self.eras,
            offer=connection.offer.name,
            transport=connection.transport.way,
            version=connection.greeting.version,
            beside=tuple(sorted(self.lists.beside)),
        )
        await self.memory.remember(self.key, self._known)
