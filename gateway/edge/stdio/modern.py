"""Requests of modern clients at the gateway: each with the headers it needs, listens kept open.

Source: 2026-07-28, basic/transports; basic/patterns/subscriptions.
"""

import asyncio

from gateway.edge.stdio.backoff import Waits
from gateway.edge.stdio.conversation import Asked
from gateway.edge.stdio.keeping import Keeping
from gateway.edge.stdio.mouth import Mouth
from gateway.edge.stdio.way import Way
from gateway.edge.stdio.work import Work
from gateway.eras.absent import Away
from gateway.eras.manner import Learnt
from gateway.eras.modern.absent import acknowledgement, changes, stand_in, version_of
from gateway.eras.modern.over_http import ModernManner
from gateway.eras.seen import CHANGED_BY
from gateway.protocol import methods
from gateway.protocol.errors import HeaderMismatch
from gateway.protocol.jsonrpc import (
    Failure,
    Fields,
    Message,
    Notification,
    Request,
    Result,
    decode,
    encode,
)


class ModernSide:
    """Serves requests with an envelope (`bridge.Side`)."""

    leaving_cancels = True

    def __init__(
        self, way: Way, mouth: Mouth, work: Work, keeping: Keeping, learnt: Learnt, us: Fields
    ) -> None:
        self._way, self._mouth, self._work = way, mouth, work
        self._keeping, self._us = keeping, us
        self._manner = ModernManner(learnt)
        self._listens: set[Listen] = set()

    def revision_of(self, request: Request) -> str:
        return version_of(request)

    async def exchange(self, asked: Asked) -> bytes:
        """The gateway's answer. Raises `Away`."""
        request = asked.request
        if request.method == methods.LISTEN:
            return await self._listen(asked)
        headers = self._manner.headers(request)
        answer = await self._way.post(headers, asked.line, request)
        if request.method == methods.CALL_TOOL and _mismatches(answer):
            await self._list_again(request)
            better = self._manner.headers(request)
            if better != headers:
                answer = await self._way.post(better, asked.line, request)
        return answer

    def stand_in(self, request: Request, away: Away) -> bytes:
        return stand_in(request, version_of(request), self._keeping.seen, away, self._us)

    async def hear(self, message: Message, line: bytes) -> None:
        await self._way.post(self._manner.headers(message), line)

    async def cancel(self, asked: Asked, line: bytes) -> None:
        """Leaving is all it takes."""

    def announce(self, method: str) -> None:
        for listen in self._listens:
            self._work.start(listen.tell(CHANGED_BY[method]))

    async def _listen(self, asked: Asked) -> bytes:
        listen = Listen(asked, self._way, self._mouth, self._manner)
        self._listens.add(listen)
        try:
            return await listen.keep()
        finally:
            self._listens.discard(listen)

    async def _list_again(self, called: Request) -> None:
        """The tool wants arguments repeated in headers, and its list was never seen here."""
        meta = {"_meta": called.params["_meta"]} if "_meta" in called.params else {}
        request = Request("onegate-stdio-list", methods.LIST_TOOLS, meta)
        answer = await self._way.post(self._manner.headers(request), encode(request), request)
        message = decode(answer)
        if isinstance(message, Result):
            self._manner.answered(request, {}, message.result)


class Listen:
    """One `subscriptions/listen` of the client, for as long as the client wants it: gateways
    come and go behind it."""

    def __init__(self, asked: Asked, way: Way, mouth: Mouth, manner: ModernManner) -> None:
        self._asked = asked
        self._way, self._mouth, self._manner = way, mouth, manner
        self._waits = Waits()
        self._is_acknowledged = False

    async def keep(self) -> bytes:
        """Returns the gateway's answer only if it will not have this listen at all."""
        request = self._asked.request
        headers = self._manner.headers(request)
        while True:
            try:
                answer = await self._way.post(headers, self._asked.line, request, self._hear)
                if not self._is_acknowledged and isinstance(decode(answer), Failure):
                    return answer
            except Away:
                if not self._is_acknowledged:
                    self._is_acknowledged = True
                    await self._mouth.say(acknowledgement(request))
            await asyncio.sleep(self._waits.next_s())

    async def tell(self, changed: str | None = None) -> None:
        """Have the client read its lists again: this one, or all it listens for."""
        for method, line in changes(self._asked.request).items():
            if changed in (None, method):
                await self._mouth.say(line)

    async def _hear(self, message: Message, line: bytes) -> None:
        if not isinstance(message, Notification) or message.method != methods.ACKNOWLEDGED:
            await self._mouth.say(line)
            return
        self._waits.restart()
        if self._is_acknowledged:  # to the client this is the same listen
            await self.tell()
            return
        self._is_acknowledged = True
        await self._mouth.say(line)


def _mismatches(answer: bytes) -> bool:
    if str(HeaderMismatch.code).encode() not in answer:
        return False
    message = decode(answer)
    return isinstance(message, Failure) and message.code == HeaderMismatch.code
