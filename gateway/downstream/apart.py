"""Calls of clients that must not share a process with everybody: whose, which, until when."""

from dataclasses import dataclass, field

from gateway.calls.call import Call, Caller, InputRequired, Outcome
from gateway.downstream.pool import Pool, Seat, Whose, whose
from gateway.eras.legacy.parked import Leg, Parked
from gateway.eras.negotiate import needs_apart
from gateway.eras.profile import Profile, Profiles
from gateway.eras.questions import STATE
from gateway.protocol.revisions import Era

FORCED = frozenset({"session", "principal"})


@dataclass(slots=True, eq=False)
class Apart:
    """The private side of one server."""

    isolation: str
    profiles: Profiles
    pool: Pool
    parked: Parked
    is_forced: bool = field(init=False)
    _seats: dict[int, Seat] = field(default_factory=dict)
    """Held by parked calls, by the identity of their link."""

    def __post_init__(self) -> None:
        self.is_forced = self.isolation in FORCED
        self.parked.freed = self._freed

    def concerns(self, call: Call) -> bool:
        """Whether this may be a call for here: decided from the call alone, at no cost."""
        return call.caller.capabilities is not None or self.is_forced or STATE in call.params

    def whose(self, caller: Caller, era: Era) -> Whose | None:
        """The seat this caller needs with a server of this era; None: the shared connection."""
        profile: Profile | None = None
        if needs_apart(era):
            held = caller.declared or caller.capabilities
            profile = self.profiles.of(held) if held is not None else None
        return whose(self.isolation, caller, era, profile)

    async def call(self, wanted: Whose, call: Call) -> Outcome:
        seat = await self.pool.take(wanted)
        try:
            outcome = await seat.connection.outbound.call(call)
        except BaseException:
            self.pool.give_back(seat)
            raise
        if isinstance(outcome, InputRequired) and outcome.ours:
            self._seats[id(seat.connection.link)] = seat  # kept until the call is over
        else:
            self.pool.give_back(seat)
        return outcome

    def _freed(self, leg: Leg) -> None:
        if leg.owner is not None:  # it had been parked: nobody else gives its seat back
            seat = self._seats.pop(id(leg.channel), None)
            if seat is not None:
                self.pool.give_back(seat)

    def prepare(self, caller: Caller, era: Era) -> None:
        """A client has come that may need a process of its own."""
        wanted = self.whose(caller, era)
        if wanted is not None:
            self.pool.prepare(wanted)

    def expire(self) -> None:
        self.parked.expire()
        self.pool.expire()
