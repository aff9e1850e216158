"""All the servers: started together, merged into one catalog, stopped together."""

import asyncio
import math
from asyncio import TaskGroup
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from gateway.calls.call import Caller
from gateway.calls.notices import (
    LEVELS,
    Board,
    Elicited,
    HostReplaced,
    ListChanged,
    Notice,
    Owner,
    ResourceUpdated,
)
from gateway.catalog.entries import Kind
from gateway.catalog.notes import fresh
from gateway.catalog.shelf import Shelf
from gateway.config.model import AnyServer
from gateway.downstream.connection import Connection
from gateway.downstream.noting import Noting
from gateway.downstream.server import Downstream
from gateway.downstream.succession import Succeeded, Succession
from gateway.downstream.supervise import contained
from gateway.downstream.transports.transport import Transport
from gateway.eras.sides import Outbound
from gateway.protocol.errors import GatewayError
from gateway.protocol.jsonrpc import Json
from gateway.protocol.revisions import Era

if TYPE_CHECKING:
    from gateway.downstream.transports.remote import Web

log = structlog.get_logger()

MERGE_SHARE, MERGE_WITHIN_S = 0.2, 0.05
"""Of the time that merging the catalog may take while servers have news, and how long news wait
for it at most: small catalogs are merged at once, large ones for many servers together."""

WATCHED_WITHIN_S, WATCHED_AT_LAST_S = 5.0, 60.0
"""How long a client's subscription waits for its server to confirm it, and how long that may
take all the same."""

QUIETEST = "info"
"""The least talkative a server is ever set to: clients that set no level hear what it says."""


@dataclass(slots=True, eq=False)
class Fleet:
    """Knows every server, and what clients want of all of them."""

    shelf: Shelf
    board: Board
    tasks: TaskGroup
    clock: Callable[[], float]
    servers: dict[str, Downstream] = field(default_factory=dict)
    web: "Web | None" = None
    """Which servers elsewhere are reached with; there if there are any."""
    succession: Succession = field(init=False)
    _noting: Noting = field(init=False)
    _announced: frozenset[tuple[Kind, Owner | None]] = frozenset()
    """What servers said had changed, and to whom."""
    _restocked: asyncio.Event | None = None
    _merge_at: float = -math.inf
    """The soonest that the catalog is merged again."""
    _watched: frozenset[str] = frozenset()
    _routes: set[tuple[str, str, str]] = field(default_factory=set)
    """Server, URI and the server's own URI, of what is watched."""
    _level: str | None = None
    _hosts: dict[tuple[Downstream, Era], Outbound] = field(default_factory=dict)
    """Who speaks with servers elsewhere for everybody, by era."""
    _retiring: dict[Transport, tuple[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.succession = Succession(self.servers, self._beside, self._wait_retired)
        self._noting = Noting(self.clock)

    def add(self, server: Downstream) -> None:
        self.servers[server.name] = server

    def start(self) -> None:
        """Start them all at once; what is remembered of them is on offer from now on."""
        self._restock()
        for server in self.servers.values():
            server.start()

    async def stop(self) -> None:
        """Stop them all at once. Bounded by the longest ladder among them."""
        await self.succession.stop()
        async with asyncio.TaskGroup() as stopping:  # among them what was just starting
            for transport, (_, grace_s) in tuple(self._retiring.items()):
                stopping.create_task(transport.stop(grace_s))
        if self.web is not None:
            await self.web.close()

    def retire(self, transport: Transport, *, server: str, grace_s: float) -> None:
        """Stop a conversation nobody needs, beside everything else."""
        self._retiring[transport] = server, grace_s
        self._beside(self._retired(transport, grace_s), server)

    async def _retired(self, transport: Transport, grace_s: float) -> None:
        await transport.stop(grace_s)
        self._retiring.pop(transport, None)

    async def _wait_retired(self, server: str) -> None:
        for transport, (whose, grace_s) in tuple(self._retiring.items()):
            if whose == server:
                await transport.stop(grace_s)

    def _beside(self, work: Awaitable[None], server: str) -> "asyncio.Task[None]":
        return self.tasks.create_task(contained(work, server))

    # --- another configuration ---

    def apply(
        self,
        wanted: Mapping[str, AnyServer],
        make: Callable[[str, AnyServer], Downstream],
        touched: Collection[str] = (),
    ) -> Succeeded:
        """Run these servers from now on, in this order.

        What did not change keeps its process and its calls. What did, or is `touched`, is
        replaced: calls that came before end with the old process, those that come after
        wait for the new.
        """
        done = self.succession.apply(wanted, make, touched)
        self._restock()
        return done

    def of(self, name: str) -> Sequence[Downstream]:
        """What runs under this name: the server, and the one it is just replacing."""
        return [server for server in self.succession.all if server.name == name]

    def in_flight(self, name: str) -> int:
        """Calls that a server of this name is working on, or that wait for it to start."""
        return sum(server.in_flight for server in self.of(name))

    # --- what servers say ---

    async def published(
        self, server: Downstream, announced: frozenset[Kind], owner: Owner | None = None
    ) -> None:
        """A server's lists were read, or those of `owner`'s own process of it. Returns once
        they are on offer. Clients are told what changed; and what was said to have, in a
        process of theirs."""
        self._announced |= {(kind, owner) for kind in announced}
        if self._restocked is None:
            self._restocked = asyncio.Event()
            self._beside(self._restock_soon(self._restocked), server.name)
        await self._restocked.wait()
        log.debug("lists.read", server=server.name)

    async def _restock_soon(self, done: asyncio.Event) -> None:
        """Servers that come up together are merged together: a merge costs the more the
        more there is, and nobody reads a catalog that is replaced in the same moment."""
        await asyncio.sleep(max(0.0, self._merge_at - self.clock()))
        self._restocked = None
        announced, self._announced = self._announced, frozenset()
        began = self.clock()
        changed = self._restock() | {kind for kind, owner in announced if owner is None}
        merged = self.clock()
        self._merge_at = merged + min((merged - began) / MERGE_SHARE, MERGE_WITHIN_S)
        told = {_told_as(kind) for kind in changed}
        for kind in sorted(told):
            self.board.post(ListChanged(kind))
        for kind, owner in {(_told_as(kind), owner) for kind, owner in announced}:
            if kind not in told:
                self.board.post(ListChanged(kind, owner))
        done.set()

    def heard(self, name: str, connection: Connection, notice: Notice) -> None:
        """Something for everyone, under the server's own names."""
        match notice:
            case ListChanged(kind, _, in_doubt):
                if name in self.servers:  # else it is leaving, and its lists are nobody's
                    self.servers[name].heard(connection, notice)
                if in_doubt and kind is Kind.RESOURCE:
                    self._doubt_watched(name, connection)
            case ResourceUpdated(uri, params):
                owner = self._owner_of(connection)
                if owner is not None or self._is_shared(connection):
                    shown = self.shelf.current.offered_uri(name, uri)
                    self.board.post(ResourceUpdated(shown, {**params, "uri": shown}, owner))
            case Elicited(params):
                owner = self._owner_of(connection)
                if owner is not None and owner.session is not None:
                    self.board.post(Elicited(params, owner.session))
            case _:
                self.board.post(notice)

    def _restock(self) -> frozenset[Kind]:
        before = self.shelf.current.notes
        changed = self.shelf.restock([server.listing for server in self.servers.values()])
        self._tell_watched()
        self._noting.tell(fresh(before, self.shelf.current.notes))
        return changed

    # --- clients that need a process of their own ---

    def expect(self, caller: Caller) -> None:
        """A client has come: have a process ready where it may need one."""
        if caller.capabilities is not None:
            for server in self.servers.values():
                server.expect(caller)

    def _owner_of(self, connection: Connection) -> Owner | None:
        """Whom this conversation serves alone; None: everybody, or nobody (any more)."""
        found = (server.apart.pool.owner_of(connection) for server in self.succession.all)
        return next(filter(None, found), None)

    def _is_shared(self, connection: Connection) -> bool:
        return any(connection in server.connections for server in self.succession.all)

    def ended(self, session: str) -> None:
        """A session is over: so are the processes that served it alone."""
        for server in self.succession.all:
            server.apart.pool.close(("session", session))

    def roots_changed(self, session: str) -> None:
        """A client's roots are others now: only its own processes care."""
        for server in self.succession.all:
            for connection in server.apart.pool.of(("session", session)):
                connection.outbound.roots_changed()

    def abandon(self, name: str, token: Json) -> None:
        """The client of a parked call will not come back."""
        for server in self.succession.all:
            if server.name == name:
                server.apart.parked.abandon(token)

    def expire(self) -> None:
        """Give up what has waited or idled too long. Called now and then."""
        for server in self.succession.all:
            server.apart.expire()

    # --- what clients want ---

    async def watch(self, uris: frozenset[str]) -> None:
        """All the URIs any client watches now. Returns when the servers know, or soon after."""
        self._watched = uris
        if telling := self._tell_watched():
            await asyncio.wait(telling, timeout=WATCHED_WITHIN_S)

    def _tell_watched(self) -> list["asyncio.Task[None]"]:
        """Tell each server whose share of what is watched is another now: for what clients want,
        or for what servers list."""
        found = ((uri, self.shelf.current.resolve(Kind.RESOURCE, uri)) for uri in self._watched)
        routes = {(entry.route.server, uri, entry.route.name) for uri, entry in found if entry}
        before, self._routes = self._routes, routes
        return [
            self._beside(self._watch(server, connection), name)
            for name, server in self.servers.items()
            if name in {route[0] for route in before ^ routes}
            for connection in (*server.connections, *server.apart.pool.connections)
        ]

    def wish_level(self, level: str) -> None:
        """A client wants log lines from this level on. The most verbose wish there has been
        holds: a wish for quiet is for the gateway to fulfil, since others hear the same server.
        """
        wished = min(level, self._level or QUIETEST, key=LEVELS.index)
        if wished == self._level:
            return
        self._level = level = wished
        for server in self.servers.values():
            for connection in (*server.connections, *server.apart.pool.connections):
                self._beside(self._set_level(connection, level), server.name)

    def connected(self, server: Downstream, connection: Connection) -> None:
        """A conversation has just begun, or been given to a client: the server knows nothing
        of earlier wishes."""
        self._rehouse(server, connection)
        self._beside(self._watch_again(server, connection), server.name)
        if self._level is not None:
            self._beside(self._set_level(connection, self._level), server.name)

    def _rehouse(self, server: Downstream, connection: Connection) -> None:
        """What clients began at a server elsewhere outlives the connection it began over. (In
        a process it does not, and a private connection is its client's alone.)"""
        if connection.transport.pid is not None or connection in server.apart.pool.connections:
            return
        key = server, connection.era
        before, self._hosts[key] = self._hosts.get(key), connection.outbound
        if before is not None:
            connection.outbound.succeed(before)
            self.board.post(HostReplaced(before, connection.outbound))
            return
        running = self.succession.all  # those that were replaced are done with
        self._hosts = {key: host for key, host in self._hosts.items() if key[0] in running}

    async def _watch_again(self, server: Downstream, connection: Connection) -> None:
        """What happened while a server was away nobody was told."""
        await self._watch(server, connection)
        if connection is server.main.connection and server.main.restarts:
            self._doubt_watched(server.name, connection)

    async def _watch(self, server: Downstream, connection: Connection) -> None:
        if connection is not server.main.connection and not server.apart.pool.owner_of(connection):
            # Over one connection for everybody, and one for each that has its own. This runs a
            # moment after either was told of: by then what is the main one is known as that.
            return
        mine = {route for uri in self._watched if (route := self._own(server.name, uri))}
        with suppress(TimeoutError, GatewayError):
            async with asyncio.timeout(WATCHED_AT_LAST_S):
                await connection.outbound.watch(frozenset(mine))

    async def _set_level(self, connection: Connection, level: str) -> None:
        with suppress(TimeoutError, GatewayError):
            async with asyncio.timeout(WATCHED_WITHIN_S):
                await connection.outbound.wish_level(level)

    def _own(self, server: str, uri: str) -> str | None:
        entry = self.shelf.current.resolve(Kind.RESOURCE, uri)
        return entry.route.name if entry and entry.route.server == server else None

    def _doubt_watched(self, name: str, connection: Connection) -> None:
        """What is watched of a server may have changed while it could not tell."""
        owner = self._owner_of(connection)
        if owner is not None or self._is_shared(connection):
            for uri in self._watched:
                if self._own(name, uri):
                    self.board.post(ResourceUpdated(uri, {"uri": uri}, owner))


def _told_as(kind: Kind) -> Kind:
    """One notification speaks of resources and of their templates."""
    return Kind.RESOURCE if kind is Kind.TEMPLATE else kind
