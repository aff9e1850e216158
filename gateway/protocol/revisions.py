"""Every MCP revision we speak, oldest first, and what is true of each.

Revisions are an enumerated set, never compared as strings. Two *eras* differ in
the shape of a conversation; revisions within an era differ only in these facts.
Source: the changelogs of the specification, docs/specification/REVISION/changelog.
"""

from dataclasses import dataclass
from enum import Enum


class Era(Enum):
    LEGACY = "legacy"
    MODERN = "modern"


@dataclass(frozen=True, slots=True)
class Revision:
    name: str
    era: Era
    batches: bool = False
    """A POST may hold a JSON array."""
    audio: bool = True
    annotations: bool = True
    resource_links: bool = True
    """`resource_link` content, `title`, `outputSchema`, `structuredContent`."""
    any_output: bool = False
    """`outputSchema` and `structuredContent` may be of any JSON type, not objects alone."""
    elicits: bool = True
    """A client may be asked for input at all."""
    asks_fully: bool = False
    """Elicitation by URL, choices of several; tools in sampling."""
    polling: bool = False
    """A stream starts with a priming event and may be resumed by GET."""
    tasks: bool = False
    """A request may carry `task`, and is then answered by a task (experimental)."""


KNOWN = (
    Revision(
        "2024-11-05",
        Era.LEGACY,
        audio=False,
        annotations=False,
        resource_links=False,
        elicits=False,
    ),
    Revision("2025-03-26", Era.LEGACY, batches=True, resource_links=False, elicits=False),
    Revision("2025-06-18", Era.LEGACY),
    Revision("2025-11-25", Era.LEGACY, asks_fully=True, polling=True, tasks=True),
    Revision("2026-07-28", Era.MODERN, any_output=True, asks_fully=True),
)
BY_NAME = {revision.name: revision for revision in KNOWN}
NEWEST = {era: [r for r in KNOWN if r.era is era][-1] for era in Era}
OF_ERA = {era: tuple(r for r in KNOWN if r.era is era) for era in Era}
