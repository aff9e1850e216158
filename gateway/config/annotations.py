"""What annotations of the model say beyond the type: how a value is checked, and its JSON Schema.

pydantic reads them, in `judge` and `schema`, through two methods it knows by name. They are
written without it: whoever only holds a configuration need not load what reads one. Its core
schemas are plain mappings; `pydantic_core.core_schema` describes them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

JsonSchema = dict[str, Any]
CoreSchema = dict[str, Any]


class Misfit(ValueError):
    """A value does not fit. The text says what would, and never repeats the value."""


class Inner(Protocol):
    """Makes the schema of what an annotation stands around."""

    def __call__(self, source: Any, /) -> Any: ...
    def generate_schema(self, source: Any, /) -> Any: ...


class Situation(Protocol):
    """What a check is told of the document that is being read."""

    @property
    def context(self) -> Any: ...


@dataclass(frozen=True, slots=True, eq=False)  # by identity: `Annotated` wants it hashable
class Written:
    """A kind of value: `read` turns what the file says into what the program uses.

    It raises `Misfit`. The JSON Schema beside it says the same, so that editor and loader cannot
    drift apart.
    """

    read: Callable[[Any], object]
    schema: JsonSchema

    def __get_pydantic_core_schema__(self, _: object, __: Inner) -> CoreSchema:
        return {"type": "function-plain", "function": _plain(self.read)}

    def __get_pydantic_json_schema__(self, _: CoreSchema, __: Inner) -> JsonSchema:
        return dict(self.schema)


@dataclass(frozen=True, slots=True, eq=False)
class Before:
    """What the file says is brought to the form that the type takes, or refused: `Misfit`."""

    check: Callable[[Any], object]
    schema: JsonSchema | None = None
    """In place of the type's own."""

    def __get_pydantic_core_schema__(self, source: object, inner: Inner) -> CoreSchema:
        return {
            "type": "function-before",
            "function": _plain(self.check),
            "schema": inner(source),
        }

    def __get_pydantic_json_schema__(self, core: CoreSchema, inner: Inner) -> JsonSchema:
        return dict(inner(core) if self.schema is None else self.schema)


@dataclass(frozen=True, slots=True, eq=False)
class After:
    """What the type made of it is looked at again, with the `context` of the reading."""

    check: Callable[[Any, Situation], object]
    more: JsonSchema = field(default_factory=dict)
    """Beside what the type's own schema says."""

    def __get_pydantic_core_schema__(self, source: object, inner: Inner) -> CoreSchema:
        return {
            "type": "function-after",
            "function": {"type": "with-info", "function": self.check},
            "schema": inner(source),
        }

    def __get_pydantic_json_schema__(self, core: CoreSchema, inner: Inner) -> JsonSchema:
        return {**inner(core), **self.more}


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """Several types, of which `choose` names one; errors carry that name in their path."""

    choose: Callable[[Any], str]
    types: Mapping[str, type]

    def __get_pydantic_core_schema__(self, _: object, inner: Inner) -> CoreSchema:
        choices = {name: inner.generate_schema(one) for name, one in self.types.items()}
        return {"type": "tagged-union", "choices": choices, "discriminator": self.choose}


def _plain(check: Callable[[Any], object]) -> CoreSchema:
    return {"type": "no-info", "function": check}
