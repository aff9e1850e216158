"""One request open at a legacy server, and whoever waits for it now.

While a client is attached the leg *runs*; a question ends the client's own request and
the leg is *parked*: the server goes on waiting for it, and the client comes back with
answers and the token of that round. Source: 2026-07-28, basic/patterns/mrtr.
"""

import asyncio
import secrets
from asyncio import Event, Future
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Protocol

import msgspec
import structlog

from gateway.calls.call import Call, Completed, InputRequired, Outcome
from gateway.calls.notices import Emitted, Progress
from gateway.eras.profile import allowed, refusal_of
from gateway.eras.questions import ANSWERED, ASKED, STATE, answer_for, given_up, refusal_in
from gateway.eras.sides import Answered, Channel, OpenRequest
from gateway.protocol import methods
from gateway.protocol.errors import (
    Cancelled,
    GatewayError,
    InvalidMessage,
    Superseded,
)
from gateway.protocol.jsonrpc import Fields, Json, Raw, Request, as_bytes, decoded, shallow
from gateway.protocol.meta import PROGRESS_TOKEN, progress_token
from gateway.protocol.revisions import Revision

log = structlog.get_logger()

TOGETHER_S = 0.015
"""Questions that come within this time are put to the client at once."""

BESIDE = "roots/list"
"""What servers ask for on their own account, while calls come and go: its answer is wanted
though the call is over on whose stream the client was asked."""

OUTLIVES_S = 10.0
"""How long such a question outlives the call: no person has to think about it."""

MOST_ASKS = 32
"""Questions of one call that may wait at a time."""


class Owner(msgspec.Struct, frozen=True):
    """Whose token it is, and for which request."""

    principal: str | None
    method: str
    name: str
    digest: bytes


def owner_of(call: Call) -> Owner:
    """Answers and token excepted, the retry must be the very same request."""
    same = {k: _plain(v) for k, v in call.params.items() if k not in (ANSWERED, STATE)}
    text = msgspec.json.encode(same, order="deterministic")
    return Owner(call.caller.principal, call.method, call.name, sha256(text).digest())


def _plain(held: Json) -> Json:
    """A value without its white space and order; as its bytes where it has no other form."""
    try:
        return decoded(held)
    except InvalidMessage:
        return as_bytes(held).hex()


class Keeper(Protocol):
    """Who keeps parked legs (`parked.Parked`), as far as a leg needs one."""

    def admit(self, leg: "Leg") -> None:
        """Raises `GatewayError` if it may not be parked, or not once more."""

    def keep(self, leg: "Leg") -> None:
        """It has just been parked, under its `tokens`."""

    def weigh(self, leg: "Leg") -> bool:
        """It holds more or less than before. False: more than it may."""

    def ended(self, leg: "Leg") -> None: ...


@dataclass(slots=True, eq=False)
class Leg:
    """Tokens belong to rounds: a round begins when questions are put to the client, and its
    token stays the same however often they are, until answers come with it. From then on
    it only fetches what came after, for a client that lost it."""

    opened: OpenRequest
    channel: Channel
    keeper: Keeper
    revision: Revision
    """The server's, in whose shape it gets its answers."""
    principal: str | None
    session: str | None
    """Of a legacy client."""
    task: str | None = None
    """The server's task whose result it waits for, if that is what it does."""
    asks: dict[str, Request] = field(default_factory=dict)
    """Questions not yet answered, by the key the client knows them by."""
    owner: Owner | None = None
    """There once it has been parked."""
    token: str | None = None
    """Of this round, while its answers are awaited."""
    spent: str | None = None
    """Of the round before."""
    end: Answered | GatewayError | None = None
    given_up: bool = False
    """It ended without an answer; the server may not know it yet."""
    cause: str = "cancelled"
    """Why, if so: one of `parked.EVENTS`."""
    rounds: int = 0
    """How often its client has been asked, counting what it is being asked now."""
    expires: float = 0.0
    weight: int = 0
    """Bytes it is known to hold."""
    left: list[Request] = field(default_factory=list)
    """Asked beside it, and not put to the client before it ended."""
    is_overdue: bool = False
    """What it has to ask was left by another call: it is not waited for more."""
    _put: set[str] = field(default_factory=set)
    """Keys of questions the client has been given."""
    _outliving: dict[str, Request] = field(default_factory=dict)
    _attached: Event | None = None
    """Of whoever waits; set when something has happened."""
    _moot: "Future[None] | None" = None
    _count: int = 0
    _progress: Progress | None = None

    def __post_init__(self) -> None:
        self.opened.answer.add_done_callback(self._answered)

    @property
    def is_attached(self) -> bool:
        return self._attached is not None

    @property
    def tokens(self) -> tuple[str, ...]:
        return tuple(token for token in (self.spent, self.token) if token is not None)

    @property
    def size(self) -> int:
        """Bytes of what it holds that came from outside."""
        answer = self.end.size if isinstance(self.end, Answered) else 0
        return answer + sum(_size(ask.params) for ask in self.asks.values())

    # --- told by the server ---

    def asked(self, request: Request) -> None:
        if len(self.asks) >= MOST_ASKS:
            self.channel.refuse(request, -32603, "Too many questions wait for their answers")
            return
        self._count += 1
        key = f"q{self._count}"
        self.asks[key] = request
        if self.token is not None and not self.keeper.weigh(self):
            del self.asks[key]
            self.channel.refuse(request, -32603, "The question is too long to be kept")
            return
        self._wake()

    def withdrawn(self, id_: Json) -> None:
        """The server no longer wants an answer."""
        before = len(self.asks)
        self.asks = {key: ask for key, ask in self.asks.items() if ask.id != id_}
        if before and not self.asks:
            self._settle_moot()

    def _answered(self, answer: "Future[Answered]") -> None:
        if self.end is None:
            if answer.cancelled():
                self._end(Cancelled("The call was given up"), given_up=True)
            else:
                why = answer.exception()
                assert why is None or isinstance(why, GatewayError), "links fail so alone"
                self._end(why or answer.result())

    def _end(self, end: Answered | GatewayError, *, given_up: bool = False) -> None:
        self.end, self.given_up = end, given_up
        if self.session is not None and not given_up:
            self._keep_beside()
        self._leave_questions()
        self.opened.call = None
        self.keeper.ended(self)
        self._wake()
        self._settle_moot()

    # --- waited for ---

    async def wait(self, call: Call) -> Outcome:
        """As this call, wait for what comes next: the answer, or questions to the client.

        Cancelled, it gives the request up at the server. Raises `GatewayError`.
        """
        mine = self._attach(call)
        try:
            while self.end is None:
                if not self.asks:
                    await mine.wait()
                    mine.clear()
                if self.asks and self._attached is mine and not self.is_overdue:
                    await asyncio.wait({self.opened.answer}, timeout=TOGETHER_S)
                if self._attached is not mine:
                    raise Superseded("The same request came again and is answered there")
                if self.asks and self.end is None and self._may_park(call):
                    return self._park()
        except asyncio.CancelledError:
            if self._attached is mine:
                self.abandon("The client or its time limit gave up")
            raise
        finally:
            if self._attached is mine:
                self._attached = None
        if isinstance(self.end, GatewayError):
            raise self.end
        return Completed(self.end.result, self.end.size)

    def _attach(self, call: Call) -> Event:
        before, self._attached = self._attached, Event()
        if before is not None:
            before.set()  # it finds that somebody else is attached
        if self.end is None:
            self.opened.call = call
            if self._progress is not None:
                call.emit(self._progress)
                self._progress = None
        return self._attached

    def _may_park(self, call: Call) -> bool:
        """Raises `GatewayError` if it may not, and has to. What another call has left is not
        worth failing this one."""
        self._turn_away(call.caller.capabilities)
        if not self.asks:
            return False
        if self.token is None:
            try:
                self._begin_round(call)
            except GatewayError as error:
                if self.is_overdue and all(ask.method == BESIDE for ask in self.asks.values()):
                    self.is_overdue = False
                    self._leave_questions()
                    return False
                self.abandon(error.message, "refused")
                raise
        # What is left of the call while nobody waits for it: neither its params, nor its client;
        # but a legacy client is asked on the call's own stream, and hears of progress there.
        emit = self._kept if call.caller.session is None else call.emit
        self.opened.call = msgspec.structs.replace(
            call, params={}, meta={}, emit=emit, log_level=None
        )
        return True

    def _turn_away(self, capabilities: Raw | None) -> None:
        """A modern client may come back with less than it came with: it is asked no more than
        it declares in this very request."""
        declared = None if capabilities is None else decoded(capabilities)
        for key, ask in tuple(self.asks.items()):
            if not allowed(declared, ask.method, ask.params):
                self.channel.refuse(self.asks.pop(key), *refusal_of(ask.method))

    def _park(self) -> InputRequired:
        self._put.update(self.asks)
        self.is_overdue = False
        questions = {
            key: {"method": ask.method, "params": ask.params} for key, ask in self.asks.items()
        }
        result = {"resultType": "input_required", ASKED: questions, STATE: self.token}
        if self._moot is None or self._moot.done():
            self._moot = asyncio.get_running_loop().create_future()
        return InputRequired(
            result,
            ours=True,
            moot=self._moot,
            progressed=self._progressed,
            outlived=self._outlived,
        )

    def _progressed(self, key: str, params: Fields) -> None:
        """The client says how far it is with an answer, and the server wants to know."""
        ask = self.asks.get(key)
        token = progress_token(shallow(ask.params.get("_meta")) or {}) if ask else None
        if token is not None:
            self.channel.tell(methods.PROGRESS, {**params, PROGRESS_TOKEN: token})

    def _begin_round(self, call: Call) -> None:
        self.rounds += 1
        self.keeper.admit(self)
        self.owner = self.owner or owner_of(call)
        self.token = secrets.token_urlsafe(24)
        self.keeper.keep(self)

    def _kept(self, notice: Emitted) -> None:
        """While nobody listens: the last progress, for whoever comes back. Log lines go."""
        if isinstance(notice, Progress):
            self._progress = notice

    def _wake(self) -> None:
        if self._attached is not None:
            self._attached.set()

    def _settle_moot(self) -> None:
        """No answer is wanted any more: whoever still asks the client may stop."""
        if self._moot is not None and not self._moot.done():
            self._moot.set_result(None)

    # --- resumed or given up ---

    async def resume(self, token: str, call: Call) -> Outcome:
        """The client is back. What it answers goes to the server, once; then wait on."""
        answers = shallow(call.params.get(ANSWERED)) or {}
        if token == self.token and self.end is None:
            self._deliver(answers)
        for key in answers.keys() & self._outliving:  # it ended while they were on their way
            self._answer_late(key, answers[key])
        return await self.wait(call)

    def _deliver(self, answers: Fields) -> None:
        self.spent, self.token = self.token, None
        for key, held in answers.items():
            answer = shallow(held)
            if answer is not None and key in self.asks:  # what is no answer is asked for again
                self._answer(self.asks.pop(key), answer)
        self.keeper.weigh(self)

    def _answer(self, ask: Request, answer: Fields) -> None:
        refusal = refusal_in(answer)
        if refusal is not None:
            self.channel.refuse(ask, *refusal)
        else:
            self.channel.answer(ask, answer_for(ask.method, answer, self.revision))

    def _keep_beside(self) -> None:
        """The answers to some questions are wanted though the call has ended: those the client
        has been given are waited for, the others are for the next call."""
        beside = {key: ask for key, ask in self.asks.items() if ask.method == BESIDE}
        self.asks = {key: ask for key, ask in self.asks.items() if key not in beside}
        self._outliving = {key: ask for key, ask in beside.items() if key in self._put}
        self.left = [ask for key, ask in beside.items() if key not in self._put]
        if self._outliving:
            asyncio.get_running_loop().call_later(OUTLIVES_S, self._give_up_outliving)

    def _outlived(self, key: str) -> Callable[[Json], None] | None:
        return partial(self._answer_late, key) if key in self._outliving else None

    def _answer_late(self, key: str, held: Json) -> None:
        ask, answer = self._outliving.pop(key, None), shallow(held)
        if ask is not None and answer is not None:
            self._answer(ask, answer)

    def _give_up_outliving(self) -> None:
        for key in tuple(self._outliving):
            self._answer_late(key, given_up(BESIDE))

    def _leave_questions(self) -> None:
        """Nobody will answer these any more; a server may wait for one all the same, as for
        roots, which it asks for beside its calls."""
        for ask in self.asks.values():
            self._answer(ask, given_up(ask.method))
        self.asks.clear()

    def abandon(self, reason: str, cause: str = "cancelled") -> None:
        """Nobody comes back: release the server, tell it why. Never waits."""
        if self.end is not None:
            return
        self.cause = cause
        self._leave_questions()
        self.opened.cancel(reason)
        self._end(Cancelled(reason), given_up=True)
        if self.owner is not None:
            log.info("call.abandoned", server=self.channel.server, why=reason)


def _size(params: Fields) -> int:
    return sum(memoryview(v).nbytes if isinstance(v, Raw) else 64 for v in params.values())
