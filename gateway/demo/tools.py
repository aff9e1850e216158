"""Tools: what they are called, what they take, and how a call becomes a result."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

Json = dict[str, Any]
"""A JSON object, as `json.loads` gives it."""

HARMLESS = {"readOnlyHint": True, "openWorldHint": False}
"""Annotations of a tool that changes nothing and reaches nothing outside."""


class Refused(Exception):
    """The tool cannot do what was asked. The text is for the model, which may try again."""


class Answer(NamedTuple):
    """What a tool found: the structured content, and the URIs of resources it has changed."""

    content: Json
    changed: tuple[str, ...] = ()


class Tool(NamedTuple):
    """`definition` is what clients are shown, word for word; `run` takes its arguments by name."""

    definition: Json
    run: Callable[..., Answer]

    def answer(self, arguments: Json) -> Answer:
        """Call the tool. Raises `Refused` if it, or its schema, does not like the arguments."""
        return self.run(**checked(arguments, self.definition["inputSchema"]))


def succeeded(answer: Answer) -> Json:
    """A `tools/call` result. The text repeats the content for clients that read only text."""
    text = json.dumps(answer.content, ensure_ascii=False)
    return {"content": [{"type": "text", "text": text}], "structuredContent": answer.content}


def failed(refused: Refused) -> Json:
    """A `tools/call` result that says what went wrong.

    This is no JSON-RPC error: those end in a log, whereas the model sees a result.
    """
    return {"content": [{"type": "text", "text": str(refused)}], "isError": True}


def checked(arguments: Json, schema: Json) -> Json:
    """The arguments, with defaults filled in, or `Refused` with everything that is wrong.

    Knows the part of JSON Schema that these servers use: an object of strings and integers
    with `required`, `default`, `enum`, `minimum` and `maximum`, and nothing beyond.
    """
    properties: Json = schema["properties"]
    missing = [f"{name} is missing" for name in schema.get("required", ()) if name not in arguments]
    surplus = [
        f"{_shown(name)} is not an argument of this tool"
        for name in arguments
        if name not in properties
    ]
    wrong = [
        f"{name} must be {_described(rule)}, not {_shown(arguments[name])}"
        for name, rule in properties.items()
        if name in arguments and not _fits(arguments[name], rule)
    ]
    if complaints := missing + surplus + wrong:
        raise Refused(f"The arguments are not right: {'; '.join(complaints)}.")
    defaults = {name: rule["default"] for name, rule in properties.items() if "default" in rule}
    return {name: _plain(value) for name, value in (defaults | arguments).items()}


def _fits(value: Any, rule: Json) -> bool:
    value = _plain(value)
    if rule["type"] == "string":
        return isinstance(value, str) and value in rule.get("enum", [value])
    # To Python `True` is an integer; to JSON Schema it is not.
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return is_integer and rule.get("minimum", value) <= value <= rule.get("maximum", value)


def _plain(value: Any) -> Any:
    """JSON has one kind of number: `6.0` is the integer 6."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _described(rule: Json) -> str:
    if "enum" in rule:
        return f"one of {', '.join(rule['enum'])}"
    if rule["type"] == "string":
        return "a string"
    return f"an integer from {rule['minimum']} to {rule['maximum']}"


def _shown(value: Any) -> str:
    """A wrong value, short enough to be read in a sentence."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
