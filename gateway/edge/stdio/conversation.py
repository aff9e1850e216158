"""Hold a conversation on stdin: which lines are messages, who is served, who has given up.

Knows neither how requests are served nor by whom: that is its `Far` end.
Source: 2025-11-25 and 2026-07-28, basic/transports, "stdio"; JSON-RPC 2.0.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from gateway.edge.stdio.mouth import Mouth
from gateway.edge.stdio.work import Work
from gateway.protocol import methods
from gateway.protocol.errors import GatewayError, InvalidMessage, Throttled, wire_code
from gateway.protocol.framing import LineSplitter, Oversized
from gateway.protocol.jsonrpc import (
    STRICT,
    Failure,
    Message,
    Notification,
    Request,
    RequestId,
    decode,
    decode_batch,
    encode,
    value,
)

LINE_BYTES = 16 * 2**20
"""A message may be as long as this."""
MOST_REQUESTS = 1024
MOST_BYTES = 64 * 2**20
"""Of requests that are being served: further ones are refused, so that an answer or a
cancellation behind them is still heard."""

_ID = rb'("[^"\\]{0,100}"|-?\d{1,18})'
_ID_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*' + _ID + rb"\s*,")
_ID_LAST = re.compile(rb',\s*"id"\s*:\s*' + _ID + rb"\s*\}\s*\Z")

Say = Callable[[bytes | None], Coroutine[Any, Any, None]]
"""Say an answer; None: there is none to be said."""


@dataclass(slots=True, eq=False)
class Asked:
    """One request of the client. `line`: the message as it came, on one line."""

    request: Request
    line: bytes
    given_up: bool = False
    """The client no longer wants the answer."""
    task: "asyncio.Task[None] | None" = None


class Far(Protocol):
    """Whoever serves the client."""

    @property
    def takes_arrays(self) -> bool:
        """The client's revision knows arrays of messages."""

    async def answer(self, asked: Asked) -> bytes | None:
        """The JSON-RPC answer to one request; None: there is nothing to be said. What is
        said ahead of it is said by the far end itself."""

    async def hear(self, message: Message, line: bytes) -> None:
        """Take in what needs no answer: in the order it came."""

    def leaving_cancels(self, request: Request) -> bool:
        """To stop serving this request is all that it takes to cancel it."""

    async def cancel(self, asked: Asked, line: bytes) -> None:
        """Otherwise: the client has given up, and this line says so."""


class Conversation:
    """Takes in bytes as they come (`feed`); what it begins runs in the tasks it is given."""

    def __init__(self, far: Far, mouth: Mouth, work: Work) -> None:
        self._far = far
        self._mouth = mouth
        self._work = work
        self._splitter = LineSplitter(LINE_BYTES)
        self._serving: dict[RequestId, Asked] = {}
        self._bytes = 0
        self._in_turn = asyncio.Lock()
        self._count = 0

    @property
    def serving(self) -> list[Asked]:
        """Requests without an answer so far, as far as their ids are told apart."""
        return list(self._serving.values())

    def feed(self, data: bytes) -> None:
        for line in self._splitter.feed(data):
            self._take(line)

    def finish(self) -> None:
        """The client says no more; a last line may lack its end."""
        for line in self._splitter.finish():
            self._take(line)

    # --- lines ---

    def _take(self, line: bytes | Oversized) -> None:
        if isinstance(line, Oversized):
            said = f"This message of {line.size} bytes is longer than {LINE_BYTES}"
            self._refuse(InvalidMessage(said, request_id=_id_in(line)))
        elif line.lstrip(b" \t")[:1] == b"[":
            self._take_array(line)
        else:
            try:
                self._take_message(decode(line, STRICT), line, self._say)
            except GatewayError as error:
                self._refuse(error)
                self._pass_on(error)

    def _take_array(self, line: bytes) -> None:
        """An array: 2025-03-26 alone has them. Its answers come as an array, too."""
        try:
            if not self._far.takes_arrays:
                raise InvalidMessage("An array is not accepted here: send one message a line")
            items = [bytes(item) for item in decode_batch(line)]
            if not items:
                raise InvalidMessage("An array must not be empty")
            messages = [(decode(item, STRICT), item) for item in items]
        except GatewayError as error:
            self._refuse(error)
            return
        together = Together(sum(isinstance(each, Request) for each, _ in messages), self._say)
        for message, item in messages:
            self._take_message(message, item, together.say)

    def _take_message(self, message: Message, line: bytes, say: Say) -> None:
        match message:
            case Request():
                self._ask(Asked(message, line), say)
            case Notification(methods.CANCELLED, params):
                self._cancel(value(params, "requestId"), line)
            case _ if self._has_room(len(line)):
                self._work.start(self._hear(message, line))

    def _pass_on(self, error: GatewayError) -> None:
        """What cannot be read may have been an answer: whoever waits for it need not."""
        if error.request_id is not None:
            said = f"The client's answer cannot be read: {error.message}"
            failure = Failure(error.request_id, error.code, said)
            self._take_message(failure, encode(failure), self._say)

    def _refuse(self, error: GatewayError) -> None:
        failure = Failure(error.request_id, error.code, error.message)
        self._work.start(self._mouth.say(encode(failure)))

    # --- requests ---

    def _ask(self, asked: Asked, say: Say) -> None:
        if not self._has_room(len(asked.line)):
            error = Throttled("Too many requests at once: wait for some of them to be answered")
            self._work.start(say(encode(Failure(asked.request.id, error.code, error.message))))
            return
        self._count += 1
        self._bytes += len(asked.line)
        self._serving[asked.request.id] = asked
        asked.task = self._work.start(self._serve(asked, say))
        asked.task.add_done_callback(lambda _: self._served(asked))

    async def _serve(self, asked: Asked, say: Say) -> None:
        try:
            answer = await self._far.answer(asked)
        except GatewayError as error:
            answer = encode(Failure(asked.request.id, wire_code(error), error.message))
        except Exception:
            await say(encode(Failure(asked.request.id, -32603, "Internal error")))
            raise
        await say(None if asked.given_up else answer)

    def _served(self, asked: Asked) -> None:
        """However it ended: a task that is cancelled early runs nothing of its own."""
        self._count -= 1
        self._bytes -= len(asked.line)
        if self._serving.get(asked.request.id) is asked:  # the client may use an id twice
            del self._serving[asked.request.id]

    def _cancel(self, id_: Any, line: bytes) -> None:
        asked = self._serving.get(id_) if isinstance(id_, str | int) else None
        if asked is None or asked.given_up:
            return
        asked.given_up = True
        if self._far.leaving_cancels(asked.request):
            if asked.task is not None:
                asked.task.cancel()
        else:
            self._work.start(self._far.cancel(asked, line))

    # --- the rest ---

    async def _say(self, message: bytes | None) -> None:
        if message is not None:
            await self._mouth.say(message)

    async def _hear(self, message: Message, line: bytes) -> None:
        self._count += 1
        self._bytes += len(line)
        try:
            async with self._in_turn:
                with suppress(GatewayError):  # what needs no answer gets none
                    await self._far.hear(message, line)
        finally:
            self._count -= 1
            self._bytes -= len(line)

    def _has_room(self, more: int) -> bool:
        return self._count < MOST_REQUESTS and self._bytes + more <= MOST_BYTES


class Together:
    """The answers to one array, said as one when all of them are there."""

    def __init__(self, awaited: int, say: Say) -> None:
        self._awaited = awaited
        self._say = say
        self._answers: list[bytes] = []

    async def say(self, answer: bytes | None) -> None:
        self._awaited -= 1
        if answer is not None:
            self._answers.append(answer)
        if not self._awaited and self._answers:
            await self._say(b"[" + b",".join(self._answers) + b"]")


def _id_in(line: Oversized) -> RequestId | None:
    """The id of a message that is too long: clients write it first or, mostly, last."""
    found = _ID_FIRST.match(line.head) or _ID_LAST.search(line.tail)
    if found is None:
        return None
    id_: RequestId = msgspec.json.decode(found[1])
    return id_
