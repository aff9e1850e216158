"""What one server lists, as last read: over the connection everybody shares, and over
private ones.

Some servers offer certain tools only to clients that can be asked something. Those are
offered to everybody: whoever cannot be asked is told so when it calls them. And a server of
two eras is listed in one of them; what it can do in the other alone is added.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import structlog
from msgspec.structs import replace

from gateway.catalog.entries import Kind, Listing
from gateway.downstream.connection import Connection
from gateway.eras.profile import Profile
from gateway.protocol.errors import GatewayError
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

EXECUTION = "execution"
"""The member of a tool that says whether it can be called as a task: in one era alone."""

TASKS = "tasks"
"""The capability that goes with it."""

MOST_PRIVATE = 16
"""Kinds of clients whose lists are remembered; more than a server makes differences for."""


@dataclass(slots=True)
class Listings:
    current: Listing
    """All that is on offer."""
    patience_s: float
    """How long one list may take."""
    beside: frozenset[str] = frozenset()
    """What the server can do in its other era, if it has two."""
    _own: frozenset[str] | None = None
    """What it can do in the one that is read; None: not read yet."""
    _executions: dict[Json, Json] = field(default_factory=dict)
    """By tool, as the other era lists it."""
    _shared: dict[Kind, Items] = field(default_factory=dict)
    _private: dict[Profile | None, dict[Kind, Items]] = field(default_factory=dict)
    """By what the client behind a connection can answer: the same for all such clients."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """What was asked for last is what counts."""

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
        """Read these lists over the shared connection. What cannot be had stays as it was."""
        async with self._turn, asyncio.TaskGroup() as tasks:
            for kind in kinds:
                tasks.create_task(self._read(connection, kind))

    async def learn(self, connection: Connection) -> bool:
        """Read all over a private connection. Whether it lists what nobody knew of.

        Raises `GatewayError`.
        """
        part = await connection.outbound.list(frozenset(Kind))
        found = {kind: getattr(part, member) for kind, (member, _) in MEMBERS.items()}
        for kind, (member, _) in MEMBERS.items():
            self._shared.setdefault(kind, getattr(self.current, member))
        if len(self._private) >= MOST_PRIVATE:
            del self._private[next(iter(self._private))]
        self._private[connection.profile] = {
            kind: _beyond(self._shared[kind], items, kind) for kind, items in found.items()
        }
        before, self.current = self.current, replace(self.current, **self._merged(MEMBERS))
        return self.current != before

    async def _read(self, connection: Connection, kind: Kind) -> None:
        server = self.current.server
        try:
            async with asyncio.timeout(self.patience_s):
                part = await connection.outbound.list(frozenset({kind}))
        except TimeoutError:
            log.warning("list.failed", server=server, kind=str(kind), why="timed out")
        except GatewayError as error:
            log.warning("list.failed", server=server, kind=str(kind), why=error.message)
        else:
            items = getattr(part, MEMBERS[kind][0])
            if kind is Kind.TOOL and self._executions:
                items = tuple(self._called(tool) for tool in items)
            self._shared[kind], self._own = items, part.capabilities
            merged = self._merged((kind,))
            self.current = replace(self.current, **merged, capabilities=self._own | self.beside)

    def _called(self, tool: Fields) -> Fields:
        """A tool, with how it can be called in the other era, unless it says so itself."""
        execution = self._executions.get(value(tool, "name"))
        return tool if execution is None or EXECUTION in tool else {**tool, EXECUTION: execution}

    def _merged(self, kinds: Iterable[Kind]) -> dict[str, Items]:
        merged: dict[str, Items] = {}
        for kind in kinds:
            items = self._shared[kind]
            for more in self._private.values():
                items += _beyond(items, more[kind], kind)
            merged[MEMBERS[kind][0]] = items
        return merged


def _executions(tools: Items) -> dict[Json, Json]:
    return {value(tool, "name"): tool[EXECUTION] for tool in tools if EXECUTION in tool}


def _beyond(known: Items, found: Items, kind: Kind) -> Items:
    """What of these is not among those."""
    names: set[Json] = {value(one, MEMBERS[kind][1]) for one in known}
    return tuple(one for one in found if value(one, MEMBERS[kind][1]) not in names)
