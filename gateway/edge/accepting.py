"""What a client sends and accepts, read from `Content-Type` and `Accept`. Pure.

Strictness here has locked out real clients, so anything RFC 9110 (12.5.1, 8.3) allows works.
"""

import msgspec

JSON = "application/json"
STREAM = "text/event-stream"


class Accepts(msgspec.Struct, frozen=True):
    """Which of our two media types a client takes."""

    json: bool
    stream: bool
    names_stream: bool
    """It spelt out `text/event-stream`. `*/*` alone allows a stream, but a script that says
    so would rather not see one merely because an answer took its time."""


def accepts(header: str) -> Accepts:
    """Read an `Accept` header; an empty one, like a missing one, allows everything."""
    ranges: dict[str, float] = {}
    for part in header.lower().split(","):
        name, *parameters = part.split(";")
        if name.strip():
            ranges[name.strip()] = _quality(parameters)
    if not ranges:
        return Accepts(json=True, stream=True, names_stream=False)
    return Accepts(
        json=_taken(ranges, JSON),
        stream=_taken(ranges, STREAM),
        names_stream=ranges.get(STREAM, 0.0) > 0,
    )


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 1.0  # unreadable: take it for wanted rather than lock the client out
    return 1.0


def _taken(ranges: dict[str, float], media_type: str) -> bool:
    """The most specific range that covers a type decides (RFC 9110, 12.5.1)."""
    for name in (media_type, media_type.partition("/")[0] + "/*", "*/*"):
        if name in ranges:
            return ranges[name] > 0
    return False


def is_json(content_type: str) -> bool:
    """Whether a `Content-Type` header says JSON, in any case and with any parameters."""
    return content_type.partition(";")[0].strip().lower() == JSON
