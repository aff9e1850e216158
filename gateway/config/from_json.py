"""Read JSON into a document, tolerating what clients' files hold: comments, trailing commas.

A reader of our own because the files must be marked like YAML, and YAML is not quite a superset
(tabs, surrogate pairs, comments).
"""

import re
from bisect import bisect_right
from json import JSONDecodeError, loads

from gateway.config.document import (
    DEEPEST,
    Document,
    Entry,
    Flaw,
    Node,
    Scalar,
    Span,
    Unreadable,
    grown,
)

_BREAK = re.compile("\r\n|[\n\r]")
_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_][\w.-]*")
_WORDS: dict[str, Scalar] = {"true": True, "false": False, "null": None}
_SURROGATE = re.compile("[\ud800-\udfff]")
_QUOTES = 'keys and texts stand in double quotes (")'
_LONGEST_NUMBER = 40
"""Digits; Python itself refuses to read numbers of thousands."""


def read_json(text: str) -> Document:
    """Read one JSON value (RFC 8259, comments and trailing commas allowed).

    `text` has no byte order mark. Raises `Unreadable` at the first place that is not JSON.
    """
    reading = _Reading(text)
    root = reading.whole()
    return Document(tuple(_BREAK.split(text)), root, tuple(reading.flaws))


class _Reading:
    """Descends into the text; `_at` is how far it has come."""

    def __init__(self, text: str) -> None:
        self.flaws: list[Flaw] = []
        self._text = text
        self._at = 0
        self._line_starts = [0, *(found.end() for found in _BREAK.finditer(text))]

    def whole(self) -> Node:
        self._skip()
        root = self._value(0)
        self._skip()
        if self._at < len(self._text):
            raise self._stopped("expected the end of the file; are these two configurations?")
        return root

    def _value(self, depth: int) -> Node:
        start, head = self._at, self._text[self._at : self._at + 1]
        if depth > DEEPEST:
            raise self._stopped(f"nested more than {DEEPEST} levels deep")
        if head in {"{", "["}:
            self._at += 1
            node = Node(self._span(start), {} if head == "{" else [])
            (self._object if head == "{" else self._array)(node, depth)
            node.span = self._span(start)
            return node
        text, value = self._scalar(head)
        return Node(self._span(start), value, text)

    def _scalar(self, head: str) -> tuple[str, Scalar]:
        if head == '"':
            text = self._string()
            return text, text
        if found := _NUMBER.match(self._text, self._at):
            if len(found[0]) > _LONGEST_NUMBER:
                raise self._stopped("a number with too many digits")
            self._at = found.end()
            return found[0], loads(found[0])
        found = _WORD.match(self._text, self._at)
        if found and found[0] in _WORDS:
            self._at = found.end()
            return found[0], _WORDS[found[0]]
        raise self._stopped(_instead_of_a_value(head))

    def _object(self, node: Node, depth: int) -> None:
        assert isinstance(node.value, dict)
        while not self._ends("}"):
            start = self._at
            if (head := self._text[start : start + 1]) != '"':
                raise self._stopped(_QUOTES if head == "'" else 'expected `"key":`')
            key, span = self._string(), self._span(start)
            self._skip()
            if self._text[self._at : self._at + 1] != ":":
                raise self._stopped("expected `:` after the key")
            self._at += 1
            self._skip()
            child = self._value(depth + 1)
            if key in node.value:
                first = node.value[key].key.line
                self.flaws.append(Flaw(span, f"this key is given twice, first on line {first}"))
            else:
                node.value[key] = Entry(span, child)
                grown(node, child)
            self._comma("}")

    def _array(self, node: Node, depth: int) -> None:
        assert isinstance(node.value, list)
        while not self._ends("]"):
            child = self._value(depth + 1)
            node.value.append(child)
            grown(node, child)
            self._comma("]")

    def _ends(self, closing: str) -> bool:
        self._skip()
        if self._text[self._at : self._at + 1] != closing:
            return False
        self._at += 1
        return True

    def _comma(self, closing: str) -> None:
        self._skip()
        following = self._text[self._at : self._at + 1]
        if following == ",":
            self._at += 1
        elif following != closing:
            raise self._stopped(f"expected `,` or `{closing}`")

    def _string(self) -> str:
        found = _STRING.match(self._text, self._at)
        if found is None:
            raise self._stopped("the text that starts here is not closed on its line")
        text = found[0][1:-1]
        try:
            if "\\" in text:
                text = str(loads(found[0], strict=False))  # a raw tab is no reason to refuse
        except JSONDecodeError:
            raise self._stopped("this text holds a `\\` that JSON does not know") from None
        if _SURROGATE.search(text):
            raise self._stopped("this text holds half of a surrogate pair")
        self._at = found.end()
        return text

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at
        if self._text.startswith("/*", self._at):
            raise self._stopped("the comment that starts here never ends")

    def _stopped(self, problem: str) -> Unreadable:
        if self._at >= len(self._text):
            problem = "the file ends too early; is a closing bracket missing?"
        return Unreadable(Flaw(self._span(self._at, self._at + 1), problem))

    def _span(self, start: int, end: int | None = None) -> Span:
        return Span(*self._place(start), *self._place(self._at if end is None else end))

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1


def _instead_of_a_value(head: str) -> str:
    if head == "'":
        return _QUOTES
    return "expected a value: text in quotes, a number, true, false, null, { or ["
