"""Hold plain values against the model, and say in our own words where they do not fit.

The model's own messages are not shown: they speak of Python types, and may repeat a value.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, SchemaValidator

from gateway.config.check import contradictions
from gateway.config.complaints import Finding
from gateway.config.document import Path
from gateway.config.model import HTTP, STDIO, Config, HttpServer, StdioServer
from gateway.config.shape import SYNONYMS, choices, fields_of, home_of, nearest, spot
from gateway.config.units import Substituted, expected

_KEY = "[key]"
"""How the model marks a complaint about a key of a mapping."""

_KINDS = {
    "dataclass_type": "expected a mapping (`key: value` lines)",
    "mapping_type": "expected a mapping (`NAME: …` lines)",
    "dict_type": "expected a mapping (`NAME: …` lines)",
    "tuple_type": "expected a list (lines that begin with `- `)",
}


READER = SchemaValidator(TypeAdapter(Config).core_schema, {"hide_input_in_errors": True})
"""Checks values against the model. What it refuses is not in its errors: it may be a secret."""


def judge(
    values: Mapping[str, object], folder: FilePath, home: str | None
) -> tuple[Config | None, list[Finding]]:
    """The configuration that the values spell, or None and what is wrong with them.

    `folder` is where relative paths start, `home` what `~` stands for.
    """
    context = {"folder": folder, "home": home}
    try:
        config = _validated(values, context)
    except ValidationError as error:
        found = [_finding(one, values) for one in error.errors(include_url=False)]
        broken = {one.path[0] for one in found if one.path}
        return None, [*_without_echoes(found), *_early_contradictions(values, broken, context)]
    findings = list(contradictions(config, values))
    return (None if findings else config), findings


def _validated(values: Mapping[str, object], context: Mapping[str, object]) -> Config:
    # By key only: `timeout_s` is a name of the code, not of the file.
    config = READER.validate_python(values, by_alias=True, by_name=False, context=dict(context))
    assert isinstance(config, Config)
    return config


def _early_contradictions(
    values: Mapping[str, object], broken: set[str | int], context: Mapping[str, object]
) -> Iterator[Finding]:
    """Contradictions among the sections that are sound, so that they are not told one run later."""
    sound: dict[str, object] = {
        key: values[key] for key in ("listen", "admin", "auth") if key in values.keys() - broken
    }
    if broken.isdisjoint(("listen", "admin", "auth")):
        yield from contradictions(_validated(sound, context), sound)


def _without_echoes(findings: list[Finding]) -> Iterator[Finding]:
    """`comand` is one mistake: that `command` is missing as well need not be told, nor that a
    list whose only item is wrong lacks an item, nor what a server that is none may have."""
    meant = {(one.path[:-1], _missing(one.meant)) for one in findings if one.meant}
    around = {one.path[:length] for one in findings for length in range(len(one.path))}
    nothing = {one.path for one in findings if one.problem == _missing("url")}
    for one in findings:
        echo = one.problem == str(expected("at least one")) and one.path in around
        echo = echo or (one.path[:-1] in nothing and one.problem.startswith(_NOT_FOR_IT))
        if not echo and (one.path, one.problem) not in meant:
            yield one


def _finding(error: ErrorDetails, values: Mapping[str, object]) -> Finding:
    path: Path = tuple(step for step in error["loc"] if step not in (STDIO, HTTP))
    if path[-1:] == (_KEY,):
        return Finding(path[:-1], _said(error), at_key=True)
    match error["type"]:
        case "unexpected_keyword_argument":
            return _unknown_key(path)
        case "missing":
            return Finding(path[:-1], _missing(str(path[-1])), at_key=True)
        case "literal_error":
            words = choices(path)
            said = "expected one of " + ", ".join(f"`{word}`" for word in words)
            return Finding(path, said, meant=_meant(_at(values, path), words))
        case "value_error":
            return Finding(path, _said(error))
        case kind:
            return Finding(path, _KINDS.get(kind, f"is not valid here ({kind})"))


def _said(error: ErrorDetails) -> str:
    """The words of a `Misfit`, which the model's own message is made around."""
    return str(error["ctx"]["error"])


def _missing(key: str) -> str:
    if key in ("command", "url"):
        return "neither `command` (a program to start) nor `url` (a server elsewhere) is given"
    return f"`{key}` is missing"


_WHOSE = {
    **dict.fromkeys(fields_of(StdioServer).keys() - fields_of(HttpServer).keys(), "command"),
    **dict.fromkeys(fields_of(HttpServer).keys() - fields_of(StdioServer).keys(), "url"),
}
"""The keys that only one kind of server has, and by what that kind is known."""


_NOT_FOR_IT = "not for this server"


def _unknown_key(path: Path) -> Finding:
    key, around = str(path[-1]), spot(path[:-1])
    if len(path) == 3 and path[0] == "servers" and key in _WHOSE:
        said = f"{_NOT_FOR_IT}; only one with `{_WHOSE[key]}` has it"
        return Finding(path, said, at_key=True)
    known = fields_of(around.section) if around and around.section else {}
    if SYNONYMS.get(key) not in known and (home := home_of(key)):
        return Finding(path, f"unknown key here; it belongs to {home}", at_key=True)
    meant = nearest(key, known)
    said = "unknown key"
    if meant is None and known:
        said += "; known: " + ", ".join(known)
    return Finding(path, said, at_key=True, meant=meant)


def _meant(value: object, words: tuple[str, ...]) -> str | None:
    if isinstance(value, str) and not isinstance(value, Substituted):
        return nearest(value, words, 0.6)
    return None


def _at(values: object, path: Path) -> Any:
    for step in path:
        try:
            values = values[step]  # type: ignore[index]  # a miss is an answer
        except (KeyError, IndexError, TypeError):
            return None
    return values
