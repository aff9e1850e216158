"""Calls that a legacy server interrupted with a question, waiting for their client.

A token is new each round, of one use, and good only for the principal and the request
it was issued for. All is bounded: how many wait, whose, how long, and what they hold.
Source: 2026-07-28, basic/patterns/mrtr, server requirements.
"""

from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass, field

import msgspec

from gateway.calls.call import Call, Outcome
from gateway.config.units import spelt_size
from gateway.eras.legacy.leg import Leg, owner_of
from gateway.eras.legacy.tasking import InItsStead
from gateway.eras.questions import STATE, too_many_rounds, unknown_state
from gateway.eras.sides import Channel, OpenRequest
from gateway.protocol import methods
from gateway.protocol.errors import (
    BadAnswer,
    GatewayError,
    ServerUnavailable,
    TooManyWaiting,
)
from gateway.protocol.jsonrpc import Json, value
from gateway.protocol.revisions import Revision

MIB = 2**20

EVENTS = (
    *("parked", "resumed", "repeated"),
    *("answered", "server_gone", "cancelled", "abandoned", "expired", "refused", "stopped"),
    "evicted",
)
"""What is counted of parked calls. One is *parked* with each round of questions, and *resumed*
when its client comes back; *repeated* is a retry that came again. It ends *answered* by the
server, with the server (*server_gone*), *cancelled* by its client or a limit while it ran again,
*abandoned* by a client that will not answer, *expired* without one, *refused* at a bound, or
*stopped* with the gateway. An answer kept for a client that may want it again is *evicted* where
there is no room."""

LEEWAY_S = 5.0
"""A legacy client is waited for where it is asked; here only in case that fails."""


class Bounds(msgspec.Struct, frozen=True):
    """What parked calls of one server may take up."""

    calls: int = 128
    per_principal: int = 64
    rounds: int = 10
    """As many as SDK clients answer before they suspect a loop."""
    leg_bytes: int = 4 * MIB
    """Of the questions, or the kept answer, of one call."""
    age_s: float = 600.0
    """How long a client may take. A person is answering; the server may give up sooner."""
    kept_s: float = 60.0
    """How long an answer is kept for a client that lost it."""


@dataclass(slots=True)
class Room:
    """How many bytes the parked calls of all servers may hold together."""

    most_bytes: int = 64 * MIB
    taken: int = 0


@dataclass(slots=True)
class Parked:
    """All parked calls of one server, by token. Implements `leg.Keeper`."""

    server: str
    clock: Callable[[], float]
    bounds: Bounds = field(default_factory=Bounds)
    room: Room = field(default_factory=Room)
    freed: Callable[[Leg], None] = lambda leg: None
    """Told of each leg that had been parked and has ended, whatever ended it."""
    events: Counter[str] = field(default_factory=Counter)
    """How often each of `EVENTS` was, since the gateway started."""
    _tokens: dict[str, Leg] = field(default_factory=dict)
    _held: dict[Leg, tuple[str, ...]] = field(default_factory=dict)
    """Every leg that some token leads to, with those tokens; the longest held first."""

    def __len__(self) -> int:
        return sum(1 for leg in self._held if leg.end is None)

    @property
    def held_bytes(self) -> int:
        """What they take of the room, kept answers included."""
        return sum(leg.weight for leg in self._held)

    def begin(self, opened: OpenRequest, channel: Channel, call: Call, revision: Revision) -> Leg:
        caller, task = call.caller, None
        if isinstance(opened, InItsStead):
            task = opened.task
        elif call.method == methods.TASK_RESULT:
            task = value(call.params, "taskId")
        return Leg(opened, channel, self, revision, caller.principal, caller.session, task)

    async def resume(self, call: Call) -> Outcome:
        """Go on with the call this one's token stands for.

        Raises `InvalidParams`, in the same words whatever is wrong with the token.
        """
        leg, token = self._owned_by(call), value(call.params, STATE)
        if leg is None:
            raise unknown_state()
        self.events["resumed" if token == leg.token else "repeated"] += 1
        return await leg.resume(token, call)

    def _owned_by(self, call: Call) -> Leg | None:
        """What this one's token stands for, if it is its own."""
        token = value(call.params, STATE)
        leg = self._tokens.get(token) if isinstance(token, str) else None
        return leg if leg is not None and leg.owner == owner_of(call) else None

    # --- Keeper ---

    def admit(self, leg: Leg) -> None:
        refusal = self._refusal(leg)
        if refusal is not None:
            if leg.owner is None:  # else it is counted when it ends, which is now
                self.events["refused"] += 1
            raise refusal

    def _refusal(self, leg: Leg) -> GatewayError | None:
        bounds = self.bounds
        if leg.rounds > bounds.rounds:
            return too_many_rounds(self.server, bounds.rounds)
        others = [one for one in self._held if one is not leg and one.end is None]
        mine = sum(1 for one in others if one.principal == leg.principal)
        if len(others) >= bounds.calls:
            said = f"{len(others)} calls wait for answers of their clients already, as many as may"
            return self._full(said, "limits.parked")
        if mine >= bounds.per_principal:
            said = f"of the calls that wait for answers of their clients {mine} are this client's, "
            return self._full(f"{said}as many as may", "limits.parked_per_principal")
        if self.weigh(leg):
            return None
        if leg.size > bounds.leg_bytes:
            said = f"that takes {leg.size} bytes, more than can be kept for one call"
            return self._full(f"{said} ({spelt_size(bounds.leg_bytes)})", "limits.parked_call")
        said = f"that takes {leg.size} bytes, more than can be kept beside what other calls hold"
        return self._full(f"{said} ({spelt_size(self.room.most_bytes)})", "limits.parked_total")

    def _full(self, said: str, key: str) -> TooManyWaiting:
        again = "" if key == "limits.parked_call" else " Call again when others have their answers."
        return TooManyWaiting(
            f"{self.server} asked something in the middle of this call, and {said} (`{key}`). "
            f"The call was given up; what the server had done by then is done.{again}",
            data={"limit": key},
        )

    def keep(self, leg: Leg) -> None:
        self.events["parked"] += 1
        leg.expires = self.clock() + self.bounds.age_s + (LEEWAY_S if leg.session else 0.0)
        for token in self._held.get(leg, ()):
            self._tokens.pop(token, None)
        self._held[leg] = leg.tokens
        self._tokens.update(dict.fromkeys(leg.tokens, leg))

    def weigh(self, leg: Leg) -> bool:
        size = leg.size
        more = size - leg.weight
        if size > self.bounds.leg_bytes or (more > 0 and not self._has_room(more, leg)):
            return False
        self.room.taken += more
        leg.weight = size
        return True

    def ended(self, leg: Leg) -> None:
        """Its answer stays for a while, for a client that lost it."""
        if leg.owner is None:
            self._forget(leg)
            return
        self.events[_how(leg)] += 1
        now = self.clock()
        if leg.given_up:
            self._forget(leg)
        elif not self.weigh(leg):
            self.events["evicted"] += 1
            if leg.is_attached:
                self._forget(leg)  # it is on its way to the client; too long to be kept as well
            else:
                leg.end = BadAnswer(
                    f"{self.server} answered while its client was away, and too much to be kept"
                )
                self.weigh(leg)
        # Parked, it may have longer than that: the client was told to come back with answers.
        leg.expires = max(now + self.bounds.kept_s, 0.0 if leg.is_attached else leg.expires)
        self.freed(leg)

    # --- given up ---

    def abandon(self, token: Json) -> None:
        """The client will not come back for this one."""
        leg = self._tokens.get(token) if isinstance(token, str) else None
        if leg is not None:
            leg.abandon("The client gave up", "abandoned")

    def forsake(self, retry: Call) -> None:
        """Its client will not come with this one, or has gone before it got here. What another
        retry goes on with goes on."""
        leg = self._owned_by(retry)
        if leg is not None and not leg.is_attached:
            leg.abandon("The client gave up", "abandoned")

    def dismiss(self, principals: Container[str | None] | None = None) -> None:
        """These cannot come back; None: nobody can. What runs again comes to its end, as all
        that runs does, and so does what a legacy client is being asked."""
        for leg in tuple(self._held):
            is_meant = principals is None or leg.principal in principals
            if is_meant and not (leg.session or leg.is_attached):
                leg.abandon("Its client cannot come back", "abandoned")

    def expire(self) -> None:
        """Give up what is too old. Called now and then by whoever owns the time."""
        now = self.clock()
        for leg in tuple(self._held):
            if leg.expires <= now and not leg.is_attached:
                leg.abandon("No answer from the client in time", "expired")
                self._forget(leg)

    def close(self, reason: str) -> None:
        """Give up all that wait: servers are told before they are stopped."""
        for leg in tuple(self._held):
            leg.abandon(reason, "stopped")

    def _has_room(self, more: int, beside: Leg) -> bool:
        """Answers kept for clients that may have lost them are the first to go."""
        for leg in tuple(self._held):
            if self.room.taken + more <= self.room.most_bytes:
                break
            if leg is not beside and leg.end is not None and not leg.is_attached:
                self._forget(leg)
                self.events["evicted"] += 1
        return self.room.taken + more <= self.room.most_bytes

    def _forget(self, leg: Leg) -> None:
        for token in self._held.pop(leg, ()):
            self._tokens.pop(token, None)
        self.room.taken -= leg.weight
        leg.weight = 0


def _how(leg: Leg) -> str:
    """The event that its end is."""
    if leg.given_up:
        return leg.cause
    return "server_gone" if isinstance(leg.end, ServerUnavailable) else "answered"
