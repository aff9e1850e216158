"""Merge what servers list into one catalog. Pure: same listings in, same catalog out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gateway.catalog import naming
from gateway.catalog.catalog import Catalog
from gateway.catalog.definitions import NAMED_BY, Flaw, Sound, sound
from gateway.catalog.entries import Entry, Kind, Listing, Route
from gateway.catalog.instructions import joined_instructions
from gateway.catalog.notes import CLIP, Note
from gateway.catalog.templates import BadTemplate, Template, compile_template, normal
from gateway.protocol.headers import BadAnnotation, HeaderParam, header_params
from gateway.protocol.jsonrpc import Fields, as_bytes, raw

TAKEN = "another entry has this name"


def merge(
    listings: Iterable[Listing], prefixes: Mapping[str, str], longest: int, serial: int = 0
) -> Catalog:
    """One catalog of all that these servers list.

    `prefixes` holds every configured server, in the order of the configuration, and the
    prefix of its names ("" for none); `longest` bounds names, in characters. Two servers
    with the same name: the one configured first keeps it, whenever the other started.
    """
    rank = {server: place for place, server in enumerate(prefixes)}
    ranked = sorted(listings, key=lambda listing: rank.get(listing.server, len(rank)))
    merged = _Merge(prefixes, longest)
    for listing in ranked:
        merged.add(listing)
    instructions, short = joined_instructions(ranked, prefixes)
    for listing in ranked:
        if listing.server in short:
            merged.notes.append(Note("instructions.shortened", listing.server))
    return Catalog(
        serial=serial,
        entries=merged.entries,
        order={kind: tuple(entries) for kind, entries in merged.order.items()},
        templates=tuple(merged.templates),
        spellings=merged.spellings,
        set_apart=merged.set_apart,
        header_params=merged.header_params,
        capabilities=frozenset().union(*(listing.capabilities for listing in ranked)),
        instructions=instructions,
        private=any(listing.private for listing in ranked),
        notes=tuple(merged.notes),
    )


@dataclass(slots=True)
class _Merge:
    """A catalog in the making."""

    prefixes: Mapping[str, str]
    longest: int
    entries: dict[tuple[Kind, str], Entry] = field(default_factory=dict)
    order: dict[Kind, list[Entry]] = field(default_factory=lambda: {kind: [] for kind in Kind})
    templates: list[tuple[Template, Entry]] = field(default_factory=list)
    spellings: dict[str, Entry] = field(default_factory=dict)
    set_apart: dict[tuple[str, str], str] = field(default_factory=dict)
    header_params: dict[str, tuple[HeaderParam, ...]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    def add(self, listing: Listing) -> None:
        for kind, definitions in (
            (Kind.TOOL, listing.tools),
            (Kind.PROMPT, listing.prompts),
            (Kind.RESOURCE, listing.resources),
            (Kind.TEMPLATE, listing.templates),
        ):
            seen: set[str] = set()
            for definition in definitions:
                self._add(Route(listing.server, kind, ""), definition, seen)

    def _add(self, nameless: Route, definition: Fields, seen: set[str]) -> None:
        server, kind = nameless.server, nameless.kind
        try:
            found = sound(kind, definition)
            params = header_params(found.definition) if kind is Kind.TOOL else ()
            compiled = compile_template(found.name) if kind is Kind.TEMPLATE else None
        except (Flaw, BadAnnotation, BadTemplate) as error:
            shown = as_bytes(definition.get(NAMED_BY[kind])).decode(errors="replace")
            self._note("entry.left_out", Route(server, kind, shown.strip('"')), why=str(error))
            return
        route = Route(server, kind, found.name)
        if found.name in seen:
            self._note("entry.left_out", route, why="listed twice by this server")
            return
        seen.add(found.name)
        offered = self._name_for(route)
        if offered is None:
            self._note("entry.left_out", route, why=TAKEN)
            return
        self._place(Entry(offered, route, _renamed(found, kind, offered)))
        if found.mended:
            self._note("entry.mended", route, offered, found.mended)
        if params:
            self.header_params[offered] = params
        if compiled is not None:
            own = offered == found.name
            fitted = compiled if own else compile_template(offered)
            self.templates.append((fitted, self.entries[kind, offered]))

    def _place(self, entry: Entry) -> None:
        kind = entry.route.kind
        self.entries[kind, entry.name] = entry
        self.order[kind].append(entry)
        if kind is Kind.RESOURCE and (spelt := normal(entry.name)) != entry.name:
            self.spellings.setdefault(spelt, entry)

    def _name_for(self, route: Route) -> str | None:
        """A free name, or None; a clash is noted, and so is any change beyond a prefix."""
        if route.kind is Kind.RESOURCE or route.kind is Kind.TEMPLATE:
            return self._uri_for(route)
        server, kind, name = route.server, route.kind, route.name
        prefix = self.prefixes.get(server, server)
        wanted = naming.exposed(server, prefix, name, self.longest)
        if (kind, wanted) not in self.entries:
            if naming.is_rewritten(prefix, name, wanted):
                self._note("entry.renamed", route, wanted, "made fit for every client")
            return wanted
        for other in (
            naming.exposed(server, prefix or server, name, self.longest),
            naming.distinct(server, prefix or server, name, self.longest),
        ):
            if (kind, other) not in self.entries:
                self._note("entry.clashed", route, other, self._keeper(kind, wanted))
                return other
        return None

    def _uri_for(self, route: Route) -> str | None:
        server, kind, uri = route.server, route.kind, route.name
        if (kind, uri) not in self.entries:
            return uri
        other = naming.apart(server, uri)
        if (kind, other) in self.entries:
            return None
        self._note("entry.clashed", route, other, self._keeper(kind, uri))
        self.set_apart[server, uri] = other
        return other

    def _keeper(self, kind: Kind, name: str) -> str:
        keeper = self.entries[kind, name].route
        return f"{name[:CLIP]} belongs to {keeper.server}"

    def _note(self, event: str, route: Route, offered: str | None = None, why: str = "") -> None:
        shown = route.name if len(route.name) <= CLIP else route.name[:CLIP] + "…"
        self.notes.append(Note(event, route.server, shown, route.kind, offered, why))


def _renamed(found: Sound, kind: Kind, offered: str) -> Fields:
    """The definition under its new name; every other member stays the bytes it is."""
    if offered == found.name:
        return found.definition
    return {**found.definition, NAMED_BY[kind]: raw(offered)}
