"""Calls of clients that must not share a process with everybody: whose, which, until when."""

from dataclasses import dataclass, field

from gateway.calls.call import Call, Caller, InputRequired, Outcome
from gateway.downstream.pool import Pool
from gateway.downstream.seats import Whose, whose
from gateway.downstream.transports.failures import NotTaken
from gateway.eras.legacy.leg import Leg
from gateway.eras.legacy.parked import Parked
from gateway.eras.negotiate import needs_apart
from gateway.eras.profile import Profile, Profiles
from gateway.eras.questions import STATE
from gateway.protocol.errors import ServerFailure
from gateway.protocol.methods import COMPLETE
from gateway.protocol.revisions import Era

FORCED = frozenset({"session", "principal"})

WAITING_SHARE = 0.95
"""Of the time a call has, how much it may spend on waiting for a process."""


@dataclass(slots=True, eq=False)
class Apart:
    """The private side of one server."""

    isolation: str
    profiles: Profiles
    pool: Pool
    parked: Parked
    is_forced: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_forced = self.isolation in FORCED
        self.parked.freed = self._freed

    def concerns(self, call: Call) -> bool:
        """Whether this may be a call for here: decided from the call alone, at no cost.
        A completion asks nobody anything."""
        if self.is_forced or STATE in call.params:
            return True
        return call.caller.capabilities is not None and call.method != COMPLETE

    def whose(self, caller: Caller, era: Era) -> Whose | None:
        """The seat this caller needs with a server of this era; None: the shared connection."""
        profile: Profile | None = None
        if needs_apart(era):
            held = caller.declared or caller.capabilities
            profile = self.profiles.of(held) if held is not None else None
        return whose(self.isolation, caller, era, profile)

    async def call(self, wanted: Whose, call: Call) -> Outcome:
        try:
            return await self._call(wanted, call)
        except NotTaken:  # the conversation was over: the next seat has another
            return await self._call(wanted, call)

    async def _call(self, wanted: Whose, call: Call) -> Outcome:
        seat = await self.pool.take(wanted, _patience_s(call), call.spent)
        try:
            outcome = await seat.connection.outbound.call(call)
        except ServerFailure:  # an answer as good as any: the server is done
            self.pool.give_back(seat)
            raise
        except BaseException:
            self.pool.give_back(seat, clean=False)
            raise
        if not (isinstance(outcome, InputRequired) and outcome.ours):
            self.pool.give_back(seat)  # a parked call keeps it until it is over
        return outcome

    def _freed(self, leg: Leg) -> None:
        seat = self.pool.seat_over(leg.channel)
        if seat is not None:
            self.pool.give_back(seat, clean=not leg.given_up)

    def prepare(self, caller: Caller, era: Era) -> None:
        """A client has come that may need a process of its own."""
        wanted = self.whose(caller, era)
        if wanted is not None:
            self.pool.prepare(wanted)

    def expire(self) -> None:
        self.parked.expire()
        self.pool.expire()

    async def stop(self) -> None:
        """Let servers know that nobody will answer them, and give them up."""
        self.parked.close("The gateway is stopping")
        await self.pool.stop()


def _patience_s(call: Call) -> float:
    """How long it may wait for a process: nearly as long as it may take at all, so that its
    client is told for what it waited."""
    verdict = call.verdict
    return WAITING_SHARE * min(verdict.timeout.value, verdict.longest.value - call.spent.waited_s)
