"""What one server lists, as last read: over the connection everybody shares, and over
private ones.

Some servers offer certain tools only to clients that can be asked something. Those are
offered to everybody: whoever cannot be asked is told so when it calls them. And a server of
two eras is listed in one of them; what it can do in the other alone is added.
"""

import asyncio
from asyncio import Task
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import structlog
from msgspec.structs import replace

from gateway.catalog.entries import Kind, Listing
from gateway.downstream.connection import Connection
from gateway.eras.calling import LISTS
from gateway.eras.profile import Profile
from gateway.protocol.errors import GatewayError, InvalidMessage
from gateway.protocol.jsonrpc import Fields, Json, value

log = structlog.get_logger()

Items = tuple[Fields, ...]

MEMBERS = {
    Kind.TOOL: ("tools", "name"),
    Kind.PROMPT: ("prompts", "name"),
    Kind.RESOURCE: ("resources", "uri"),
    Kind.TEMPLATE: ("templates", "uriTemplate"),
}
"""Of a listing, and what its items are known by."""

LISTED_TOGETHER = {kind: frozenset({kind}) for kind in Kind} | {
    Kind.RESOURCE: frozenset({Kind.RESOURCE, Kind.TEMPLATE})
}
"""One notification speaks of resources and of their templates."""

EXECUTION = "execution"
"""The member of a tool that says whether it can be called as a task: in one era alone."""

TASKS = "tasks"
"""The capability that goes with it."""

METHODS = {kind: method for kind, method, _, _ in LISTS}

LATE_S = 1.0
"""How long the other lists may take once the tools are there; they follow when they come."""

MOST_PRIVATE = 16
"""Kinds of clients whose lists are remembered; more than a server makes differences for."""


@dataclass(slots=True)
class Listings:
    current: Listing
    """All that is on offer."""
    patience_s: float
    """How long one list may take."""
    spawn: Callable[[Awaitable[None]], "Task[None]"]
    """Runs work for this server in a task somebody owns."""
    came: Callable[[Connection], Awaitable[None]]
    """A list has come, or failed for good, that nobody waited for."""
    failed: Callable[[str], None]
    """Told in words which list cannot be had, and why."""
    beside: frozenset[str] = frozenset()
    """What the server can do in its other era, if it has two."""
    _own: frozenset[str] | None = None
    """What it can do in the one that is read; None: not read yet."""
    _executions: dict[str | None, Json] = field(default_factory=dict)
    """By tool, as the other era lists it."""
    _shared: dict[Kind, Items] = field(default_factory=dict)
    _private: dict[Profile | None, dict[Kind, Items]] = field(default_factory=dict)
    """By what the client behind a connection can answer: the same for all such clients."""
    _missing: set[Kind] = field(default_factory=set)
    """Lists that could not be had when they were read last."""
    _turns: dict[Kind, asyncio.Lock] = field(
        default_factory=lambda: {kind: asyncio.Lock() for kind in Kind}
    )
    """What was asked for last is what counts."""
    _queued: set[tuple[Connection, Kind]] = field(default_factory=set)
    """To be read next, when the same list has been read."""

    def __post_init__(self) -> None:
        if TASKS in self.beside:  # as it was remembered
            self._executions = _executions(self.current.tools)

    async def compare(self, other: Connection | None = None) -> bool:
        """Note what the server can do in its other era, or that it has none any more. Whether
        that is another than was known."""
        before = self.beside, self._executions
        self.beside = other.outbound.offers if other else frozenset()
        self._executions = {}
        if other and TASKS in self.beside:
            with suppress(TimeoutError, GatewayError):
                async with asyncio.timeout(self.patience_s):
                    part = await other.outbound.list(frozenset({Kind.TOOL}))
                    self._executions = _executions(part.tools)
        if (self.beside, self._executions) == before:
            return False
        if self._own is not None:
            tools = tuple(self._called(tool) for tool in self.current.tools)
            self.current = replace(self.current, tools=tools, capabilities=self._own | self.beside)
        return True

    async def read(self, connection: Connection, kinds: Iterable[Kind]) -> None:
        """Read these lists over the shared connection, and again those that could not be had
        before. Waits for that of the tools, and for others that do not take much longer. What
        cannot be had stays as it was."""
        wanted = {*kinds, *self._missing}
        reading = {kind: self.spawn(self._read(connection, kind)) for kind in wanted}
        try:
            if Kind.TOOL in reading:
                await asyncio.wait([reading[Kind.TOOL]])
            if reading:  # what was announced may have been read meanwhile, after a restart
                await asyncio.wait(reading.values(), timeout=LATE_S)
        except asyncio.CancelledError:
            for task in reading.values():
                task.cancel()
            raise
        for kind in sorted(kind for kind, task in reading.items() if not task.done()):
            log.info("list.late", server=self.current.server, kind=str(kind))
            self.spawn(self._follow(connection, reading[kind]))

    async def _follow(self, connection: Connection, reading: "Task[None]") -> None:
        await asyncio.wait([reading])
        await self.came(connection)

    async def learn(self, connection: Connection) -> bool:
        """Read all over a private connection. Whether it lists what nobody knew of."""
        async with asyncio.TaskGroup() as tasks:
            parts = {kind: tasks.create_task(self._part(connection, kind)) for kind in Kind}
        for kind, (member, _) in MEMBERS.items():
            self._shared.setdefault(kind, getattr(self.current, member))
        if len(self._private) >= MOST_PRIVATE:
            del self._private[next(iter(self._private))]
        found = {kind: task.result() for kind, task in parts.items()}
        self._private[connection.profile] = {
            kind: _beyond(self._shared[kind], getattr(part, MEMBERS[kind][0]), kind)
            for kind, part in found.items()
            if part is not None
        }
        before, self.current = self.current, replace(self.current, **self._merged(MEMBERS))
        return self.current != before

    async def _read(self, connection: Connection, kind: Kind) -> None:
        if (connection, kind) in self._queued:
            return  # whoever waits will read what is true then
        self._queued.add((connection, kind))
        try:
            await self._turns[kind].acquire()
        finally:
            self._queued.discard((connection, kind))
        try:
            part = await self._part(connection, kind)
        finally:
            self._turns[kind].release()
        if part is None:
            self._missing.add(kind)
            return
        self._missing.discard(kind)
        items = getattr(part, MEMBERS[kind][0])
        if kind is Kind.TOOL and self._executions:
            items = tuple(self._called(tool) for tool in items)
        self._shared[kind], self._own = items, part.capabilities
        merged = self._merged((kind,))
        self.current = replace(self.current, **merged, capabilities=self._own | self.beside)

    async def _part(self, connection: Connection, kind: Kind) -> Listing | None:
        """This list, as it is now; None if it cannot be had, which is said here."""
        try:
            async with asyncio.timeout(self.patience_s):
                return await connection.outbound.list(frozenset({kind}))
        except TimeoutError:
            why = f"not answered within {self.patience_s:g} s"
        except GatewayError as error:
            why = error.message
        log.warning("list.failed", server=self.current.server, kind=str(kind), why=why)
        if connection.is_alive:  # else that is what operators want to know
            self.failed(f"{METHODS[kind]}: {why}")
        return None

    def _called(self, tool: Fields) -> Fields:
        """A tool, with how it can be called in the other era, unless it says so itself."""
        execution = self._executions.get(_name(tool, Kind.TOOL))
        return tool if execution is None or EXECUTION in tool else {**tool, EXECUTION: execution}

    def _merged(self, kinds: Iterable[Kind]) -> dict[str, Items]:
        merged: dict[str, Items] = {}
        for kind in kinds:
            items = self._shared[kind]
            for more in self._private.values():
                items += _beyond(items, more.get(kind, ()), kind)
            merged[MEMBERS[kind][0]] = items
        return merged


def _executions(tools: Items) -> dict[str | None, Json]:
    return {_name(tool, Kind.TOOL): tool[EXECUTION] for tool in tools if EXECUTION in tool}


def _beyond(known: Items, found: Items, kind: Kind) -> Items:
    """What of these is not among those."""
    names = {_name(one, kind) for one in known}
    return tuple(one for one in found if _name(one, kind) not in names)


def _name(one: Fields, kind: Kind) -> str | None:
    """What it is known by; None for what nobody can be offered."""
    try:
        name = value(one, MEMBERS[kind][1])
    except InvalidMessage:
        return None
    return name if isinstance(name, str) else None
