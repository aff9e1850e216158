"""Serve clients that know two endpoints: one to listen on, and one to post to (2024-11-05).

A session is its stream. It begins with the GET, everything is said on it, and it ends with
it; a POST is only ever accepted. Source: 2024-11-05, basic/transports, "HTTP with SSE".
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from gateway.calls.call import Caller
from gateway.eras.aloud import Aloud
from gateway.eras.legacy.inbound import Asked, LegacyInbound
from gateway.eras.legacy.sessions import Session
from gateway.eras.sides import Answer, Posted, Stream
from gateway.protocol import methods
from gateway.protocol.errors import GatewayError, NotJson
from gateway.protocol.jsonrpc import (
    STRICT,
    Failure,
    Request,
    decode,
    encode,
)
from gateway.protocol.revisions import OF_ERA, Era

OLDEST = OF_ERA[Era.LEGACY][0]
"""What a client counts as until its `initialize` says otherwise."""

MOST_REQUESTS = 256
"""Of one session at a time: each holds a task, since its POST is long answered."""

NO_SESSION = "No such session: its stream has ended, or never was. Open another with GET /sse"
TOO_MANY = f"More than {MOST_REQUESTS} requests of this session are being served; wait for some"

Work = Coroutine[Any, Any, None]


@dataclass(slots=True)
class Pair:
    """Implements `eras.sides.OldEntrance`."""

    legacy: LegacyInbound

    def open(self, principal: str | None, open_stream: Callable[[str], Stream]) -> Stream:
        session = self.legacy.sessions.open(Caller(OLDEST, principal), is_pair=True)
        stream = open_stream(session.id)
        session.streams.standalone.is_kept = False
        session.attach(stream)
        return stream

    def left(self, session_id: str, principal: str | None) -> None:
        session = self._session(session_id, principal)
        if session is not None:
            self.legacy.sessions.close(session)

    def post(self, session_id: str, posted: Posted) -> tuple[Answer, Work | None]:
        session = self._session(session_id, posted.principal)
        if session is None:
            return Answer(404, encode(Failure(None, -32600, NO_SESSION))), None
        try:
            message = decode(posted.body, STRICT)
        except GatewayError as error:
            self.legacy.garbled(session, error)
            code = -32700 if isinstance(error, NotJson) else -32600
            return Answer(400, encode(Failure(error.request_id, code, error.message))), None
        stream = session.streams.standalone.stream
        if stream is None:
            return Answer(404, encode(Failure(None, -32600, NO_SESSION))), None
        if not isinstance(message, Request):
            self.legacy.told(session, message)
        elif message.method == methods.INITIALIZE:
            stream.push(self.legacy.begin(session, message, posted))
        elif session.serving >= MOST_REQUESTS:
            return Answer(503, encode(Failure(message.id, -32600, TOO_MANY))), None
        else:
            return Answer(202), self._serve(Asked(session, message, posted, Aloud(stream)), stream)
        return Answer(202), None

    async def _serve(self, asked: Asked, stream: Stream) -> None:
        stream.expect()
        try:
            stream.push(await self.legacy.request(asked))
        finally:
            if not asked.session.serving:
                stream.expect_no_more()
                self.legacy.sessions.settle(asked.session)

    def _session(self, session_id: str, principal: str | None) -> Session | None:
        return self.legacy.sessions.find(session_id, principal, is_pair=True)
