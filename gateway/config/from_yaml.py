"""Read YAML into a document: YAML 1.2 scalars, anchors, merge keys; duplicates are flaws.

Built from the parser's events rather than its composed nodes: nesting and aliases are bounded
while reading, and nothing here recurses.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from gateway.config.document import (
    DEEPEST,
    MOST_EXPANDED,
    Document,
    Entry,
    Flaw,
    Node,
    Scalar,
    Span,
    Unreadable,
    grown,
)

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C parser where it was built: ten times as fast, same events."""

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""Line breaks as libyaml counts them."""

_INT = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {"!", *(f"{_TAG}{name}" for name in ("map", "seq", "str"))}

_PLAINER = {
    "found character that cannot start any token": "a value cannot start like this; quote it",
    "could not find expected ':'": "expected `key: value`, but there is no `:`",
    "did not find expected key": "expected a key here; is the indentation right?",
    "did not find expected '-' indicator": "expected `- ` here; is the indentation right?",
    "did not find expected ',' or '}'": "expected `,` or `}`",
    "did not find expected ',' or ']'": "expected `,` or `]`",
    "found unexpected end of stream": "the quoted text that starts here never ends",
    "mapping values are not allowed in this context": (
        "a `:` cannot be here; is the line above complete, or should this be quoted?"
    ),
    "did not find expected node content": "expected a value, and there is none",
    "exceeded maximum nesting depth": "nested too deep",
    "did not find expected <document start>": "expected nothing more here",
}
"""The parser's words, said to people."""


@dataclass(slots=True)
class _Open:
    """A mapping or list that has begun."""

    node: Node
    anchor: str | None
    key: tuple[str, Span] | None = None
    merged: list[Node] = field(default_factory=list)


def read_yaml(text: str) -> Document:
    """Read one YAML document. Raises `Unreadable` at the first place that is not YAML.

    `text` has no byte order mark. An empty text reads as null.
    """
    reading = _Reading()
    for event in _events(text):
        reading.take(event)
    return Document(tuple(_BREAK.split(text)), reading.root, tuple(reading.flaws))


def _events(text: str) -> Iterator[Event]:
    try:
        yield from yaml.parse(text, Loader=LOADER)
    except yaml.MarkedYAMLError as error:
        problem = str(error.problem)
        mark = error.problem_mark
        if problem == "found unexpected end of stream" or mark is None:
            mark = error.context_mark or mark
        lines = _BREAK.split(text)
        line, column = (mark.line, mark.column) if mark else (0, 0)
        if line >= len(lines):  # libyaml counts the end as a line of its own
            line, column = len(lines) - 1, len(lines[-1])
        said = _said(problem, lines[line], column)
        raise Unreadable(Flaw(Span(line + 1, column + 1, line + 1, column + 2), said)) from None
    except yaml.YAMLError:
        span = Span(1, 1, 1, 2)
        raise Unreadable(Flaw(span, "the text holds characters that YAML forbids")) from None


def _said(problem: str, line: str, column: int) -> str:
    """The parser's problem in plainer words. `line` and `column` (from 0) are where it is."""
    if line[column:].startswith("\t"):
        return "a tab cannot indent YAML; use spaces"
    said = _PLAINER.get(problem, problem)
    if said.startswith("expected `,`") and "${" in line[: column + 1]:
        said += "; within { } and [ ] a text with ${...} must be quoted"
    return said


class _Reading:
    """Builds the tree, one event after the other."""

    def __init__(self) -> None:
        self.root = Node(Span(1, 1, 1, 1), None)
        self.flaws: list[Flaw] = []
        self._stack: list[_Open] = []
        self._anchors: dict[str, Node | None] = {}
        self._documents = 0
        self._expanded = 0

    def take(self, event: Event) -> None:
        match event:
            case ScalarEvent():
                span = _span(event)
                value = self._scalar(event, span)
                self._place(Node(span, value, event.value), event.anchor)
            case MappingStartEvent() | SequenceStartEvent():
                self._open(event, {} if isinstance(event, MappingStartEvent) else [])
            case CollectionEndEvent():
                self._close(_span(event))
            case AliasEvent():
                self._alias(event)
            case DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    said = "a second document (`---`) begins here; a configuration is one"
                    raise Unreadable(Flaw(_span(event), said))

    def _open(self, event: CollectionStartEvent, empty: list[Node] | dict[str, Entry]) -> None:
        span = _span(event)
        self._check_tag(event.tag, span)
        if len(self._stack) >= DEEPEST:
            raise Unreadable(Flaw(span, f"nested more than {DEEPEST} levels deep"))
        if event.anchor is not None:
            self._anchors[event.anchor] = None  # known, not finished: an alias would be a circle
        self._stack.append(_Open(Node(span, empty), event.anchor))

    def _close(self, end: Span) -> None:
        done = self._stack.pop()
        span = done.node.span
        done.node.span = Span(span.line, span.column, end.end_line, end.end_column)
        for source in done.merged:
            _merge(done.node, source)
        self._place(done.node, done.anchor)

    def _alias(self, event: AliasEvent) -> None:
        span = _span(event)
        name = event.anchor or ""
        known = self._anchors.get(name)
        if known is None:
            circle = name in self._anchors
            said = "this alias stands for something it is itself part of"
            if not circle:  # perhaps a password: its text is not repeated
                said = "this alias was never anchored; quote a text that begins with `*`"
            raise Unreadable(Flaw(span, said))
        self._expanded += known.size
        if self._expanded > MOST_EXPANDED or len(self._stack) + known.height > DEEPEST:
            said = f"aliases stand for more than {MOST_EXPANDED} values, or nest too deep"
            raise Unreadable(Flaw(span, said))
        self._place(known, None)

    def _place(self, node: Node, anchor: str | None) -> None:
        """Put a finished value where it belongs."""
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._stack:
            self.root = node
            return
        top = self._stack[-1]
        if isinstance(top.node.value, list):
            top.node.value.append(node)
            grown(top.node, node)
        elif top.key is None:
            top.key = self._key(node)
        else:
            (key, span), top.key = top.key, None
            self._enter(top, key, span, node)

    def _key(self, node: Node) -> tuple[str, Span]:
        if isinstance(node.value, list | dict):
            raise Unreadable(Flaw(node.span, "a key must be plain text"))
        if node.value is None:
            self.flaws.append(Flaw(node.span, "a key must be text, and this one is empty"))
        return node.text, node.span

    def _enter(self, top: _Open, key: str, span: Span, node: Node) -> None:
        held = top.node.value
        assert isinstance(held, dict)
        plain = span.end_column - span.column == 2  # `"<<"` in quotes is a key like any other
        if key == "<<" and plain:
            self._merge_later(top, node)
        elif key in held:
            first = held[key].key.line
            self.flaws.append(Flaw(span, f"this key is given twice, first on line {first}"))
        else:
            held[key] = Entry(span, node)
            grown(top.node, node)

    def _merge_later(self, top: _Open, node: Node) -> None:
        """Merged entries come after the mapping's own, so the own ones win."""
        sources = node.value if isinstance(node.value, list) else [node]
        if all(isinstance(source.value, dict) for source in sources):
            top.merged.extend(sources)
        else:
            self.flaws.append(Flaw(node.span, "`<<` merges mappings, and this is none"))

    def _scalar(self, event: ScalarEvent, span: Span) -> Scalar:
        self._check_tag(event.tag, span)
        if event.implicit[0] and event.tag is None:
            return scalar_of(event.value)
        return str(event.value)

    def _check_tag(self, tag: str | None, span: Span) -> None:
        if tag is not None and tag not in _PLAIN_TAGS:
            said = "tags are not used here; quote a text that begins with `!`"
            self.flaws.append(Flaw(span, said))


def _merge(node: Node, source: Node) -> None:
    assert isinstance(node.value, dict) and isinstance(source.value, dict)
    for key, entry in source.value.items():
        if key not in node.value:
            node.value[key] = entry
            grown(node, entry.node)


def scalar_of(text: str) -> Scalar:
    """A plain scalar by the core schema of YAML 1.2 (10.3.2): no yes/no, no 1:30. Hexadecimal
    and octal numbers, which no setting needs, stay text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) or _NOT_FINITE.fullmatch(text):
        return float(text.replace(".inf", "inf").replace(".nan", "nan"))
    return text


def _span(event: Event) -> Span:
    start, end = event.start_mark, event.end_mark
    if start is None or end is None:  # not with events that come from a text
        return Span(1, 1, 1, 2)
    return Span(start.line + 1, start.column + 1, end.line + 1, end.column + 1)
