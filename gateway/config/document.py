"""A configuration file as a tree that remembers where everything was written.

Both readers (`from_yaml`, `from_json`) produce it; errors and `explain` look places up in it.
Lines and columns count from 1, as editors do.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

Path = tuple[str | int, ...]
"""Where a setting is: `("tools", 0, "timeout")`."""

Scalar = str | int | float | bool | None

DEEPEST = 64
"""Levels of nesting. Settings need six; more is a mistake or an attack on the stack."""

MOST_EXPANDED = 200_000
"""Values that aliases may stand for in all, so that a few lines cannot fill the memory."""


class Span(NamedTuple):
    """A piece of the text on one line or several; `end_column` is the column after it."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(slots=True)
class Node:
    """A value, where it is, and for scalars the text as written (escapes resolved)."""

    span: Span
    value: "Scalar | list[Node] | dict[str, Entry]"
    text: str = field(default="", repr=False)
    size: int = 1
    """How many values it holds, itself included, aliases expanded."""
    height: int = 0
    """Levels beneath it, aliases expanded."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a mapping holds under one key."""

    key: Span
    node: Node


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something wrong with the text itself, and where."""

    span: Span
    problem: str


class Unreadable(Exception):
    """The text cannot be read any further. Carries the flaw that stopped it."""

    def __init__(self, flaw: Flaw) -> None:
        super().__init__(flaw.problem)
        self.flaw = flaw


@dataclass(frozen=True, slots=True)
class Document:
    """A file that could be read: its lines, its tree, and flaws that did not stop the reading."""

    lines: tuple[str, ...] = field(repr=False)
    root: Node = field(repr=False)
    flaws: tuple[Flaw, ...] = ()


@dataclass(frozen=True, slots=True)
class Marks:
    """Where each setting was written. Paths are those of the model: `servers`, whatever the
    file calls it."""

    root: Node = field(repr=False)
    renamed: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Servers by the name the model has, with the one in the file, where that is another."""

    def line_of(self, path: Path) -> int | None:
        """The line on which a setting starts, or None if the file does not give it."""
        trail = list(self._trail(path))
        return trail[-1][0].line if len(trail) == len(path) and trail else None

    def span_of(self, path: Path, *, at_key: bool = False) -> Span | None:
        """Where a setting is: its value, or its key. What the file does not give is looked for
        in the nearest thing around it; None if not even its section is there."""
        if not path:
            return self.root.span
        trail = list(self._trail(path))
        if not trail:
            return None
        key, node = trail[-1]
        missing = len(trail) < len(path) and isinstance(node.value, dict | list)
        return key if at_key or missing else node.span

    def as_written(self, path: Path) -> Path:
        """The path with the words of the file: `mcpServers` where it says so, and its names."""
        if path[:1] == ("servers",) and self._says_mcp_servers():
            name = (self.renamed.get(str(step), step) for step in path[1:2])
            return ("mcpServers", *name, *path[2:])
        return path

    def _says_mcp_servers(self) -> bool:
        value = self.root.value
        return isinstance(value, dict) and "mcpServers" in value and "servers" not in value

    def _trail(self, path: Path) -> Iterator[tuple[Span, Node]]:
        """Key and value for each step that exists."""
        node = self.root
        for step in self.as_written(path):
            value = node.value
            if isinstance(value, dict) and isinstance(step, str) and step in value:
                entry = value[step]
                node = entry.node
                yield entry.key, node
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                node = value[step]
                yield node.span, node
            else:
                return


def grown(node: Node, child: Node) -> None:
    """Count a child into the size and height of what holds it."""
    node.size += child.size
    node.height = max(node.height, child.height + 1)
