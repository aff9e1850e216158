"""Serve a client on stdin by a gateway in this very process, without HTTP in between.

Implements `way.Way` over `eras.sides.Entrance`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from gateway.edge.stdio.mouth import Mouth
from gateway.edge.stdio.way import Hear, Lapsed, Posting, Returned, addressed
from gateway.eras.aloud import Aloud
from gateway.eras.seen import LISTS
from gateway.eras.sides import Answer, Entrance, Posted
from gateway.protocol import methods
from gateway.protocol.headers import SESSION

CONCERNED = frozenset({*LISTS, *methods.NAMED_BY})
"""Requests about what servers offer."""


class Made:
    """Headers made from a message (`eras.sides.Headers`)."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = {name.lower(): text for name, text in headers.items()}

    def get(self, name: str, default: str | None = None, /) -> str | None:
        return self._headers.get(name.lower(), default)

    def getall(self, name: str, default: Sequence[str] = (), /) -> Sequence[str]:
        held = self._headers.get(name.lower())
        return default if held is None else (held,)


class Standing:
    """What the gateway says (`eras.sides.Stream`): as lines, at once."""

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

    def leave(self) -> None:
        self.end()

    def when_old(self, aged: Callable[[], None]) -> None:
        """No age is too old for a pipe."""

    def expect(self) -> None:
        """An answer comes on the same pipe, whatever becomes of this stream."""

    def expect_no_more(self) -> None:
        """The same."""

    async def wait_ended(self) -> None:
        await self._ended.wait()


class Within:
    """The way to a gateway that may still be starting: whoever comes early waits."""

    def __init__(self, mouth: Mouth) -> None:
        self._mouth = mouth
        self._open = asyncio.Event()
        self._entrance: Entrance | None = None
        self._settled: Callable[[], Awaitable[None]] | None = None
        self._is_settled: Callable[[], bool] = lambda: False

    @property
    def is_open(self) -> bool:
        return self._open.is_set()

    @property
    def has_begun(self) -> bool:
        """It is there, and so are its servers."""
        return self._is_settled()

    def lead_to(
        self,
        entrance: Entrance,
        settled: Callable[[], Awaitable[None]],
        is_settled: Callable[[], bool],
    ) -> None:
        """The gateway is there. `settled` returns when it is known what servers offer, or soon;
        `is_settled` says whether it is."""
        self._entrance, self._settled, self._is_settled = entrance, settled, is_settled
        self._open.set()

    async def post(self, message: Posting, hear: Hear | None = None) -> Returned:
        """`hear` is for gateways that come and go: this one stays as long as we do."""
        entrance, request = await self._there(), message.request
        if self._settled is not None and request is not None and request.method in CONCERNED:
            await self._settled()
        posted = Posted(Made(message.headers), message.line, None, accepts_stream=True)
        answer = await entrance.post(posted, Aloud(Standing(self._mouth)))
        if answer.status == 404 and SESSION in message.headers:
            raise Lapsed
        body = answer.body or b""
        if request is not None:
            body = addressed(body, request) or body
        return Returned(body, {name.lower(): text for name, text in answer.headers.items()})

    async def listen(self, headers: Mapping[str, str]) -> None:
        entrance, made = await self._there(), Made(headers)
        found = await entrance.get(made, None, lambda: Standing(self._mouth))
        if isinstance(found, Answer):
            raise Lapsed
        try:
            await found.wait_ended()
        finally:
            entrance.left(made, None, found)

    async def delete(self, headers: Mapping[str, str]) -> None:
        if self._entrance is not None:
            await self._entrance.delete(Made(headers), None)

    async def _there(self) -> Entrance:
        await self._open.wait()
        assert self._entrance is not None
        return self._entrance
