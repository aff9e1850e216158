"""What happened to entries on their way into the catalog, as values for the log."""

import msgspec

from gateway.catalog.entries import Kind


class Note(msgspec.Struct, frozen=True):
    """One thing an operator should be able to read. The merge is pure: others log it."""

    event: str
    """`entry.renamed`, `entry.clashed`, `entry.mended`, `entry.left_out`,
    `instructions.shortened`."""
    server: str
    name: str = ""
    """The server's own name or URI; it may hold anything and be long: see `CLIP`."""
    kind: Kind | None = None
    offered: str | None = None
    """What it is offered as now; None: not at all."""
    why: str = ""


CLIP = 200
"""Characters of a server's own name that a note keeps."""


def fresh(before: tuple[Note, ...], after: tuple[Note, ...]) -> tuple[Note, ...]:
    """The notes that were not there before, in order: log each once, not at every merge."""
    known = set(before)
    return tuple(note for note in after if note not in known)
