"""What one server lists, as last read: over the connection everybody shares, and over
private ones.

Some servers offer certain tools only to clients that can be asked something. Those are
offered to everybody: whoever cannot be asked is told so when it calls them.
"""

import asyncio
from collections.abc import Iterable
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

MOST_PRIVATE = 16
"""Kinds of clients whose lists are remembered; more than a server makes differences for."""


@dataclass(slots=True)
class Listings:
    current: Listing
    """All that is on offer."""
    patience_s: float
    """How long one list may take."""
    _shared: dict[Kind, Items] = field(default_factory=dict)
    _private: dict[Profile | None, dict[Kind, Items]] = field(default_factory=dict)
    """By what the client behind a connection can answer: the same for all such clients."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """What was asked for last is what counts."""

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
            self._shared[kind] = getattr(part, MEMBERS[kind][0])
            merged = self._merged((kind,))
            self.current = replace(self.current, **merged, capabilities=part.capabilities)

    def _merged(self, kinds: Iterable[Kind]) -> dict[str, Items]:
        merged: dict[str, Items] = {}
        for kind in kinds:
            items = self._shared[kind]
            for more in self._private.values():
                items += _beyond(items, more[kind], kind)
            merged[MEMBERS[kind][0]] = items
        return merged


def _beyond(known: Items, found: Items, kind: Kind) -> Items:
    """What of these is not among those."""
    names: set[Json] = {value(one, MEMBERS[kind][1]) for one in known}
    return tuple(one for one in found if value(one, MEMBERS[kind][1]) not in names)
