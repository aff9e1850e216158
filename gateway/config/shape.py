"""What belongs where in a configuration, read off the model: known keys, open and secret places.

Paths are those of errors: `("servers", "time", "env", "TOKEN")`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

from gateway.config.document import Path
from gateway.config.model import NO_KEYS, Config, HttpServer, Section, Server, StdioServer, key_of

NEVER_EMPTY = frozenset({("listen",), ("auth",), ("auth", "tokens")})
"""Written without a value these are mistakes; an empty `tools:` is merely an empty list."""

SYNONYMS = {
    "arguments": "args",
    "cmd": "command",
    "directory": "cwd",
    "endpoint": "url",
    "environment": "env",
    "envfile": "env_file",
    "exec": "command",
    "httpurl": "url",
    "serverurl": "url",
    "uri": "url",
    "working_directory": "cwd",
}
"""What other programs call our keys, where it is not spelt alike."""


_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_HEADER = re.compile(r"[A-Z][A-Za-z]{0,20}(-[A-Za-z]{1,20}){0,4}")


@dataclass(frozen=True, kw_only=True, repr=False)
class EveryServer(StdioServer, HttpServer):
    """All keys that one server or another may have: a path alone does not tell which it is."""


@dataclass(frozen=True, slots=True)
class Spot:
    """What a path leads to: a section, or `beneath` steps into a field (0 = the field itself)."""

    section: type[Section] | None = None
    field: "Field[Any] | None" = None
    beneath: int = 0


def fields_of(section: type[Section]) -> Mapping[str, "Field[Any]"]:
    """The keys of a section, as they are written."""
    hashable: Any = section  # mypy looks for the __hash__ of its instances
    return _fields(hashable)


@cache
def _fields(section: Any) -> Mapping[str, "Field[Any]"]:
    return {key_of(one.name): one for one in fields(section) if one.name not in NO_KEYS}


def held_by(section: type[Section], key: str) -> tuple[type[Section] | None, bool]:
    """The section a field holds, if it does, and whether it holds many by key or number."""
    return _held(_type(fields_of(section)[key]))


def _type(field: "Field[Any]") -> Any:
    """The type alone, without what is checked beyond it."""
    return get_args(field.type)[0] if get_origin(field.type) is Annotated else field.type


def _is_required(field: "Field[Any]") -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _held(annotation: Any) -> tuple[type[Section] | None, bool]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation, False
    many = get_origin(annotation) is not None and get_origin(annotation) in (tuple, Mapping)
    for inner in get_args(annotation):
        found, _ = _held(inner)
        if found is not None:
            return (EveryServer if issubclass(found, Server) else found), many
    return None, many


def spot(path: Path) -> Spot | None:
    """What a path leads to, or None if it leads beyond what is known."""
    section: type[Section] = Config
    steps = list(path)
    while steps:
        key = str(steps.pop(0))
        field = fields_of(section).get(key)
        if field is None:
            return None
        held, many = held_by(section, key)
        if held is None or (many and not steps):
            return Spot(field=field, beneath=len(steps))
        if many:
            steps.pop(0)
        section = held
    return Spot(section=section)


def is_open(path: Path) -> bool:
    """Whether an error may quote the text there: known, and not marked as a secret."""
    found = spot(path)
    # Known: a list where a text belongs may hold anything.
    return found is not None and found.field is not None and found.field.repr and is_known(path)


def is_open_key(path: Path) -> bool:
    """Whether an error may quote the last key of a path: in a section, a server, a variable,
    a header.

    Those only where they look the part: `env: {hunter2}` has a password for a key.
    """
    found = spot(path[:-1])
    if found is None or found.field is None:
        return found is not None
    if found.beneath or not _is_mapping(found.field.type):
        return False
    usual = _HEADER if "headers" in path[:-1] else _VARIABLE
    return found.field.repr or usual.fullmatch(str(path[-1])) is not None


def _is_mapping(annotation: Any) -> bool:
    return get_origin(annotation) is Mapping or any(map(_is_mapping, get_args(annotation)))


def is_known(path: Path) -> bool:
    """Whether the model has a place there; beyond it, it will refuse the whole."""
    found = spot(path)
    if found is None or found.field is None:
        return found is not None
    return found.beneath <= _held(_type(found.field))[1]


def may_be_empty(path: Path) -> bool:
    """Whether a key without a value means an empty section, mapping or list."""
    found, around = spot(path), spot(path[:-1])
    if found is None or path in NEVER_EMPTY or (around is not None and around.field is not None):
        return False  # a server without a value is a mistake, unlike an empty `servers`
    if found.section is not None:
        return True
    return found.field is not None and not found.beneath and _held(_type(found.field))[1]


def is_required(path: Path) -> bool:
    """Whether a section cannot be without the key."""
    found = spot(path)
    return bool(found and found.field and not found.beneath and _is_required(found.field))


def takes_text(path: Path) -> bool:
    """Whether a bare number or true there is meant as text: `args: [--port, 8080]`."""
    return len(path) == 4 and path[0] == "servers" and path[2] in ("args", "env", "headers")


def nearest(word: str, known: Iterable[str], cutoff: float = 0.65) -> str | None:
    """The known word that a person most likely meant."""
    if (same := SYNONYMS.get(word.lower())) in (known := list(known)):
        return same
    plain = word[:64].lower().replace("-", "_")  # difflib's cost grows with the square
    matches = get_close_matches(plain, known, n=1, cutoff=cutoff)
    longer = [one for one in known if len(one) >= 3 and plain.startswith(one)]  # environment
    return next(iter(matches or longer), None)


def choices(path: Path) -> tuple[str, ...]:
    """The words a setting may be, if it is a choice."""
    found = spot(path)
    return _literals(found.field.type) if found and found.field else ()


def _literals(annotation: Any) -> tuple[str, ...]:
    if get_origin(annotation) is Literal:
        return tuple(get_args(annotation))
    return next((words for one in get_args(annotation) if (words := _literals(one))), ())


def home_of(key: str) -> str | None:
    """Where a key belongs that was written elsewhere: `timeout` belongs to a rule."""
    return _homes().get(key)


@cache
def _homes() -> Mapping[str, str]:
    homes: dict[str, str] = {}
    for key in fields_of(Config):
        held, many = held_by(Config, key)
        where = f"a server under `{key}`" if key == "servers" else f"`{key}`"
        for inner in fields_of(held) if held else ():
            homes.setdefault(inner, "a rule under `tools`" if many and key == "tools" else where)
    homes["longest"] = "a rule under `tools`"  # of the two, the one more likely meant
    return homes
