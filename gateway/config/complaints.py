"""What is wrong with a configuration, as people read it.

A complaint quotes the offending line with everything hidden that could be a secret: only keys
and the values of settings known to be harmless are shown (`hidden` says which parts are not).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

from gateway.config.document import Document, Node, Path, Span
from gateway.config.model import Auth, Config, Limits, Names, Token, ToolRule
from gateway.config.shape import EveryServer, fields_of, is_open, is_open_key

WIDEST = 100
"""Characters of a quoted line; longer ones are shown around the place."""

SHORT = 6
"""Characters of a value that is shown though there is a space in it, such as `30 s`."""

MOST_SHOWN = 50
"""A thousand servers with one mistake each are one mistake."""

Shown = Literal["all", "word", "none"]

_MASK = "***"
_GAP = re.compile(r"\s+")
_DEFAULT_IN_REFERENCE = re.compile(r"(?<=:-)[^}]+(?=\})")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_COMMENT = re.compile(r"(?:^|\s)(?:#|//|/\*).*$")
_WORD = re.compile(r"""[^\s{}\[\],"':]+(?::[^\s{}\[\],"':]+)*|[^\s{}\[\],"']""")
"""Words of a line as they could mean something: brackets, commas, quotes, colons set apart."""

_NO_SECRET = {"true", "false", "null", "-", "---", ":", "?", "$"}


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that is wrong: where, what, and what was probably meant."""

    file: str
    problem: str
    """A sentence without a full stop, without any value from the file."""
    path: Path = ()
    line: int | None = None
    column: int | None = None
    excerpt: str = ""
    """The line with a caret beneath, ready to print; secrets hidden."""
    meant: str | None = None
    """The nearest known word."""
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        where = f"{spelt(self.path)}: " if self.path else ""
        meant = f"; did you mean `{self.meant}`?" if self.meant else ""
        warning = "warning: " if self.severity == "warning" else ""
        said = f"{place}: {warning}{where}{self.problem}{meant}"
        return f"{said}\n{self.excerpt}" if self.excerpt else said


@dataclass(frozen=True, slots=True)
class Finding:
    """A complaint before its place in the file is known."""

    path: Path
    problem: str
    at_key: bool = False
    """Point at the key rather than at the value."""
    meant: str | None = None
    severity: Literal["error", "warning"] = "error"


class ConfigError(Exception):
    """The configuration cannot be used; `str()` is what a person reads."""

    def __init__(self, complaints: Iterable[Complaint]) -> None:
        self.complaints = tuple(complaints)
        super().__init__(render(self.complaints))


def render(complaints: Sequence[Complaint]) -> str:
    """All complaints, one beneath the other, and their number if there are several."""
    shown = [str(complaint) for complaint in complaints[:MOST_SHOWN]]
    if len(complaints) > 1:
        left = len(complaints) - len(shown)
        tail = f" ({left} more not shown)" if left else ""
        shown.append(f"{len(complaints)} problems{tail}")
    return "\n".join(shown)


def veiled(path: Path) -> Path:
    """The path with every key that may not be shown hidden."""
    return tuple(
        step if isinstance(step, int) or is_open_key(path[: at + 1]) else _MASK
        for at, step in enumerate(path)
    )


def spelt(path: Path) -> str:
    """A path as people write it: `tools[0].timeout`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return _UNPRINTABLE.sub("\ufffd", text)


class Quotes:
    """Quotes lines of one document; finds out once, if need be, what must be hidden."""

    def __init__(self, document: Document) -> None:
        self._document = document

    @cached_property
    def _texts_by_line(self) -> Mapping[int, list[tuple[Span, Shown]]]:
        """By line, the keys and scalars that start on it, and what of each may be shown."""
        found: dict[int, list[tuple[Span, Shown]]] = {}
        for span, shown in _texts(self._document.root, ()):
            found.setdefault(span.line, []).append((span, shown))
        return found

    def quote(self, span: Span) -> str:
        """The line a span starts on, a caret beneath it, secrets hidden."""
        if not 0 < span.line <= len(self._document.lines):
            return ""
        line = self._document.lines[span.line - 1]
        held = sorted(self._texts_by_line.get(span.line, []), key=lambda one: one[0].column)
        hidden = [_hidden(line, *_on_line(one, len(line)), shown) for one, shown in held]
        hidden += [found.span() for found in _DEFAULT_IN_REFERENCE.finditer(line)]
        comment = _COMMENT.search(line, _on_line(held[-1][0], len(line))[1] if held else 0)
        if comment:
            line = line[: comment.start()]
        return _drawn(line, span, hidden)


def quote_unread(lines: Sequence[str], span: Span) -> str:
    """The same for a text that could not be read: only brackets and our own words are shown.

    Where a key ends and a secret begins cannot be told there; `TOKEN sk-1: ` is one slip.
    """
    if not 0 < span.line <= len(lines):
        return ""
    line = lines[span.line - 1]
    comment = _COMMENT.search(line)
    line = line[: comment.start()] if comment else line
    strange = (found.span() for found in _WORD.finditer(line) if not _is_ours(found[0]))
    return _drawn(line, span, strange)


def _is_ours(word: str) -> bool:
    return word in _NO_SECRET or word in _vocabulary()


@cache
def _vocabulary() -> frozenset[str]:
    sections = (Config, EveryServer, ToolRule, Auth, Token, Limits, Names)
    return frozenset({"mcpServers", *(key for one in sections for key in fields_of(one))})


def _texts(node: Node, path: Path) -> Iterator[tuple[Span, Shown]]:
    if isinstance(node.value, dict):
        for key, entry in node.value.items():
            known = "servers" if key == "mcpServers" and not path else key
            yield entry.key, "all" if is_open_key((*path, known)) else "none"
            yield from _texts(entry.node, (*path, known))
    elif isinstance(node.value, list):
        for index, child in enumerate(node.value):
            yield from _texts(child, (*path, index))
    else:
        yield node.span, "word" if is_open(path) else "none"


def _hidden(line: str, start: int, end: int, shown: Shown) -> tuple[int, int]:
    """What to hide of a key or scalar: all, nothing, or what follows its first word.

    A whole command line in `command` is a common slip, and it may hold a token.
    """
    if shown == "none":
        return start, end
    gap = _GAP.search(line, start, end) if shown == "word" and end - start > SHORT else None
    return (gap.end() if gap else end), end


def _on_line(span: Span, length: int) -> tuple[int, int]:
    """The columns (from 0) a span covers of the line it starts on."""
    return span.column - 1, span.end_column - 1 if span.end_line == span.line else length


def _drawn(line: str, span: Span, hidden: Iterable[tuple[int, int]]) -> str:
    start, end = _on_line(span, len(line))
    shown, caret, at = "", None, 0
    for low, high in sorted(hidden):
        if low < at or low >= min(high, len(line)):
            continue
        if caret is None and start < high:
            caret = len(shown) + min(start, low) - at
            # The width of the caret must not tell the length of what is hidden.
            end = min(end, max(low, start)) if start < low else start + len(_MASK)
        shown += line[at:low] + _MASK
        at = min(high, len(line))
    if caret is None:
        caret = len(shown) + start - at
    shown = _UNPRINTABLE.sub("\ufffd", (shown + line[at:]).replace("\t", " ")).rstrip()
    width = max(1, min(end - start, len(shown) - caret))
    if len(shown) > WIDEST:
        cut = min(max(0, caret - WIDEST // 2), len(shown) - WIDEST)
        shown, caret = f"…{shown[cut : cut + WIDEST]}…", caret - cut + 1
        width = min(width, WIDEST // 2)
    return f"{span.line:>5} | {shown}\n{'':>5} | {' ' * caret}{'^' * width}"
