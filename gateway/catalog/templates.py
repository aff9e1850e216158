"""Whether a URI can have come from a URI template, told in linear time.

RFC 6570 to level 3 (the operators of level 3, and the modifiers of level 4 as far as
they change what may stand there). Templates come from servers and URIs from clients, so
nothing here may take more than linear time: a regular expression with several gaps does.
Instead a template becomes steps, and each step turns the places reached so far into the
places reached next, in one pass over the URI.
"""

import re
from dataclasses import dataclass

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_VARIABLES = re.compile(r"[A-Za-z0-9_.%-]+(\*|:\d{1,4})?(,[A-Za-z0-9_.%-]+(\*|:\d{1,4})?)*")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_PLAIN = re.compile(r"[!-$&-~]*")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_OPERATORS = "+#./;?&"
_TEXT = frozenset(range(0x21, 0x7F))


@dataclass(frozen=True, slots=True)
class _Gap:
    """Where a variable stands: one or more characters, none of `without`."""

    without: frozenset[str]
    lead: str = ""
    """What the operator puts before the values."""
    optional: bool = False
    """With an operator of its own lead, an undefined variable leaves nothing behind."""


_ANYTHING: frozenset[str] = frozenset()
_SEGMENT = frozenset("/")
_GAPS = {
    "": _Gap(_SEGMENT),
    "+": _Gap(_ANYTHING),
    "#": _Gap(_ANYTHING, "#", optional=True),
    ".": _Gap(_SEGMENT, ".", optional=True),
    "/": _Gap(_SEGMENT, "/", optional=True),
    ";": _Gap(_SEGMENT, ";", optional=True),
    "?": _Gap(frozenset("#"), "?", optional=True),
    "&": _Gap(frozenset("#"), "&", optional=True),
}
_SEGMENTS = _Gap(_ANYTHING, "/", optional=True)


class BadTemplate(ValueError):
    """Not a URI template; the message says where it fails."""


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled template. `steps` alternate between literal text and gaps."""

    steps: tuple[str | _Gap, ...]

    def begins(self, uri: str) -> bool:
        """Whether `uri`, given in its `normal` form, begins as this template does."""
        first = self.steps[0] if self.steps else ""
        return not isinstance(first, str) or uri.startswith(first)

    def matches(self, uri: str) -> bool:
        """Whether `uri`, given in its `normal` form, can be an expansion of this template."""
        if not self.begins(uri):
            return False
        reached = bytearray(len(uri) + 1)
        reached[0] = 1
        for step in self.steps:
            reached = _past(step, uri, reached)
        return bool(reached[-1])


def compile_template(text: str) -> Template:
    """Raises `BadTemplate` for text that is no template."""
    steps: list[str | _Gap] = []
    at = 0
    for found in _EXPRESSION.finditer(text):
        _add_literal(steps, text[at : found.start()])
        steps.append(_gap(found[1]))
        at = found.end()
    _add_literal(steps, text[at:])
    return Template(tuple(steps))


def _add_literal(steps: list[str | _Gap], text: str) -> None:
    if "{" in text or "}" in text:
        raise BadTemplate("a brace without its partner")
    if text:
        steps.append(normal(text))


def _gap(expression: str) -> _Gap:
    operator = expression[:1] if expression[:1] in _OPERATORS else ""
    variables = expression.removeprefix(operator) if operator else expression
    if not _VARIABLES.fullmatch(variables):
        raise BadTemplate(f"{{{expression}}} names no variable")
    if operator == "/" and ("*" in variables or "," in variables):
        return _SEGMENTS
    return _GAPS[operator]


def normal(uri: str) -> str:
    """One spelling for URIs that mean the same (RFC 3986, 6.2.2.1-2): escapes of characters
    that need none are undone, the others written in capitals; what may not stand in a URI
    unescaped is escaped."""
    if _PLAIN.fullmatch(uri):
        return uri
    escaped = "".join(
        chr(byte) if byte in _TEXT else f"%{byte:02X}"
        for byte in uri.encode("utf-8", "surrogatepass")
    )
    return _ESCAPE.sub(_unescaped, escaped)


def _unescaped(found: re.Match[str]) -> str:
    byte = int(found[1], 16)
    return chr(byte) if byte in _UNRESERVED else found[0].upper()


def _past(step: str | _Gap, uri: str, reached: bytearray) -> bytearray:
    if isinstance(step, str):
        return _past_literal(step, uri, reached)
    start = _past_literal(step.lead, uri, reached) if step.lead else reached
    beyond = _past_gap(step.without, uri, start)
    return _either(beyond, reached) if step.optional else beyond


def _either(one: bytearray, other: bytearray) -> bytearray:
    both = int.from_bytes(one) | int.from_bytes(other)
    return bytearray(both.to_bytes(len(one)))


def _past_literal(text: str, uri: str, reached: bytearray) -> bytearray:
    beyond = bytearray(len(reached))
    at = uri.find(text)
    while at >= 0:
        beyond[at + len(text)] |= reached[at]
        at = uri.find(text, at + 1)
    return beyond


def _past_gap(without: frozenset[str], uri: str, reached: bytearray) -> bytearray:
    beyond = bytearray(len(reached))
    at = reached.find(1, 0, len(uri))
    while at >= 0:
        stops = [stop for character in without if (stop := uri.find(character, at)) >= 0]
        end = min(stops, default=len(uri))
        beyond[at + 1 : end + 1] = b"\1" * (end - at)
        at = reached.find(1, end + 1, len(uri))
    return beyond
