"""The JSON Schema of the configuration, for editors: what `onegate schema` prints.

Made from the model, then brought to what the loader really takes: `${...}` wherever a scalar is,
empty sections, numbers in `args` and `env`, a client's `mcpServers`. A test holds schema and
loader together. What only the loader can know (doubled keys, variables that are not set,
addresses that clash) is not in it.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter

from gateway.config.clients import LOCAL_KINDS, REMOTE_KINDS, URL_KEYS
from gateway.config.document import Path
from gateway.config.explanations import explanations
from gateway.config.model import (
    Auth,
    Calls,
    Config,
    HttpServer,
    Limits,
    Log,
    Names,
    Section,
    StdioServer,
    Token,
    ToolRule,
)
from gateway.config.shape import fields_of, may_be_empty
from gateway.config.units import spelt_size

JsonSchema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_REFERENCE: JsonSchema = {
    "type": "string",
    "pattern": r"\$\{[^}]*\}",
    "description": "A text with ${VAR}, ${VAR:-default} or ${file:PATH} in it.",
}
_TO_REFERENCE = {"$ref": "#/$defs/Reference"}
_AS_TEXT = ["string", "number", "boolean"]


_PLACES: Mapping[type[Section], Path] = {
    Config: (),
    StdioServer: ("servers", "NAME"),
    HttpServer: ("servers", "NAME"),
    ToolRule: ("tools", 0),
    Auth: ("auth",),
    Token: ("auth", "tokens", 0),
    Calls: ("calls",),
    Limits: ("limits",),
    Names: ("names",),
    Log: ("log",),
}
"""Where each section of the model stands."""


def schema() -> JsonSchema:
    """The whole schema, as JSON values."""
    made = TypeAdapter(Config).json_schema(by_alias=True)
    sections: JsonSchema = made.pop("$defs")
    sections["Config"] = made
    sections = {
        one.__name__: _section(sections[one.__name__], place, explanations(one))
        for one, place in _PLACES.items()
    }
    root = sections.pop("Config")
    _open_auth(root)
    _open_servers(root, sections)
    root["properties"]["$schema"] = {"type": "string", "description": "Where this schema is."}
    root["patternProperties"] = {"^x-": {"description": "Yours: anchors, notes. Not read."}}
    sections["Reference"] = _REFERENCE
    return {"$schema": DIALECT, "title": "onegate", **root, "$defs": sections}


def _section(section: JsonSchema, place: Path, told: Mapping[str, str]) -> JsonSchema:
    """A section with its properties as they may be written."""
    properties = {
        key: _property((*place, key), made, told.get(key, ""))
        for key, made in section["properties"].items()
        if not key.startswith("(")  # what the model adds for itself
    }
    return {
        "type": "object",
        "description": section["description"],
        "properties": properties,
        "required": section.get("required", []),
        "additionalProperties": False,
    }


def _property(path: Path, made: JsonSchema, said: str) -> JsonSchema:
    """A property with its description, and its default as a person would write it."""
    told: JsonSchema = {"description": said} if said else {}
    default = _spelt(path[-1], made.get("default"))
    if default is not None and "Default:" not in said:
        told["default"] = default
    bare = {name: value for name, value in made.items() if name not in _TOLD}
    written = _written(bare)
    if may_be_empty(path):
        written = {"anyOf": [*written.get("anyOf", [written]), {"type": "null"}]}
    return {**written, **told}


_TOLD = ("title", "default", "description")


def _written(made: JsonSchema) -> JsonSchema:
    """The same values as a person may write them, `${...}` included."""
    if "anyOf" in made:
        choices = [_written(one) for one in made["anyOf"] if one != {"type": "null"}]
        flat = [inner for one in choices for inner in one.get("anyOf", [one])]
        unique = [one for at, one in enumerate(flat) if one not in flat[:at]]
        return unique[0] if len(unique) == 1 else {"anyOf": unique}
    if "patternProperties" in made:
        patterns = {key: _written(one) for key, one in made["patternProperties"].items()}
        return {"type": "object", "patternProperties": patterns, "additionalProperties": False}
    if made.get("type") == "array":
        return {**made, "items": _written(made["items"])}
    if made.get("format") == "path":
        return {"type": "string", "minLength": 1}
    if "$ref" in made or _takes_any_text(made):
        return made
    return {"anyOf": [made, _TO_REFERENCE]}


def _takes_any_text(made: JsonSchema) -> bool:
    """Whether `${...}` fits as it is: a text, and no pattern that would refuse it."""
    if made.get("type") != "string" or "enum" in made or "const" in made:
        return False
    return re.search(made.get("pattern", ""), "${file:X}") is not None


def _spelt(key: str | int, default: object) -> object:
    """A default as a person would write it; None if it says nothing."""
    if key in ("listen", "admin"):
        address = fields_of(Config)[str(key)].default
        return str(address[0] if isinstance(address, tuple) else address)
    if key in ("line", "body", "header") and isinstance(default, int):
        return spelt_size(default)
    if isinstance(default, float):
        return f"{default:g}s" if math.isfinite(default) else "off"
    return None if default in ([], "") else default


def _open_auth(root: JsonSchema) -> None:
    auth = root["properties"]["auth"]
    auth["anyOf"] = [{"const": "none"}, {"$ref": auth.pop("$ref")}, _TO_REFERENCE]


def _open_servers(root: JsonSchema, sections: JsonSchema) -> None:
    """Texts may be bare numbers; clients' files may hold keys for the client."""
    stdio, http = sections["StdioServer"], sections["HttpServer"]
    stdio["properties"]["args"]["anyOf"][0]["items"] = {"type": _AS_TEXT}
    for mapping in (stdio["properties"]["env"], http["properties"]["headers"]):
        patterns = mapping["anyOf"][0]["patternProperties"]
        mapping["anyOf"][0]["patternProperties"] = {one: {"type": _AS_TEXT} for one in patterns}
    servers = root["properties"]["servers"]
    (name,) = servers["anyOf"][0]["patternProperties"]
    either = {
        "if": {"required": ["url"]},
        "then": {"$ref": "#/$defs/HttpServer"},
        "else": {"$ref": "#/$defs/StdioServer"},
    }
    servers["anyOf"][0]["patternProperties"] = {name: either}
    sections["ClientServer"] = _client_server(stdio, http)
    root["properties"]["mcpServers"] = {
        "anyOf": [
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/ClientServer"}},
            {"type": "null"},
        ],
        "description": "The same as `servers`, as MCP clients write it.",
    }
    root["not"] = {"required": ["servers", "mcpServers"]}
    root["if"] = {"required": ["mcpServers"]}
    root["else"] = {"propertyNames": {"pattern": f"^(x-.*|{'|'.join(_top_level())})$"}}
    root["additionalProperties"] = True


def _client_server(stdio: JsonSchema, http: JsonSchema) -> JsonSchema:
    kinds = [*LOCAL_KINDS, *REMOTE_KINDS]
    how = {"description": "How it is reached.", "enum": [*kinds, "auto"]}
    url = http["properties"]["url"]
    return {
        "type": "object",
        "description": "A server as an MCP client's own file describes it.",
        "properties": {
            **http["properties"],
            **stdio["properties"],
            **dict.fromkeys(URL_KEYS, url),
            "type": how,
            "transport": how,
        },
        "anyOf": [
            {"required": ["command"], "not": {"required": ["url"]}},
            *({"required": [key], "not": {"required": ["command"]}} for key in URL_KEYS),
        ],
        "additionalProperties": True,
    }


def _top_level() -> Iterator[str]:
    yield r"\$schema"
    yield from fields_of(Config)
