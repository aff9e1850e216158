"""The things a catalog holds, and where each one lives."""

from enum import StrEnum

import msgspec

from gateway.protocol.jsonrpc import Fields

OWN = "onegate"
"""The gateway itself, as the server of tools of its own."""


class Kind(StrEnum):
    TOOL = "tool"
    PROMPT = "prompt"
    RESOURCE = "resource"
    TEMPLATE = "template"


class Route(msgspec.Struct, frozen=True):
    """Where an entry lives: the server (its key in the configuration), and the name or
    URI that server knows it by."""

    server: str
    kind: Kind
    name: str


class Entry(msgspec.Struct, frozen=True):
    """One thing on offer. `definition` is what the server sent, shallow, under our name."""

    name: str
    route: Route
    definition: Fields
    template: str | None = None
    """Of a resource that is not listed itself: the template (as offered) that its URI fits."""


class Listing(msgspec.Struct, frozen=True):
    """Everything one server offers, under its own names; definitions shallow, as they came."""

    server: str
    tools: tuple[Fields, ...] = ()
    prompts: tuple[Fields, ...] = ()
    resources: tuple[Fields, ...] = ()
    templates: tuple[Fields, ...] = ()
    capabilities: frozenset[str] = frozenset()
    """Of the server: `tools`, `prompts`, `resources`, `completions`, `logging`."""
    instructions: str | None = None
    private: bool = False
    """The server said its lists differ by caller (`cacheScope: private`)."""
