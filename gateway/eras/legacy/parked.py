"""Calls that a legacy server interrupted with a question, waiting for their client.

The request stays open at the server while no client is attached to it: a *leg* ends with
the question, and the next one begins when the client comes back with answers and the token
it was given. A token is new each round, of one use, and good only for the principal and
the request it was issued for. Source: 2026-07-28, basic/patterns/mrtr, server requirements.
"""

import asyncio
import secrets
from asyncio import Future
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

import msgspec
import structlog

from gateway.calls.call import Call, Completed, InputRequired, Outcome
from gateway.calls.notices import Emitted, Progress
from gateway.eras.questions import (
    ANSWERED,
    ASKED,
    STATE,
    given_up,
    refusal_in,
)
from gateway.eras.sides import Answered, Channel, OpenRequest
from gateway.protocol.errors import Cancelled, GatewayError, InvalidParams, Superseded, Throttled
from gateway.protocol.jsonrpc import Fields, Json, Request, decoded, shallow, value

log = structlog.get_logger()

TOGETHER_S = 0.015
"""Questions that come within this time are put to the client at once."""

MOST_ROUNDS = 10
"""As many as SDK clients answer before they suspect a loop."""


class Bounds(msgspec.Struct, frozen=True):
    """What parked calls of one server may take up."""

    calls: int = 128
    per_principal: int = 16
    age_s: float = 600.0
    """How long a client may take. A person is answering; the server may give up sooner."""
    kept_s: float = 60.0
    """How long an answer is kept for a client that lost it."""


class Owner(msgspec.Struct, frozen=True):
    """Whose token it is, and for which request."""

    principal: str | None
    method: str
    name: str
    digest: bytes


def owner_of(call: Call) -> Owner:
    """Answers and token excepted, the retry must be the very same request."""
    same = {k: decoded(v) for k, v in call.params.items() if k not in (ANSWERED, STATE)}
    text = msgspec.json.encode(same, order="deterministic")
    return Owner(call.caller.principal, call.method, call.name, sha256(text).digest())


@dataclass(slots=True, eq=False)
class Leg:
    """One request open at a legacy server, and whoever waits for it now."""

    opened: OpenRequest
    channel: Channel
    parked: "Parked"
    principal: str | None
    asks: dict[str, Request] = field(default_factory=dict)
    """Questions not yet answered, by the key the client knows them by."""
    token: str | None = None
    owner: Owner | None = None
    expires: float = 0.0
    over: bool = False
    _before: str | None = None
    """The token of the round before: whoever lost what followed may come again."""
    _rounds: int = 0
    _count: int = 0
    _news: "Future[None] | None" = None
    """Set by whoever waits; done when something has happened."""
    _progress: Progress | None = None

    # --- told by the outbound ---

    def asked(self, request: Request) -> None:
        self._count += 1
        self.asks[f"q{self._rounds}-{self._count}"] = request
        self._wake()

    def withdrawn(self, id_: Json) -> None:
        """The server no longer wants an answer."""
        self.asks = {key: ask for key, ask in self.asks.items() if ask.id != id_}

    # --- waited for ---

    async def wait(self, call: Call) -> Outcome:
        """As this call, wait for what comes next: the answer, or questions to the client.

        Cancelled, it gives the request up at the server. Raises `GatewayError`.
        """
        mine = self._attach(call)
        try:
            while not self.opened.answer.done():
                if self.asks:
                    await asyncio.wait({self.opened.answer}, timeout=TOGETHER_S)
                else:
                    await mine
                if self._news is not mine:
                    raise Superseded("The same request came again and is answered there")
                if self.asks and not self.opened.answer.done():
                    return self._park(call)
                mine = self._news = asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            if self._news is mine:
                self.abandon("The client or its time limit gave up")
            raise
        return self._finished()

    def _attach(self, call: Call) -> "Future[None]":
        before, self._news = self._news, asyncio.get_running_loop().create_future()
        if before is not None and not before.done():
            before.set_result(None)  # it finds that the news is somebody else's
        self.opened.call = call
        if self._progress is not None:
            call.emit(self._progress)
            self._progress = None
        if not self.opened.answer.done():
            self.opened.answer.add_done_callback(lambda _: self._wake())
        return self._news

    def _park(self, call: Call) -> InputRequired:
        self._rounds += 1
        if self._rounds > MOST_ROUNDS:
            self.abandon("Too many rounds of questions")
            raise GatewayError(f"The server asked more than {MOST_ROUNDS} times")
        self.parked.admit(self)
        self.opened.call = msgspec.structs.replace(call, emit=self._kept, log_level=None)
        self._news = None
        self._before, self.token = self.token or self._before, secrets.token_urlsafe(24)
        self.owner = self.owner or owner_of(call)
        self.parked.keep(self, self.token, self._before)
        questions = {
            key: {"method": ask.method, "params": ask.params} for key, ask in self.asks.items()
        }
        result = {"resultType": "input_required", ASKED: questions, STATE: self.token}
        return InputRequired(result, ours=True)

    def _kept(self, notice: Emitted) -> None:
        """While nobody listens: the last progress, for whoever comes back. Log lines go."""
        if isinstance(notice, Progress):
            self._progress = notice

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _finished(self) -> Outcome:
        if not self.over:
            self.over = True
            self.parked.ended(self)
        if self.opened.answer.cancelled():
            raise Cancelled("The call was given up")
        answered: Answered = self.opened.answer.result()
        return Completed(answered.result, answered.size)

    # --- resumed or given up ---

    async def resume(self, token: str, call: Call) -> Outcome:
        """The client is back. What it answers goes to the server, once; then wait on."""
        if token == self.token and not self.over:
            self._deliver(shallow(call.params.get(ANSWERED)) or {})
        return await self.wait(call)

    def _deliver(self, answers: Fields) -> None:
        for key, held in answers.items():
            ask = self.asks.pop(key, None)
            if ask is not None:
                self._answer(ask, held)
        self._before, self.token = self.token, None

    def _answer(self, ask: Request, held: Json) -> None:
        refusal = refusal_in(held)
        if refusal is not None:
            self.channel.refuse(ask, *refusal)
        else:
            self.channel.answer(ask, shallow(held) or {})

    def abandon(self, reason: str) -> None:
        """Nobody comes back: release the server, tell it why. Never waits."""
        if self.over:
            return
        self.over = True
        for ask in self.asks.values():
            self._answer(ask, given_up(ask.method))
        self.asks.clear()
        self.opened.cancel(reason)
        self._wake()
        self.parked.ended(self)
        log.info("call.abandoned", server=self.channel.server, why=reason)


@dataclass(slots=True)
class Parked:
    """All parked calls of one server, by token. Bounded in number, per principal, and in age."""

    server: str
    clock: Callable[[], float]
    bounds: Bounds = field(default_factory=Bounds)
    freed: Callable[[Leg], None] = lambda leg: None
    """Told of each leg that has ended, whatever ended it."""
    _legs: dict[str, Leg] = field(default_factory=dict)

    def __len__(self) -> int:
        return len({id(leg) for leg in self._legs.values() if not leg.over})

    def begin(self, opened: OpenRequest, channel: Channel, call: Call) -> Leg:
        return Leg(opened, channel, self, call.caller.principal)

    def admit(self, leg: Leg) -> None:
        """Whether one more may be parked. If not it is given up, and `Throttled` raised."""
        others = {one for one in self._legs.values() if one is not leg and not one.over}
        mine = sum(1 for one in others if one.principal == leg.principal)
        if len(others) >= self.bounds.calls or mine >= self.bounds.per_principal:
            leg.abandon("Too many calls wait for their clients")
            raise Throttled(f"Too many calls of {self.server} wait for answers of their clients")

    def keep(self, leg: Leg, token: str, before: str | None) -> None:
        """A leg has just been parked under a new token; the one before is good for a client
        that never saw the new one, those before that are not."""
        leg.expires = self.clock() + self.bounds.age_s
        self._legs = {t: one for t, one in self._legs.items() if one is not leg or t == before}
        self._legs[token] = leg

    async def resume(self, call: Call) -> Outcome:
        """Go on with the call this one's token stands for.

        Raises `InvalidParams`, in the same words whatever is wrong with the token.
        """
        token = value(call.params, STATE)
        leg = self._legs.get(token) if isinstance(token, str) else None
        if leg is None or not isinstance(token, str) or leg.owner != owner_of(call):
            raise InvalidParams(f"params.{STATE} is not, or no longer, that of a waiting call")
        if leg.over and leg.opened.answer.cancelled():
            raise InvalidParams(f"params.{STATE} is not, or no longer, that of a waiting call")
        return await leg.resume(token, call)

    def abandon(self, token: Json) -> None:
        """The client will not come back for this one."""
        leg = self._legs.get(token) if isinstance(token, str) else None
        if leg is not None:
            leg.abandon("The client gave up")

    def ended(self, leg: Leg) -> None:
        """Its answer stays for a while, for a client that lost it."""
        leg.expires = self.clock() + self.bounds.kept_s
        leg.opened.call = None
        self.freed(leg)

    def expire(self) -> None:
        """Give up what is too old. Called now and then by whoever owns the time."""
        now = self.clock()
        for token, leg in tuple(self._legs.items()):
            if leg.expires <= now:
                leg.abandon("No answer from the client in time")
                self._legs.pop(token, None)
