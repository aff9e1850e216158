"""Requests of modern clients at the gateway: each with the headers it needs, listens kept open.

Source: 2026-07-28, basic/transports; basic/patterns/subscriptions.
"""

import asyncio
from collections.abc import Mapping

from gateway.edge.stdio.backoff import Waits
from gateway.edge.stdio.conversation import Asked
from gateway.edge.stdio.footing import Footing
from gateway.edge.stdio.way import Posting
from gateway.eras.absent import Away
from gateway.eras.modern.absent import acknowledgement, changes, stand_in, version_of
from gateway.eras.modern.over_http import ModernManner
from gateway.eras.seen import CHANGED_BY
from gateway.protocol import methods
from gateway.protocol.errors import HeaderMismatch
from gateway.protocol.jsonrpc import (
    Failure,
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

    def __init__(self, footing: Footing) -> None:
        self._on = footing
        self._manner = ModernManner(footing.learnt)
        self._listens: set[Listen] = set()

    def revision_of(self, request: Request) -> str:
        return version_of(request)

    def expect(self, request: Request) -> None:
        """Each request stands alone."""

    async def exchange(self, asked: Asked) -> bytes:
        """The gateway's answer. Raises `Away`."""
        request = asked.request
        if request.method == methods.LISTEN:
            return await self._listen(asked)
        headers = self._manner.headers(request)
        answer = (await self._on.way.post(Posting(headers, asked.line, request))).body
        if request.method == methods.CALL_TOOL and _mismatches(answer):
            await self._list_again(request)
            better = self._manner.headers(request)
            if better != headers:
                answer = (await self._on.way.post(Posting(better, asked.line, request))).body
        return answer

    def stand_in(self, request: Request, away: Away) -> bytes:
        return stand_in(request, version_of(request), self._on.keeping.seen, away, self._on.us)

    async def hear(self, message: Message, line: bytes) -> None:
        await self._on.way.post(Posting(self._manner.headers(message), line))

    async def cancel(self, asked: Asked, line: bytes) -> None:
        """Leaving is all it takes."""

    def announce(self, method: str) -> None:
        for listen in self._listens:
            self._on.work.start(listen.tell(CHANGED_BY[method]))

    async def _listen(self, asked: Asked) -> bytes:
        listen = Listen(asked, self._on, self._manner.headers(asked.request))
        self._listens.add(listen)
        try:
            return await listen.keep()
        finally:
            self._listens.discard(listen)

    async def _list_again(self, called: Request) -> None:
        """The tool wants arguments repeated in headers, and its list was never seen here."""
        meta = {"_meta": called.params["_meta"]} if "_meta" in called.params else {}
        request = Request("onegate-stdio-list", methods.LIST_TOOLS, meta)
        posting = Posting(self._manner.headers(request), encode(request), request)
        message = decode((await self._on.way.post(posting)).body)
        if isinstance(message, Result):
            self._manner.answered(request, {}, message.result)


class Listen:
    """One `subscriptions/listen` of the client, for as long as the client wants it: gateways
    come and go behind it."""

    def __init__(self, asked: Asked, footing: Footing, headers: Mapping[str, str]) -> None:
        self._asked = asked
        self._way, self._mouth = footing.way, footing.mouth
        self._headers = headers
        self._waits = Waits()
        self._is_acknowledged = False

    async def keep(self) -> bytes:
        """Returns the gateway's answer only if it will not have this listen at all."""
        request = self._asked.request
        posting = Posting(self._headers, self._asked.line, request)
        while True:
            try:
                answer = (await self._way.post(posting, self._hear)).body
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
