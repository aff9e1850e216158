"""Drive an Exchange over a transport, on asyncio. The reader never waits for a client.

Strict outward, tolerant inward: whatever a server writes, the stream goes on,
and whoever waits for an answer that cannot be had is told so at once.
"""

import asyncio
import re
from asyncio import Future
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from gateway.calls.call import Call
from gateway.calls.notices import Progress
from gateway.downstream.transports.failures import NotTaken
from gateway.downstream.transports.transport import Departure, NotReading
from gateway.eras.sides import Answered
from gateway.protocol import methods
from gateway.protocol.errors import (
    BadAnswer,
    GatewayError,
    InvalidMessage,
    NotJson,
    ServerFailure,
    ServerUnavailable,
)
from gateway.protocol.exchange import Exchange
from gateway.protocol.framing import HEAD_BYTES, TAIL_BYTES, answered_id
from gateway.protocol.jsonrpc import (
    Failure,
    Fields,
    Json,
    Message,
    Notification,
    Request,
    Result,
    decode,
    encode_line,
    request_line,
    value,
)
from gateway.protocol.meta import PROGRESS_TOKEN

log = structlog.get_logger()

NOISE_SHOWN = 5
"""How many stray lines of one process are logged; the rest are only counted."""

_SURROGATE = re.compile(
    rb"""
    (?<!\\) ((?:\\\\)*)                          # backslashes that stand for themselves
    (?: (\\u[dD][89abAB][0-9a-fA-F]{2} \\u[dD][c-fC-F][0-9a-fA-F]{2})  # a pair: one character
      |  \\u[dD][89a-fA-F][0-9a-fA-F]{2} )       # half of one, from text that was cut anywhere
    """,
    re.VERBOSE,
)


class Pipe(Protocol):
    """A transport, as far as a link needs one."""

    @property
    def writable(self) -> bool: ...
    def send(self, line: bytes) -> None: ...
    async def wait_writable(self) -> None: ...


@dataclass(slots=True, eq=False)
class Opened:
    """Implements `eras.sides.OpenRequest`."""

    link: "Link"
    id: int
    answer: "Future[Answered]"
    call: Call | None

    def cancel(self, reason: str) -> None:
        self.link.give_up(self, reason)


@dataclass(slots=True, eq=False)
class Link:
    """Implements `eras.sides.Channel`, and `StreamSink` for the transport below it."""

    server: str
    on_asked: Callable[[Request], None]
    on_told: Callable[[Notification], None]
    on_closed: Callable[[Departure], None]
    pipe: Pipe | None = None
    noise: int = 0
    """Lines that were no JSON-RPC message."""
    dropped: int = 0
    """Notifications and answers the server did not take; the first is logged."""
    departure: Departure | None = None
    """Nothing new is taken any more, and why."""
    is_closed: bool = False
    """Nothing will come any more either."""
    about: int | None = None
    """Our id of the request on whose stream the message came that is being handled; None
    where the stream belongs to no request."""
    exchange: Exchange[Opened] = field(default_factory=Exchange)
    on_missed: Callable[[], None] = lambda: None
    """Changes may have been told that nobody heard."""

    # --- Channel ---

    async def open(self, method: str, params: Fields, call: Call | None = None) -> Opened:
        pipe = self._pipe()
        if not pipe.writable:
            await pipe.wait_writable()
            pipe = self._pipe()
        id_ = self.exchange.next_id()
        if call is not None:
            params = {**params, "_meta": {**params.get("_meta", {}), PROGRESS_TOKEN: id_}}
        line = request_line(id_, method, params)
        opened = Opened(self, id_, asyncio.get_running_loop().create_future(), call)
        try:
            pipe.send(line)
        except NotReading as error:
            if self.departure is not None:
                raise self._gone(sent=False) from None
            raise ServerUnavailable(
                f"The server {self.server} does not read its input: {error}",
                server=self.server,
                retryable=True,
            ) from None
        self.exchange.wait(id_, opened)
        return opened

    def calls(self) -> Sequence[Call]:
        if self.about is not None:
            opened = self.exchange.find(self.about)
            return () if opened is None or opened.call is None else (opened.call,)
        return [o.call for o in self.exchange.waiting.values() if o.call is not None]

    def tell(self, method: str, params: Fields) -> None:
        self._send(Notification(method, params))

    def bid(self, method: str, params: Fields) -> None:
        if self.departure is None:
            self._send(Request(self.exchange.unheard_id(), method, params))

    def answer(self, request: Request, result: Fields) -> None:
        self._send(Result(request.id, result))

    def refuse(self, request: Request, code: int, message: str) -> None:
        self._send(Failure(request.id, code, message))

    def give_up(self, opened: Opened, reason: str) -> None:
        if self.exchange.forget(opened.id):
            opened.answer.cancel()
            self.tell(methods.CANCELLED, {"requestId": opened.id, "reason": reason})

    # --- StreamSink ---

    def line(self, line: bytes, about: int | None = None) -> None:
        self.about = about
        try:
            self._receive(_tolerant(line), len(line))
        except NotJson as error:
            # Not only garbage: NaN in a result, or more nesting than anybody reads.
            self._unusable(line, error, answered_id(line[:HEAD_BYTES], line[-TAIL_BYTES:]))
        except InvalidMessage as error:
            self._unusable(line, error, error.request_id)
        finally:
            self.about = None

    def oversized(self, size: int, head: bytes, tail: bytes, about: int | None = None) -> None:
        opened = None
        id_ = answered_id(head, tail)
        if id_ is not None:
            opened = self.exchange.settle(id_)
        elif b'"method"' not in head:  # whose it was cannot be told, unless one alone waits
            opened = self._only() if about is None else self.exchange.settle(about)
        log.warning("line.dropped", server=self.server, bytes=size, known=opened is not None)
        if opened is not None:
            text = f"The answer of {self.server} is too long ({size} bytes; see limits.line)"
            _fail(opened, BadAnswer(text, data={"bytes": size}))

    def awaits(self, about: int) -> bool:
        return self.exchange.find(about) is not None

    def failed(self, about: int, error: GatewayError) -> None:
        opened = self.exchange.settle(about)
        if opened is not None:
            _fail(opened, error)

    def missed(self) -> None:
        self.on_missed()

    def ending(self, cause: Departure) -> None:
        self.departure = cause

    def closed(self, cause: Departure) -> None:
        self.departure, self.is_closed = cause, True
        if self.noise > NOISE_SHOWN:
            log.warning("lines.ignored", server=self.server, lines=self.noise)
        for opened in self.exchange.close():
            _fail(opened, self._gone(sent=True))
        self.on_closed(cause)

    # --- inside ---

    def _receive(self, message: Message, size: int) -> None:
        if isinstance(message, Result):  # nearly always
            opened = self.exchange.settle(message.id)
            if opened is not None and not opened.answer.done():
                opened.answer.set_result(Answered(message.result, size))
            return
        match message:
            case Notification(methods.PROGRESS, params):
                self._progressed(params)
            case Notification():
                self.on_told(message)
            case Request():
                self.on_asked(message)
            case Failure(id_, code, text, data):
                known = self.about if id_ is None else id_
                opened = self._only() if known is None else self.exchange.settle(known)
                if opened is not None:
                    _fail(opened, ServerFailure(code, text, data=data))

    def _progressed(self, params: Fields) -> None:
        opened = self.exchange.find(value(params, PROGRESS_TOKEN))
        if opened is not None and opened.call is not None:
            kept = {key: held for key, held in params.items() if key != PROGRESS_TOKEN}
            opened.call.emit(Progress(kept))

    def _unusable(self, line: bytes, error: GatewayError, id_: Json) -> None:
        """A message gone wrong: its caller, if known, need not wait for more."""
        opened = None if id_ is None else self.exchange.settle(id_)
        if opened is None:
            self._noise(line, error.message)
        else:
            _fail(opened, BadAnswer(f"{self.server} sent an unusable answer: {error.message}"))

    def _noise(self, line: bytes, why: str) -> None:
        self.noise += 1
        if self.noise <= NOISE_SHOWN:
            shown = line[:200].decode(errors="replace")
            log.warning("line.ignored", server=self.server, line=shown, why=why)

    def _only(self) -> Opened | None:
        sole = self.exchange.sole()
        return None if sole is None else self.exchange.settle(sole.id)

    def _pipe(self) -> Pipe:
        if self.departure is not None or self.pipe is None:
            raise self._gone(sent=False)
        return self.pipe

    def _send(self, message: Message) -> None:
        if not self.is_closed and self.pipe is not None:
            try:
                self.pipe.send(encode_line(message))
            except NotReading as error:
                self.dropped += 1
                if self.dropped == 1:
                    log.warning("message.dropped", server=self.server, why=str(error))

    def _gone(self, *, sent: bool) -> ServerUnavailable:
        cause = self.departure
        reason = cause.reason if cause else "is not connected"
        said = "\n".join(cause.stderr[-5:]) if cause else ""
        text = f"The server {self.server} {reason}" + (f". It last wrote:\n{said}" if said else "")
        data = {"exit_code": cause.code, "signal": cause.signal} if cause else None
        made = ServerUnavailable if sent else NotTaken
        return made(text, server=self.server, retryable=not sent, data=data)


def _tolerant(line: bytes) -> Message:
    try:
        return decode(line)
    except NotJson:
        mended = _SURROGATE.sub(_paired, line.decode(errors="replace").encode())
        if mended == line:
            raise
        return decode(mended)  # only its text was broken: better a U+FFFD than no answer


def _paired(found: re.Match[bytes]) -> bytes:
    return found[0] if found[2] else found[1] + rb"\ufffd"


def _fail(opened: Opened, error: GatewayError) -> None:
    if not opened.answer.done():
        opened.answer.set_exception(error)
