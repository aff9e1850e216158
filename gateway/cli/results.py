"""What a tool was called with, and what it answered, as a person types and reads it."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from gateway.cli.screen import is_terminal

WIDE = 80
HOW = "Arguments are one JSON object, - for one on standard input, or NAME=VALUE pairs"


def arguments(words: Sequence[str]) -> dict[str, Any]:
    """The arguments in the words of a command line. Raises `click.UsageError`."""
    if not words:
        return {}
    if len(words) == 1 and (words[0] == "-" or words[0].lstrip().startswith(("{", "["))):
        text = sys.stdin.read() if words[0] == "-" else words[0]
        return _object(text)
    return dict(_pair(word) for word in words)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"These arguments are not JSON: {error}") from None
    if not isinstance(found, dict):
        raise click.UsageError(f"{HOW}; this is no JSON object.")
    return found


def _pair(word: str) -> tuple[str, Any]:
    name, equals, text = word.partition("=")
    if not equals or not name:
        raise click.UsageError(f"{HOW}; {word!r} is none of these.")
    try:
        return name, json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return name, text


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON value")


def show_result(result: Mapping[str, Any]) -> None:
    """Print a result: texts as they are, the rest by what it is; a failure on standard error."""
    failed = bool(result.get("isError"))
    shown = "\n".join(blocks(result))
    if is_terminal() or failed:
        shown = harmless(shown)
    if failed and sys.stderr.isatty():
        shown = click.style(shown, fg="red")
    click.echo(shown, err=failed)


def blocks(result: Mapping[str, Any]) -> Iterator[str]:
    """Each block of the content as text, and the structured content unless a text says it."""
    content = result.get("content")
    given = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    structured = result.get("structuredContent")
    for block in given:
        yield _block(block)
    texts = [_parsed(block.get("text")) for block in given if block.get("type") == "text"]
    if structured is not None and structured not in texts:
        yield _json(structured)
    if not given and structured is None:
        yield "(no content)"


def _block(block: Mapping[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return _text(str(block.get("text", "")))
        case "image" | "audio" as kind:
            size = len(str(block.get("data", ""))) * 3 // 4
            return f"[{kind}, {block.get('mimeType', 'of no known type')}, {size} bytes]"
        case "resource_link":
            return f"[resource {block.get('uri')}: {block.get('title') or block.get('name')}]"
        case "resource":
            return _resource(block.get("resource"))
        case kind:
            return f"[{kind}]"


def _resource(held: object) -> str:
    if not isinstance(held, dict):
        return "[resource]"
    title = f"[resource {held.get('uri')}]"
    return f"{title}\n{_text(held['text'])}" if isinstance(held.get("text"), str) else title


def _text(text: str) -> str:
    """JSON of any length is easier to read indented; a pipe gets it as it came."""
    parsed = _parsed(text) if is_terminal() and text.lstrip()[:1] in ("{", "[") else None
    return text if parsed is None else _json(parsed)


def _json(value: Any) -> str:
    short = json.dumps(value, ensure_ascii=False)
    return short if len(short) < WIDE else json.dumps(value, indent=2, ensure_ascii=False)


def _parsed(text: object) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def harmless(text: str) -> str:
    """Lines that cannot steer a terminal."""
    from gateway.observe.visible import visible_lines

    return visible_lines(text, longest=len(text))
