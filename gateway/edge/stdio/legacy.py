"""A session at the gateway on behalf of a legacy client: opened, kept, and opened anew.

The client opens one conversation and never hears that behind it sessions come and go.
Source: 2025-11-25, basic/lifecycle; basic/transports, "Session Management".
"""

import asyncio
from contextlib import suppress

from gateway.edge.stdio.backoff import Waits
from gateway.edge.stdio.conversation import Asked
from gateway.edge.stdio.footing import Footing
from gateway.edge.stdio.way import Lapsed, Posting
from gateway.eras.absent import Away, framed
from gateway.eras.legacy.absent import opened, revision_of, stand_in, takes_arrays
from gateway.eras.legacy.over_http import LegacyManner
from gateway.eras.seen import CHANGED_BY
from gateway.protocol import methods
from gateway.protocol.headers import SESSION
from gateway.protocol.jsonrpc import (
    Failure,
    Fields,
    Message,
    Notification,
    Request,
    Result,
    decode,
    encode,
    value,
)

CANCEL_AT_S = (0.0, 0.3, 1.0)
"""A cancellation is a message of its own, over another connection than its request: said
again while the request goes on, since it may have come first."""
GOODBYE_S = 0.5
MOST_WATCHED = 1000
MOST_TRIES = 20
"""A minute or two; what is not offered by then is offered no more."""


class LegacySide:
    """Serves requests without an envelope (`bridge.Side`)."""

    leaving_cancels = False

    def __init__(self, footing: Footing) -> None:
        self._on = footing
        self._revision = revision_of(None)
        self._opening: Request | None = None
        """The client's `initialize`; every session begins with it."""
        self._manner: LegacyManner | None = None
        self._is_answered = False
        """The client has its answer to `initialize`: a session from now on is news to it."""
        self._begun = asyncio.Event()
        self._handshake: tuple[asyncio.Task[None], Request] | None = None
        """The one under way, and what it begins with."""
        self._mending: asyncio.Task[None] | None = None
        self._trouble = Away("The onegate gateway has not been asked yet")
        self._welcome: Fields = {}
        self._level: str | None = None
        self._watched: dict[str, None] = {}
        self._own_ids = 0

    @property
    def takes_arrays(self) -> bool:
        return takes_arrays(self._revision)

    def revision_of(self, request: Request) -> str:
        return self._revision

    # --- what the client asks ---

    def expect(self, request: Request) -> None:
        """A client begins, or begins anew."""
        if request.method != methods.INITIALIZE:
            return
        if self._manner is not None:
            self._on.work.start(self._on.way.delete(self._manner.headers(None)))
        self._manner, self._opening, self._is_answered = None, request, False
        self._revision = revision_of(value(request.params, "protocolVersion"))
        self._level, self._watched = None, {}

    async def exchange(self, asked: Asked) -> bytes:
        """The gateway's answer. Raises `Away`."""
        request = asked.request
        if request.method == methods.INITIALIZE:
            return await self._open(request)
        self._begun.set()
        self._remember(request)
        for _ in range(2):
            manner = await self._ensure()
            if asked.given_up:
                return b""
            try:
                return await self._post(manner, request, asked.line)
            except Lapsed:
                self._lapse(manner)
            except Away as away:
                if away.retryable:  # nobody is there; one broken answer ends no session
                    self._lapse(manner)
                raise
        raise Away("The onegate gateway forgets sessions as soon as they are opened")

    def stand_in(self, request: Request, away: Away) -> bytes:
        if request.method == methods.INITIALIZE:
            self._is_answered = True
        return stand_in(request, self._revision, self._on.keeping.seen, away, self._on.us)

    async def hear(self, message: Message, line: bytes) -> None:
        """Pass on what needs no answer; what nobody can take is lost."""
        if isinstance(message, Notification) and message.method == methods.INITIALIZED:
            self._begun.set()
            return
        manner = self._manner
        if manner is None:
            return
        try:
            await self._post(manner, message, line)
        except (Away, Lapsed):
            self._lapse(manner)

    async def cancel(self, asked: Asked, line: bytes) -> None:
        for wait_s in CANCEL_AT_S:
            await asyncio.sleep(wait_s)
            if asked.task is None or asked.task.done():
                return
            await self.hear(decode(line), line)

    def announce(self, method: str) -> None:
        """The answer to this list is another one now."""
        self._on.work.start(self._on.mouth.say(encode(Notification(CHANGED_BY[method], {}))))

    async def leave(self) -> None:
        """The client has gone: so has its session."""
        manner, self._manner = self._manner, None
        self._opening = None
        if manner is not None and manner.session is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE_S):
                    await self._on.way.delete(manner.headers(None))

    # --- the session ---

    async def _open(self, request: Request) -> bytes:
        await self._ensure()
        self._is_answered = True
        return framed(request, self._welcome)

    async def _ensure(self) -> LegacyManner:
        """The session, opened if there is none. All who need one wait for the same."""
        if self._opening is None:
            return LegacyManner(self._on.learnt)  # the gateway says what has to come first
        tried = None
        while self._manner is None and (wanted := self._opening) is not None:
            if wanted is tried:
                break
            if self._handshake is None:
                self._handshake = self._on.work.start(self._shake_hands(wanted)), wanted
            under_way, tried = self._handshake
            await asyncio.wait({under_way})
        if self._manner is None:
            raise self._trouble
        return self._manner

    async def _shake_hands(self, opening: Request) -> None:
        manner = LegacyManner(self._on.learnt)
        try:
            await self._greet(opening, manner)
        except Lapsed:
            self._trouble = Away("The onegate gateway forgot a session while it was opened")
            self._mend()
        except Away as away:
            self._trouble = away
            self._mend()
        else:
            if opening is self._opening:
                self._manner = manner
                self._on.work.start(self._listen(manner))
                if self._is_answered:
                    for method in dict.fromkeys(CHANGED_BY.values()):
                        await self._on.mouth.say(encode(Notification(method, {})))
            else:  # the client has begun anew meanwhile
                await self._on.way.delete(manner.headers(None))
        finally:
            self._handshake = None

    async def _greet(self, opening: Request, manner: LegacyManner) -> None:
        """The handshake, and what the client wished for since its first one."""
        request = self._own(methods.INITIALIZE, opening.params)
        returned = await self._on.way.post(Posting({}, encode(request), request))
        message = decode(returned.body)
        if isinstance(message, Failure) or not isinstance(message, Result):
            said = message.message if isinstance(message, Failure) else "no answer"
            raise Away(f"The onegate gateway will not have this client: {said}")
        manner.begun(request, {SESSION: returned.headers.get(SESSION.lower(), "")})
        manner.answered(request, {}, message.result)
        self._welcome = message.result
        self._revision = opened(message) or self._revision
        self._on.keeping.keep(opening, self._revision, message.result)
        await self._tell(manner, Notification(methods.INITIALIZED, {}))
        if self._level is not None:
            await self._tell(manner, self._own(methods.SET_LEVEL, {"level": self._level}))
        if self._watched:
            self._on.work.start(self._watch_again(manner, Waits()))

    async def _watch_again(self, manner: LegacyManner, waits: Waits) -> None:
        """What the client subscribed to. A gateway that has just started may not offer it
        yet, so it is asked again until it does."""
        left = list(self._watched)
        for _ in range(len(left) + MOST_TRIES):
            if not left or self._manner not in (None, manner):
                return
            uri = left.pop(0)
            wish = self._own(methods.SUBSCRIBE, {"uri": uri})
            try:
                answer = await self._tell(manner, wish)
            except (Away, Lapsed):
                return  # the next session begins anew
            if uri in self._watched and isinstance(decode(answer), Failure):
                left.append(uri)
                await asyncio.sleep(waits.next_s())

    async def _tell(self, manner: LegacyManner, message: Request | Notification) -> bytes:
        return await self._post(manner, message, encode(message))

    async def _post(self, manner: LegacyManner, message: Message, line: bytes) -> bytes:
        request = message if isinstance(message, Request) else None
        posting = Posting(manner.headers(message), line, request)
        return (await self._on.way.post(posting)).body

    def _own(self, method: str, params: Fields) -> Request:
        self._own_ids += 1
        return Request(f"onegate-stdio-{self._own_ids}", method, params)

    def _remember(self, request: Request) -> None:
        """What has to be wished for again at the next session."""
        uri, level = (value(request.params, key) for key in ("uri", "level"))
        if request.method == methods.SET_LEVEL and isinstance(level, str):
            self._level = level
        elif request.method == methods.SUBSCRIBE and isinstance(uri, str):
            if len(self._watched) < MOST_WATCHED:
                self._watched[uri] = None
        elif request.method == methods.UNSUBSCRIBE and isinstance(uri, str):
            self._watched.pop(uri, None)

    # --- its loss ---

    def _lapse(self, manner: LegacyManner) -> None:
        """This session is no more, or nobody is there to ask."""
        if self._manner is manner:
            self._manner = None
            self._mend()

    def _mend(self) -> None:
        if self._mending is None and self._opening is not None:
            self._mending = self._on.work.start(self._try_again())

    async def _try_again(self) -> None:
        waits = Waits()
        try:
            while self._manner is None and self._opening is not None:
                await asyncio.sleep(waits.next_s())
                with suppress(Away):
                    await self._ensure()
        finally:
            self._mending = None

    # --- what the gateway says unasked ---

    async def _listen(self, manner: LegacyManner) -> None:
        await self._begun.wait()
        if self._manner is manner:
            with suppress(Lapsed):
                await self._on.way.listen(manner.headers(None))
                return
            self._lapse(manner)
