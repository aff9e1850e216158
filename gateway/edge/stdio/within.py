"""Serve a client on stdin by a gateway in this very process, without HTTP in between.

Implements `conversation.Far` over `eras.sides.Entrance`, which is given what it would have
read from headers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from gateway.edge.stdio.conversation import Asked
from gateway.edge.stdio.mouth import Mouth
from gateway.eras.legacy.absent import revision_of, takes_arrays
from gateway.eras.manner import Learnt
from gateway.eras.modern.envelope import is_enveloped
from gateway.eras.modern.over_http import ModernManner
from gateway.eras.seen import LISTS
from gateway.eras.sides import Answer, Entrance, Posted, Stream, Tracks
from gateway.protocol import methods
from gateway.protocol.headers import SESSION, HeaderParam
from gateway.protocol.jsonrpc import Message, Notification, Request, encode_line, value

MAY_DROP = frozenset({methods.PROGRESS, methods.MESSAGE})

Mirrored = Callable[[], Mapping[str, tuple[HeaderParam, ...]]]
"""The arguments that clients over HTTP repeat in headers, by tool."""


class Made:
    """Headers made from a message (`eras.sides.Headers`)."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = {name.lower(): text for name, text in headers.items()}

    def get(self, name: str, default: str | None = None, /) -> str | None:
        return self._headers.get(name.lower(), default)

    def getall(self, name: str, default: Sequence[str] = (), /) -> Sequence[str]:
        held = self._headers.get(name.lower())
        return default if held is None else (held,)


@dataclass(frozen=True, slots=True)
class Aloud:
    """What is said ahead of an answer (`eras.sides.Reply`): as lines, at once."""

    mouth: Mouth

    def push(self, message: Notification | Request) -> None:
        may_drop = isinstance(message, Notification) and message.method in MAY_DROP
        self.mouth.push(encode_line(message), may_drop=may_drop)

    def say(self, message: bytes) -> None:
        self.mouth.push(message)

    def keep(self, tracks: Tracks) -> None:
        """Nothing is resumed: a pipe that breaks is the end."""

    @property
    def streaming(self) -> bool:
        return True

    def stream(self) -> None:
        """It is one."""

    def end_with_client(self) -> None:
        """Requests end when the conversation does."""


class Standing:
    """What the gateway says to the session (`eras.sides.Stream`)."""

    def __init__(self, mouth: Mouth) -> None:
        self._mouth = mouth
        self._ended = asyncio.Event()

    def push(self, message: bytes, id_: str | None = None, *, may_drop: bool = False) -> None:
        if not self._ended.is_set():
            self._mouth.push(message, may_drop=may_drop)

    def prime(self, id_: str, retry_ms: int) -> None:
        """Nothing is resumed."""

    def end(self, last: bytes | None = None, id_: str | None = None) -> None:
        if last is not None:
            self.push(last)
        self._ended.set()

    def expect(self) -> None:
        """An answer comes on the same pipe, whatever becomes of this stream."""

    def expect_no_more(self) -> None:
        """The same."""

    async def wait_ended(self) -> None:
        await self._ended.wait()


class Within:
    def __init__(
        self,
        entrance: Entrance,
        mouth: Mouth,
        mirrored: Mirrored,
        settled: Callable[[], Awaitable[None]],
    ) -> None:
        """`settled` returns as soon as lists are worth reading: soon, in any case."""
        self._entrance, self._mouth = entrance, mouth
        self._mirrored, self._settled = mirrored, settled
        self._session: dict[str, str] = {}
        self._revision = revision_of(None)
        self._stream: Stream | None = None

    @property
    def takes_arrays(self) -> bool:
        return takes_arrays(self._revision)

    async def answer(self, asked: Asked) -> bytes | None:
        request = asked.request
        if request.method in LISTS:
            await self._settled()
        if request.method == methods.INITIALIZE:
            await self.leave()
        answer = await self._post(request, asked.line)
        if SESSION in answer.headers:
            self._session = {SESSION: answer.headers[SESSION]}
            self._revision = revision_of(value(request.params, "protocolVersion"))
        return answer.body

    async def hear(self, message: Message, line: bytes) -> None:
        await self._post(message, line)
        if self._stream is None and self._session:
            found = await self._entrance.get(
                Made(self._session), None, lambda: Standing(self._mouth)
            )
            self._stream = None if isinstance(found, Answer) else found

    def leaving_cancels(self, request: Request) -> bool:
        return is_enveloped(request.params)

    async def cancel(self, asked: Asked, line: bytes) -> None:
        await self._post(None, line)

    async def leave(self) -> None:
        """The client has gone, or begins anew."""
        headers, stream = Made(self._session), self._stream
        self._session, self._stream = {}, None
        if stream is not None:
            self._entrance.left(headers, None, stream)
            stream.end()
        if headers.get(SESSION) is not None:
            await self._entrance.delete(headers, None)

    async def _post(self, message: Message | None, line: bytes) -> Answer:
        headers = self._session
        if isinstance(message, Request | Notification) and is_enveloped(message.params):
            headers = ModernManner(Learnt(dict(self._mirrored()))).headers(message)
        posted = Posted(Made(headers), line, None, accepts_stream=True)
        return await self._entrance.post(posted, Aloud(self._mouth))
