"""Set up the log: structlog, JSON to programs, readable to people, on standard error.

Standard output belongs to commands and to the `stdio` endpoint. One processor
makes every value safe to show; what libraries say through `logging` takes the
same way. Recipe: structlog's documentation, "Performance".
"""

import logging
import os
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Literal

import msgspec
import structlog
from structlog.typing import EventDict, Processor

from gateway.observe.record import Timestamps
from gateway.observe.stream import LineStream
from gateway.observe.visible import visible, visible_lines

Level = Literal["debug", "info", "warning", "error"]
Form = Literal["auto", "text", "json"]
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
MEMBERS = 32
"""Of a list or mapping given as a value; and three levels of them."""
INT = 2**63
"""Larger integers are written as text: JSON readers would round them, and our writer refuses."""

_encode = msgspec.json.Encoder().encode
_COLOURS = {"debug": "2", "info": "32", "warning": "33", "error": "31", "critical": "1;31"}


def configure_logs(
    level: Level, form: Form, *, wall: Callable[[], float], fd: int = 2
) -> LineStream:
    """Point structlog and `logging` at `fd`. Called once, by the command.

    Returns the stream, so that the record of calls can share it (`sinks.log_sink`).
    """
    for_people = form == "text" or (form == "auto" and os.isatty(fd))
    stream = LineStream(fd, for_people=for_people)
    render = Text(coloured=os.isatty(fd)) if for_people else as_json
    structlog.configure(
        processors=processors(wall, render),
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=lambda *_: _Lines(stream),
        cache_logger_on_first_use=True,
    )
    logging.root.handlers = [FromLogging()]
    # Libraries talk about themselves at info; that is ours to read only when debugging.
    logging.root.setLevel(LEVELS[level] if level == "debug" else max(LEVELS[level], 30))
    logging.captureWarnings(True)
    return stream


def processors(wall: Callable[[], float], render: Processor) -> list[Processor]:
    """From what a line of code said to the bytes of a line of log."""
    timestamp = Timestamps()

    def stamped(_logger: object, method: str, event: EventDict) -> EventDict:
        return {**event, "ts": timestamp(wall()), "level": _level(method)}

    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.format_exc_info,
        stamped,
        cleaned,
        render,
    ]


def cleaned(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Nothing anybody else wrote can end a line, steer a terminal or hide."""
    for key, value in event.items():
        if type(value) is str:
            event[key] = visible(value) if key != "exception" else visible_lines(value)
        else:
            event[key] = _shown(value, 3)
    return event


def as_json(_logger: object, _method: str, event: EventDict) -> bytes:
    """One JSON object a line, in the order ts, level, event, then as given."""
    ordered = {"ts": event.pop("ts"), "level": event.pop("level"), "event": event.pop("event")}
    return _encode({**ordered, **event}) + b"\n"


class Text:
    """For people: time, level, event, then what belongs to it; a traceback indented below."""

    def __init__(self, *, coloured: bool) -> None:
        self._coloured = coloured

    def __call__(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> bytes:
        at, level, said = event.pop("ts")[11:-1], event.pop("level"), event.pop("event")
        traceback = event.pop("exception", None)
        fields = " ".join(f"{self._dim(key + '=')}{_quoted(held)}" for key, held in event.items())
        line = f"{self._dim(at)} {self._paint(level, _COLOURS.get(level, '0'))} {said}  {fields}"
        if traceback is not None:
            # Indented, so that no line of it can pass for one of the log.
            line = line + "\n" + "\n".join(f"    | {one}" for one in traceback.split("\n"))
        return line.rstrip().encode(errors="replace") + b"\n"

    def _dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self._coloured else text

    def _paint(self, level: str, code: str) -> str:
        return f"\x1b[{code}m{level:<7}\x1b[0m" if self._coloured else f"{level:<7}"


class FromLogging(logging.Handler):
    """What libraries say through `logging` (aiohttp, asyncio), as `library.spoke`."""

    def __init__(self) -> None:
        super().__init__()
        self._log = structlog.get_logger()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # arguments that do not fit the format
            message = str(record.msg)
        self._log.log(
            _rounded(record.levelno),
            "library.spoke",
            logger=record.name,
            message=message,
            **({"exc_info": record.exc_info} if record.exc_info else {}),
        )


class _Lines:
    """The end of the chain: structlog wants an object with a method for each level."""

    def __init__(self, stream: LineStream) -> None:
        self.debug = self.info = self.warning = self.error = self.critical = stream.write


def _level(method: str) -> str:
    return "error" if method == "exception" else method


def _rounded(level: int) -> int:
    return max((known for known in LEVELS.values() if known <= level), default=10)


def _shown(value: object, depth: int) -> object:
    match value:
        case None | bool() | float():
            return value
        case int() if -INT < value < INT:
            return value
        case Mapping() if depth:
            items = list(value.items())[:MEMBERS]
            return {visible(str(key), 64): _shown(held, depth - 1) for key, held in items}
        case list() | tuple() | set() | frozenset() if depth:
            return [_shown(held, depth - 1) for held in list(value)[:MEMBERS]]
    return visible(str(value))


def _quoted(held: object) -> str:
    text = held if isinstance(held, str) else _encode(held).decode()
    # Quotes show where a value ends: `a level=error` cannot pass for a field.
    return _encode(text).decode() if not text or set(text) & set(' ="') else text
