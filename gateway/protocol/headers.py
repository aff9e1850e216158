"""The headers that repeat parts of a message for whoever routes without reading bodies.

Names, the codec of their values, and arguments that a tool wants mirrored into a header
(`x-mcp-header`). Headers are checked against the body and never trusted instead of it.
Source: 2026-07-28, basic/transports/streamable-http, "Request Metadata".
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from gateway.protocol.errors import HeaderMismatch
from gateway.protocol.jsonrpc import Fields, Json, as_bytes, decoded

VERSION = "MCP-Protocol-Version"
METHOD = "Mcp-Method"
NAME = "Mcp-Name"
SESSION = "Mcp-Session-Id"
LAST_EVENT = "Last-Event-ID"
PARAM_PREFIX = "Mcp-Param-"

ANNOTATION = "x-mcp-header"

OPEN, _CLOSE = "=?base64?", "?="
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?|")
_ACCEPTED = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?|")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""`token` of RFC 9110, 5.6.2."""
_NUMBER = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,20})?")
_TYPES = frozenset({"integer", "string", "boolean"})


def encode_value(text: str) -> str:
    """A header value for `text`: itself, or base64 of its UTF-8 between the two markers."""
    marked = text.startswith(OPEN) and text.endswith(_CLOSE)
    if _PLAIN.fullmatch(text) and not marked:
        return text
    return f"{OPEN}{base64.b64encode(text.encode()).decode()}{_CLOSE}"


def decode_value(header: str) -> str:
    """What a header value stands for. Raises `HeaderMismatch` if it is not well formed."""
    inner = len(header) - len(OPEN) - len(_CLOSE)
    if inner >= 0 and header.startswith(OPEN) and header.endswith(_CLOSE):
        return _decode_base64(header[len(OPEN) : -len(_CLOSE)])
    if not _ACCEPTED.fullmatch(header):
        raise HeaderMismatch("a header value holds characters that need the base64 form")
    return header


def _decode_base64(text: str) -> str:
    try:
        plain = binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
        return plain.decode()
    except (ValueError, binascii.Error):
        raise HeaderMismatch("a header value is not base64 of UTF-8 text") from None


# --- arguments mirrored into headers ---------------------------------------------------------


class HeaderParam(msgspec.Struct, frozen=True):
    """An argument that clients repeat in a header: where it stands, and the header's name."""

    path: tuple[str, ...]
    header: str
    """The whole name: `Mcp-Param-Region`."""


class BadAnnotation(ValueError):
    """A tool marks arguments for headers in a way that HTTP clients must reject."""


def header_params(definition: Fields) -> tuple[HeaderParam, ...]:
    """The mirrored arguments of a tool: most have none, and cost a search of their bytes.

    Raises `BadAnnotation`: such a tool must not be offered over HTTP.
    """
    held = definition.get("inputSchema")
    raw = held if isinstance(held, msgspec.Raw) else as_bytes(held)
    text = bytes(raw)
    if b"mcp-header" not in text and b"\\u" not in text:  # the key itself may be escaped
        return ()
    found: dict[str, HeaderParam] = {}
    for path, schema in _annotated(decoded(held)):
        param = _checked(path, schema)
        if param.header.lower() in found:
            raise BadAnnotation(f"{param.header} is given to two arguments")
        found[param.header.lower()] = param
    return tuple(found.values())


def _checked(path: tuple[str, ...] | None, schema: Mapping[str, Any]) -> HeaderParam:
    name = schema[ANNOTATION]
    if not path:
        raise BadAnnotation(f"{ANNOTATION} stands where no argument can be read")
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise BadAnnotation(f"{ANNOTATION} of {'.'.join(path)} is no header name")
    declared = schema.get("type")
    if not isinstance(declared, str) or declared not in _TYPES:
        raise BadAnnotation(f"{'.'.join(path)} is no string, integer or boolean")
    return HeaderParam(path, PARAM_PREFIX + name)


_ONE = (
    "items", "contains", "additionalItems", "additionalProperties", "unevaluatedItems",
    "unevaluatedProperties", "propertyNames", "not", "if", "then", "else", "contentSchema",
)  # fmt: skip
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_NAMED = ("patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
_Found = tuple[tuple[str, ...] | None, Any]


def _annotated(root: Json) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """Every annotated schema in the order written, with its path through `properties`
    alone; None where it cannot be reached so. Values (defaults, examples) are no schemas."""
    waiting: list[_Found] = [((), root)]
    while waiting:
        path, schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        if ANNOTATION in schema:
            yield path, schema
        waiting += reversed([*_reachable(path, schema), *_elsewhere(schema)])


def _reachable(path: tuple[str, ...] | None, schema: Mapping[str, Any]) -> Iterator[_Found]:
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name, inner in properties.items():
            yield (None if path is None else (*path, name)), inner


def _elsewhere(schema: Mapping[str, Any]) -> Iterator[_Found]:
    for key in _ONE:
        yield None, schema.get(key)
    for key in _MANY:
        several = schema.get(key)
        yield from ((None, inner) for inner in several) if isinstance(several, list) else ()
    for key in _NAMED:
        named = schema.get(key)
        yield from ((None, inner) for inner in named.values()) if isinstance(named, dict) else ()


def check_params(
    mirrored: tuple[HeaderParam, ...], arguments: Json, header: Callable[[str], str | None]
) -> None:
    """Hold a call's `Mcp-Param-*` headers against its arguments (None: it has none).

    Raises `HeaderMismatch`, which names the header and never the value.
    """
    if not mirrored:
        return
    body = decoded(arguments)
    for param in mirrored:
        value, sent = _at(body, param.path), header(param.header)
        if value is None and sent is None:
            continue
        if sent is None:
            raise HeaderMismatch(f"{param.header} is missing")
        if value is None or not _same(decode_value(sent), value):
            where = ".".join(param.path)
            raise HeaderMismatch(f"{param.header} does not match the argument {where}")


def param_headers(mirrored: tuple[HeaderParam, ...], arguments: Json) -> dict[str, str]:
    """The `Mcp-Param-*` headers that belong to these arguments, values encoded."""
    body = decoded(arguments) if mirrored else None
    pairs = ((param.header, _at(body, param.path)) for param in mirrored)
    return {name: encode_value(_text(value)) for name, value in pairs if value is not None}


def _at(body: Json, path: tuple[str, ...]) -> str | int | float | None:
    for step in path:
        body = body.get(step) if isinstance(body, Mapping) else None
    return body if isinstance(body, str | int | float) else None


def _text(value: str | int | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def _same(sent: str, value: str | int | float) -> bool:
    if isinstance(value, str | bool) or not _NUMBER.fullmatch(sent):
        return sent == _text(value)
    return Decimal(sent) == Decimal(_text(value))
