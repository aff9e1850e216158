"""Who may share a process of a server with whom, and how many processes there may be."""

from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.calls.call import Caller
from gateway.calls.notices import Owner
from gateway.downstream.connection import Connection
from gateway.downstream.waiting import WaitingLine
from gateway.eras.profile import Profile
from gateway.protocol.revisions import Era

Key = tuple[str | None, ...]
"""Whose: the kind of seat, and the session or principal it belongs to."""


@dataclass(frozen=True, slots=True)
class Whose:
    """The seat a call needs, where the shared connection will not do."""

    key: Key
    profile: Profile | None
    era: Era
    is_lease: bool = False

    @property
    def owner(self) -> Owner:
        kind, name = self.key
        if kind == "session":
            return Owner(session=name)
        return Owner(principal=name, in_sessions=kind == "principal")

    def is_like(self, other: "Whose") -> bool:
        """Whether a process started for one would do for the other."""
        return (self.profile, self.era) == (other.profile, other.era)


def whose(isolation: str, caller: Caller, era: Era, profile: Profile | None) -> Whose | None:
    """Who may share a process with whom (`isolation` of the server); None: everybody.

    `auto`: a client that cannot be asked anything shares with all such; one that can is
    kept apart, so that no question can reach the wrong person.
    """
    mine = ("principal", caller.principal)
    sessionless = ("sessionless", caller.principal)
    theirs = sessionless if caller.session is None else ("session", caller.session)
    match isolation:
        case "shared":
            return None
        case "principal":
            return Whose(mine, profile, era)
        case "session":  # a modern client has none: the next best is who it is
            return Whose(theirs, profile, era)
    if profile is None:
        return None
    if caller.session is None:
        return Whose(("lease", caller.principal), profile, era, is_lease=True)
    return Whose(theirs, profile, era)


@dataclass(slots=True, eq=False)
class Seat:
    of: Whose
    connection: Connection
    users: int = 0
    """Calls at work on it, parked ones included."""
    idle_since: float = 0.0
    is_forsaken: bool = False
    """Nobody has a claim to it any more."""

    def serves(self, wanted: Whose) -> bool:
        """A lease is for one call at a time, and then for the next of the same principal."""
        return self.of == wanted and not (wanted.is_lease and self.users)


@dataclass(frozen=True, slots=True)
class Place:
    """Room for one more process, claimed before it is started."""


@dataclass(slots=True)
class Places:
    """How many private processes there may be, over all servers."""

    most: int = 256
    taken: int = 0
    line: WaitingLine[Seat | Place] = field(default_factory=WaitingLine)
    """Calls for which there is neither a seat nor room for one."""
    yielding: list[Callable[[bool], bool]] = field(default_factory=list)
    """Pools that can make room: asked whether they will, sessions' own processes included
    or not; say whether they did."""

    def take(self) -> bool:
        """One more, if need be in the place of whatever idles. False: all are at work."""
        for sessions_too in (False, True):
            if self.taken < self.most:
                break
            any(make_room(sessions_too) for make_room in tuple(self.yielding))
        if self.taken >= self.most:
            return False
        self.taken += 1
        return True

    def take_spare(self) -> bool:
        """One more, if nobody has to go for it."""
        if self.taken >= self.most:
            return False
        self.taken += 1
        return True

    def give(self) -> None:
        self.taken -= 1
        self.line.stir()
