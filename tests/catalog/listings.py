"""What servers list, as it reaches the catalog: shallow, members still bytes."""

import msgspec

from gateway.catalog.catalog import Catalog
from gateway.catalog.entries import Kind, Listing
from gateway.catalog.merging import merge
from gateway.protocol.jsonrpc import Fields, Raw

SCHEMA = {"type": "object"}
_shallow = msgspec.json.Decoder(dict[str, Raw])


def as_sent(definition: object) -> Fields:
    return _shallow.decode(msgspec.json.encode(definition))


def tool(name: object, **members: object) -> Fields:
    return as_sent({"name": name, "inputSchema": SCHEMA, **members})


def tools(server: str, *names: str) -> Listing:
    return Listing(server, tools=tuple(tool(name) for name in names))


def resources(server: str, *uris: str) -> Listing:
    return Listing(
        server, resources=tuple(as_sent({"uri": uri, "name": "a thing"}) for uri in uris)
    )


def templates(server: str, *texts: str) -> Listing:
    return Listing(
        server, templates=tuple(as_sent({"uriTemplate": text, "name": "any"}) for text in texts)
    )


def merged(*listings: Listing, longest: int = 50, **prefixes: str) -> Catalog:
    """Servers are configured in the order given; without a prefix of their own, their key."""
    known = {listing.server: listing.server for listing in listings} | prefixes
    return merge(listings, known, longest)


def names(catalog: Catalog, kind: Kind = Kind.TOOL) -> list[str]:
    return [entry.name for entry in catalog.of(kind)]


def events(catalog: Catalog) -> list[tuple[str, str, str | None]]:
    return [(note.event, note.name, note.offered) for note in catalog.notes]
