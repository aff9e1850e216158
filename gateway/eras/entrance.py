"""Both eras on one URL: whose is this request?

Implements `eras.sides.Entrance`. Decided for each request from itself alone, so a
client that first probes and then initializes is nothing special.
Source: `protocol` rules of 2025-11-25 and 2026-07-28, basic/transports.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gateway.eras.legacy.inbound import Asked, LegacyInbound
from gateway.eras.legacy.pair import Pair
from gateway.eras.legacy.sessions import Session
from gateway.eras.middle import failure_data
from gateway.eras.modern.envelope import is_enveloped, is_modern
from gateway.eras.modern.inbound import ModernInbound
from gateway.eras.sides import Answer, Headers, Posted, Reply, Stream
from gateway.protocol.errors import GatewayError, InvalidMessage
from gateway.protocol.headers import LAST_EVENT, SESSION, VERSION
from gateway.protocol.jsonrpc import (
    STRICT,
    Failure,
    Fields,
    Notification,
    Request,
    decode,
    decode_batch,
    encode,
)
from gateway.protocol.methods import INITIALIZE
from gateway.protocol.recall import Metas
from gateway.protocol.revisions import BY_NAME, Era

NO_SESSION = (
    "No session: send initialize first and its Mcp-Session-Id with every request after, "
    "or a request of 2026-07-28 with its _meta envelope"
)
NOT_KEPT = (
    "Last-Event-ID names no event of this session, or its stream is no longer kept. "
    "Send GET without it to be told of changes from now on"
)
AT_ONCE = 16
"""Elements of one array that are served side by side."""
ASKED = (Request, Notification)
"""What clients send on their own account."""
SESSION_GONE = "No such session: it ended or never was. Send initialize to open another"


@dataclass(slots=True)
class Entrance:
    legacy: LegacyInbound
    modern: ModernInbound
    pair: Pair = field(init=False)
    """For clients that know Streamable HTTP not at all."""
    _metas: Metas = field(default_factory=Metas)

    def __post_init__(self) -> None:
        self.pair = Pair(self.legacy)

    async def post(self, posted: Posted, reply: Reply) -> Answer:
        body = posted.body
        if body[:1] != b"{" and body.lstrip(b" \t\r\n")[:1] == b"[":
            return await self._batch(posted, reply)
        try:
            message = decode(body, STRICT)
        except GatewayError as error:
            return self._garbled(posted, error)
        if isinstance(message, ASKED):
            params = message.params
            self._open_meta(params)
            if is_modern(posted.headers, params) and not _negotiates(message, posted.headers):
                if isinstance(message, Request):
                    return await self.modern.post(message, posted, reply)
                return Answer(202)
        elif _is_modern_header(posted.headers):
            return _refused(InvalidMessage("A client sends no responses in this revision"), None)
        if isinstance(message, Request) and message.method == INITIALIZE:
            return self.legacy.initialize(message, posted)
        session = self._of(posted, message.id if isinstance(message, Request) else None)
        if isinstance(session, Answer):
            return session
        reply.keep(session.streams)
        if isinstance(message, Request):
            return Answer(200, await self.legacy.request(Asked(session, message, posted, reply)))
        self.legacy.told(session, message)
        return Answer(202)

    async def get(
        self, headers: Headers, principal: str | None, open_stream: Callable[[], Stream]
    ) -> Answer | Stream:
        session = self._session(headers, principal)
        if isinstance(session, Answer):
            return session
        last = headers.get(LAST_EVENT)
        broken = session.streams.find(last) if last else None
        if last and broken is None:
            return _refused(InvalidMessage(NOT_KEPT), None)
        stream = open_stream()
        session.attach(stream, broken)
        return stream

    async def delete(self, headers: Headers, principal: str | None) -> Answer:
        session = self._session(headers, principal)
        if isinstance(session, Answer):
            return session
        self.legacy.sessions.close(session)
        return Answer(204)

    def left(self, headers: Headers, principal: str | None, stream: Stream) -> None:
        """A session's stream has ended."""
        session = self.legacy.sessions.find(headers.get(SESSION) or "", principal)
        if session is not None:
            session.streams.detach(stream)

    def _open_meta(self, params: Fields) -> None:
        """Decode `_meta` where it stands, once: whoever serves the request looks into it."""
        held = params.get("_meta")
        if held is not None and isinstance(params, dict):
            opened = self._metas.opened(held)
            if opened is not None:
                params["_meta"] = opened

    # --- legacy ---

    def _garbled(self, posted: Posted, error: GatewayError) -> Answer:
        session = self.legacy.sessions.find(posted.headers.get(SESSION) or "", posted.principal)
        if session is not None:
            self.legacy.garbled(session, error)
        return _refused(error, error.request_id)

    async def _batch(self, posted: Posted, reply: Reply) -> Answer:
        """An array: 2025-03-26 alone has them. Each element is a call of its own."""
        refused = InvalidMessage("A batch (JSON array) is not accepted: send one message a request")
        try:
            items = decode_batch(posted.body)
        except GatewayError as error:
            return _refused(error, None)
        if _is_modern_header(posted.headers) or posted.headers.get(SESSION) is None:
            return _refused(refused, None)
        session = self._of(posted, None)
        if isinstance(session, Answer):
            return session
        if not session.caller.revision.batches:
            return _refused(refused, None)
        if not items:
            return _refused(InvalidMessage("A batch must not be empty"), None)
        reply.keep(session.streams)
        answers = await self._each(items, session, posted, reply)
        if not answers:
            return Answer(202)
        if not reply.streaming and posted.accepts_json:
            return Answer(200, b"[" + b",".join(answers) + b"]")
        for body in answers[:-1]:  # events hold one message each: SDK clients read no arrays there
            reply.say(body)
        return Answer(200, answers[-1])

    async def _each(
        self, items: Sequence[bytes], session: Session, posted: Posted, reply: Reply
    ) -> list[bytes]:
        """The answers, in the order of what they answer. None waits for another's: a later
        element may cancel an earlier one."""
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(item: bytes) -> bytes | None:
            try:
                return await self._one(item, session, posted, reply)
            finally:
                turns.release()

        served = []
        async with asyncio.TaskGroup() as tasks:
            for item in items:
                await turns.acquire()
                served.append(tasks.create_task(one(item)))
        return [body for task in served if (body := task.result())]

    async def _one(
        self, item: bytes, session: Session, posted: Posted, reply: Reply
    ) -> bytes | None:
        try:
            message = decode(bytes(item), STRICT)
        except GatewayError as error:
            self.legacy.garbled(session, error)
            return _refused(error, error.request_id).body
        if isinstance(message, Request):
            if message.method == INITIALIZE:
                return _refused(InvalidMessage("initialize cannot be batched"), message.id).body
            return await self.legacy.request(Asked(session, message, posted, reply))
        self.legacy.told(session, message)
        return None

    def _of(self, posted: Posted, id_: str | int | None) -> Session | Answer:
        held = posted.headers.get(SESSION)
        if held is None:
            return _refused(InvalidMessage(NO_SESSION), id_)
        session = self.legacy.sessions.find(held, posted.principal)
        if session is None:
            return _gone(id_)
        return session

    def _session(self, headers: Headers, principal: str | None) -> Session | Answer:
        """The session that a GET or DELETE is about. Modern clients have neither."""
        held = headers.get(SESSION)
        if _is_modern_header(headers):
            refused = Failure(None, -32600, "This revision has POST only")
            return Answer(405, encode(refused), {"Allow": "POST"})
        if held is None:
            return _refused(InvalidMessage(NO_SESSION), None)
        return self.legacy.sessions.find(held, principal) or _gone(None)


def _negotiates(message: Request | Notification, headers: Headers) -> bool:
    """A plain `initialize` under a version header nobody knows: the body negotiates."""
    version = headers.get(VERSION)
    unknown = version is not None and version.strip(" \t") not in BY_NAME
    return (
        unknown
        and isinstance(message, Request)
        and message.method == INITIALIZE
        and not is_enveloped(message.params)
    )


def _is_modern_header(headers: Headers) -> bool:
    version = headers.get(VERSION)
    known = BY_NAME.get(version.strip(" \t")) if version is not None else None
    return known is not None and known.era is Era.MODERN


def _refused(error: GatewayError, id_: str | int | None) -> Answer:
    return Answer(400, encode(Failure(id_, error.code, error.message, failure_data(error))))


def _gone(id_: str | int | None) -> Answer:
    return Answer(404, encode(Failure(id_, -32600, SESSION_GONE)))
