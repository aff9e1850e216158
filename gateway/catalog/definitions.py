"""What a definition must be like to be offered: one bad tool must not spoil a list.

Strict clients (the TypeScript SDK for one) refuse a whole list for one member of a wrong
type. What they would choke on is left out; what can be mended without changing its meaning
is mended; everything else stays the bytes it came as, unknown members included.
Source: schema/REVISION/schema.ts, Tool, Prompt, Resource, ResourceTemplate.
"""

import msgspec

from gateway.catalog.entries import Kind
from gateway.protocol.errors import InvalidMessage
from gateway.protocol.jsonrpc import Fields, Json, Raw, as_bytes, raw, shallow, value

NAMED_BY = {
    Kind.TOOL: "name",
    Kind.PROMPT: "name",
    Kind.RESOURCE: "uri",
    Kind.TEMPLATE: "uriTemplate",
}
"""The member that tells one entry of a kind from another."""

_REQUIRED = {
    Kind.TOOL: ("name",),
    Kind.PROMPT: ("name",),
    Kind.RESOURCE: ("uri", "name"),
    Kind.TEMPLATE: ("uriTemplate", "name"),
}
_TEXT, _OBJECT, _ARRAY = b'"', b"{", b"["
_WORDS = {_TEXT: "a text", _OBJECT: "an object", _ARRAY: "a list"}
_EVERY = {"title": _TEXT, "description": _TEXT, "icons": _ARRAY, "_meta": _OBJECT}
_OPTIONAL = {
    Kind.TOOL: _EVERY | {"outputSchema": _OBJECT, "annotations": _OBJECT, "execution": _OBJECT},
    Kind.PROMPT: _EVERY | {"arguments": _ARRAY},
    Kind.RESOURCE: _EVERY | {"mimeType": _TEXT, "annotations": _OBJECT},
    Kind.TEMPLATE: _EVERY | {"mimeType": _TEXT, "annotations": _OBJECT},
}
_NULL = b"n"
_SCHEMA_TYPE = raw("object")


class Flaw(ValueError):
    """Why a definition cannot be offered, in words for a log."""


class Sound(msgspec.Struct, frozen=True):
    """A definition that can be offered, and its own name or URI."""

    name: str
    definition: Fields
    mended: str = ""
    """What had to be put right, in words; mostly nothing."""


def sound(kind: Kind, definition: Fields) -> Sound:
    """Raises `Flaw` for what no client may be shown."""
    for member in _REQUIRED[kind]:
        if _first(definition.get(member)) != _TEXT:
            raise Flaw(f"{member} is no text")
    name = _own_name(definition, NAMED_BY[kind])
    nulls = _check_optional(kind, definition)
    mended = [f"{member} was null" for member in nulls]
    if nulls:
        definition = {key: held for key, held in definition.items() if key not in nulls}
    if kind is Kind.TOOL and (typed := _typed_schema(definition)) is not None:
        definition = {**definition, "inputSchema": typed}
        mended.append("inputSchema had no type")
    return Sound(name, definition, ", ".join(mended))


def _own_name(definition: Fields, member: str) -> str:
    try:
        name = value(definition, member)
    except InvalidMessage:
        raise Flaw(f"{member} cannot be read") from None
    if not isinstance(name, str) or not name:
        raise Flaw(f"{member} is empty")
    return name


def _check_optional(kind: Kind, definition: Fields) -> list[str]:
    nulls = []
    for member, wanted in _OPTIONAL[kind].items():
        if member not in definition:
            continue
        first = _first(definition[member])
        if first == _NULL:
            nulls.append(member)
        elif first != wanted:
            raise Flaw(f"{member} is not {_WORDS[wanted]}")
    return nulls


def _typed_schema(tool: Fields) -> Fields | None:
    """The input schema with the type it lacks; None if there is nothing to mend.

    Arguments are always an object, so the missing word changes nothing that a schema says.
    """
    schema = shallow(tool.get("inputSchema"))
    if schema is None:
        raise Flaw("inputSchema is not an object")
    if "type" not in schema:
        return {"type": _SCHEMA_TYPE, **schema}
    if _same_json(schema["type"], _SCHEMA_TYPE):
        return None
    raise Flaw("inputSchema does not describe an object")


def _same_json(held: Json, wanted: Raw) -> bool:
    return (held if isinstance(held, Raw) else raw(held)) == wanted


def _first(held: Json) -> bytes:
    """The first byte of a value's JSON, which tells its type."""
    if isinstance(held, Raw):
        return bytes(memoryview(held)[:1])
    return as_bytes(held)[:1]
