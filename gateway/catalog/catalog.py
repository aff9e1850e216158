"""Everything the gateway offers at one moment, as one immutable value."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from msgspec.structs import replace as replace_entry

from gateway.catalog import naming
from gateway.catalog.entries import Entry, Kind, Route
from gateway.catalog.notes import Note
from gateway.catalog.templates import Template, normal
from gateway.protocol.headers import HeaderParam
from gateway.protocol.jsonrpc import Fields

LONGEST_URI = 8192
"""Characters; what is longer matches no template."""

MOST_EFFORT = 250_000
"""What one server's templates may cost each time a URI is looked up, in characters times steps:
milliseconds. Honest ones come nowhere near; the rest of them then count as not fitting."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """A snapshot. A reader takes it once and keeps it: what it saw cannot change under it."""

    serial: int = 0
    """Grows with every catalog that differs from the one before."""
    entries: Mapping[tuple[Kind, str], Entry] = field(default_factory=dict)
    order: Mapping[Kind, tuple[Entry, ...]] = field(default_factory=dict)
    templates: tuple[tuple[Template, Entry], ...] = ()
    """Compiled, in order: the first that matches a URI tells where it lives."""
    spellings: Mapping[str, Entry] = field(default_factory=dict)
    """Resources by the normal form of their URI, where that is another one."""
    set_apart: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(server, its own URI) to the URI offered, where another server has the same URI."""
    header_params: Mapping[str, tuple[HeaderParam, ...]] = field(default_factory=dict)
    """By tool, for the few that have any: arguments that clients mirror into headers."""
    capabilities: frozenset[str] = frozenset()
    """What any server has: `tools`, `prompts`, `resources`, `completions`, `logging`."""
    instructions: str | None = None
    private: bool = False
    """Some list differs by caller: nobody may share a copy of it."""
    notes: tuple[Note, ...] = ()
    allowed: Callable[[Entry], bool] | None = field(default=None, compare=False)
    """Asked of every URI that a template leads to, since only here one sees what it is."""

    def of(self, kind: Kind) -> tuple[Entry, ...]:
        """In the order of the configuration, then in each server's own order."""
        return self.order.get(kind, ())

    def resolve(self, kind: Kind, name: str) -> Entry | None:
        """What a client means by this name. A URI that is not listed is looked up by template:
        the entry then has the URI for a name, and its route the URI that the server knows.

        As a TEMPLATE both are understood, the text of a template and a URI (completion).
        """
        entry = self.entries.get((kind, name))
        if entry is None and (kind is Kind.RESOURCE or kind is Kind.TEMPLATE):
            return self._by_uri(name)
        return entry

    def _by_uri(self, uri: str) -> Entry | None:
        spelt = normal(uri) if len(uri) <= LONGEST_URI else uri
        listed = self.entries.get((Kind.RESOURCE, spelt)) or self.spellings.get(spelt)
        if listed is not None:
            return listed
        if len(spelt) > LONGEST_URI:
            return None
        spent: dict[str, int] = {}
        for template, entry in self.templates:
            if not template.begins(spelt):
                continue
            server = entry.route.server
            spent[server] = spent.get(server, 0) + len(template.steps) * len(spelt)
            if spent[server] <= MOST_EFFORT and template.matches(spelt):
                found = _expanded(entry, uri)
                return found if self.allowed is None or self.allowed(found) else None
        return None

    def offered_uri(self, server: str, own: str) -> str:
        """What clients know this server's URI as: nearly always itself."""
        listed = self.set_apart.get((server, own))
        if listed is not None or self._leads_to(server, own):
            return listed or own
        aside = naming.apart(server, own)
        return aside if self._leads_to(server, aside) else own

    def _leads_to(self, server: str, uri: str) -> bool:
        entry = self.resolve(Kind.RESOURCE, uri)
        return entry is not None and entry.route.server == server

    def keep(self, allowed: Callable[[Entry], bool]) -> "Catalog":
        """The same catalog with only the allowed entries, and only allowed URIs to be found.
        Templates still lead where they led: a URI does not pass to the next one."""
        kept = {kind: tuple(filter(allowed, entries)) for kind, entries in self.order.items()}
        entries = {(entry.route.kind, entry.name): entry for entry in _all(kept)}
        resources = {entry.name for entry in kept.get(Kind.RESOURCE, ())}
        return replace(
            self,
            entries=entries,
            order=kept,
            spellings={uri: e for uri, e in self.spellings.items() if e.name in resources},
            header_params={
                name: params
                for name, params in self.header_params.items()
                if (Kind.TOOL, name) in entries
            },
            allowed=allowed,
        )

    def amend(self, amended: Callable[[Entry], Fields]) -> "Catalog":
        """The same catalog with other definitions for its tools, where that gives others."""
        changed = {
            entry.name: replace_entry(entry, definition=definition)
            for entry in self.of(Kind.TOOL)
            if (definition := amended(entry)) != entry.definition
        }
        if not changed:
            return self
        tools = tuple(changed.get(entry.name, entry) for entry in self.of(Kind.TOOL))
        entries = {(Kind.TOOL, name): entry for name, entry in changed.items()}
        return replace(
            self,
            entries={**self.entries, **entries},
            order={**self.order, Kind.TOOL: tools},
        )


def _all(order: Mapping[Kind, tuple[Entry, ...]]) -> Iterator[Entry]:
    for entries in order.values():
        yield from entries


def _expanded(template: Entry, uri: str) -> Entry:
    server = template.route.server
    own = uri if template.name == template.route.name else naming.together(server, uri)
    route = Route(server, Kind.RESOURCE, own)
    return Entry(uri, route, template.definition, template.name)


def changed_kinds(before: Catalog, after: Catalog) -> frozenset[Kind]:
    """The kinds whose lists clients must read again; RESOURCE stands for templates too."""
    changed = {kind for kind in Kind if before.of(kind) != after.of(kind)}
    if Kind.TEMPLATE in changed:
        changed = (changed - {Kind.TEMPLATE}) | {Kind.RESOURCE}
    return frozenset(changed)
