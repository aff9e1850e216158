"""Stand between a client on stdin and a gateway that may be away, or still starting.

Implements `conversation.Far`. Requests pass as they are, in either era; what clients begin
with is answered within a second, from what was seen last if it has to be.
"""

import asyncio
from typing import Protocol

import msgspec

from gateway.edge.stdio.conversation import Asked
from gateway.edge.stdio.footing import Footing
from gateway.edge.stdio.legacy import LegacySide
from gateway.edge.stdio.modern import ModernSide
from gateway.eras.absent import Away, Slow
from gateway.eras.modern.envelope import is_enveloped
from gateway.eras.seen import KEPT, LISTS
from gateway.protocol import methods
from gateway.protocol.errors import GatewayError, wire_code
from gateway.protocol.jsonrpc import (
    Failure,
    Message,
    Notification,
    Request,
    Result,
    decode,
    encode,
)


class Patience(msgspec.Struct, frozen=True):
    """Seconds that the first questions wait for the gateway's own answer."""

    known: float
    """Where the last answer is remembered."""
    unknown: float
    """Where it is not: many clients read lists once, so an empty one is the worse answer."""


class Side(Protocol):
    """How one era's requests are served by the gateway."""

    leaving_cancels: bool

    def revision_of(self, request: Request) -> str: ...
    def expect(self, request: Request) -> None:
        """This one is going to be exchanged: what comes behind it may depend on it."""

    async def exchange(self, asked: Asked) -> bytes: ...
    def stand_in(self, request: Request, away: Away) -> bytes:
        """The answer while the gateway is away."""

    async def hear(self, message: Message, line: bytes) -> None: ...
    async def cancel(self, asked: Asked, line: bytes) -> None: ...
    def announce(self, method: str) -> None:
        """This list is another one than the client was told."""


class Bridge:
    def __init__(self, footing: Footing, patience: Patience) -> None:
        self._legacy, self._modern = LegacySide(footing), ModernSide(footing)
        self._work, self._keeping = footing.work, footing.keeping
        self._learnt = footing.learnt
        self._patience = patience

    @property
    def takes_arrays(self) -> bool:
        return self._legacy.takes_arrays

    async def answer(self, asked: Asked) -> bytes | None:
        side = self._side(asked.request)
        if asked.request.method in KEPT:
            return await self._soon(side, asked)
        try:
            return await side.exchange(asked)
        except Away as away:
            return side.stand_in(asked.request, away)

    async def hear(self, message: Message, line: bytes) -> None:
        modern = isinstance(message, Notification) and is_enveloped(message.params)
        await (self._modern if modern else self._legacy).hear(message, line)

    def leaving_cancels(self, request: Request) -> bool:
        return self._side(request).leaving_cancels

    async def cancel(self, asked: Asked, line: bytes) -> None:
        await self._side(asked.request).cancel(asked, line)

    async def leave(self) -> None:
        """The client has gone."""
        await self._legacy.leave()

    def _side(self, request: Request) -> Side:
        return self._modern if is_enveloped(request.params) else self._legacy

    # --- what clients begin with ---

    async def _soon(self, side: Side, asked: Asked) -> bytes:
        """The gateway's answer if it comes soon. One that comes later is kept, and if it says
        something else than the client was told, the client hears so."""
        request = asked.request
        side.expect(request)
        known = request.method not in LISTS or self._keeping.seen.find(
            request.method, side.revision_of(request)
        )
        wait_s = self._patience.known if known else self._patience.unknown
        exchange = self._work.start(self._exchanged(side, asked))
        try:
            await asyncio.wait({exchange}, timeout=wait_s)
        except asyncio.CancelledError:
            exchange.cancel()
            raise
        if exchange.done():
            got, _ = exchange.result()
            return got if isinstance(got, bytes) else side.stand_in(request, got)
        exchange.add_done_callback(lambda done: self._late(side, request, done))
        return side.stand_in(request, Slow())

    async def _exchanged(self, side: Side, asked: Asked) -> tuple[bytes | Away, bool]:
        """The answer, and whether it is new."""
        try:
            answer = await side.exchange(asked)
            return answer, self._learn(side, asked.request, answer)
        except Away as away:
            return away, False
        except GatewayError as error:
            failure = Failure(asked.request.id, wire_code(error), error.message)
            return encode(failure), False

    def _late(
        self, side: Side, request: Request, done: "asyncio.Task[tuple[bytes | Away, bool]]"
    ) -> None:
        if not done.cancelled() and done.exception() is None:
            _, is_new = done.result()
            if is_new and request.method in LISTS:
                side.announce(request.method)

    def _learn(self, side: Side, request: Request, answer: bytes) -> bool:
        message = decode(answer)
        if not isinstance(message, Result):
            return False
        if request.method == methods.LIST_TOOLS:
            self._learnt.page(message.result, first="cursor" not in request.params)
        return self._keeping.keep(request, side.revision_of(request), message.result)
