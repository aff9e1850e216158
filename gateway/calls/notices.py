"""What servers say unasked, in neutral form, and the board where clients hear of it.

`Emitted` notices belong to one call and ride its answer; a `Notice` concerns
everyone and goes through the board.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gateway.catalog.entries import Kind
from gateway.protocol.jsonrpc import Fields


class Progress(msgspec.Struct, frozen=True):
    """Params of `notifications/progress` as they came, without the token."""

    params: Fields


class LogLine(msgspec.Struct, frozen=True):
    """Params of `notifications/message` as they came; `logger` is prefixed with the server."""

    level: str
    params: Fields


Emitted = Progress | LogLine

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""RFC 5424 severities, most verbose first, as MCP spells them."""


class Owner(msgspec.Struct, frozen=True):
    """Whose own process something happened in: others have not seen it happen."""

    session: str | None = None
    """One client's; None: the principal's."""
    principal: str | None = None
    in_sessions: bool = False
    """The principal's sessions use it as well; else only its clients that have none."""

    def is_(self, principal: str | None, session: str | None = None) -> bool:
        """Whether such a client uses it."""
        if self.session is not None:
            return session == self.session
        return principal == self.principal and (self.in_sessions or session is None)


class ListChanged(msgspec.Struct, frozen=True):
    """Clients should read this list again (`resource` stands for templates too)."""

    kind: Kind
    owner: Owner | None = None
    """None: it concerns everybody."""
    in_doubt: bool = False
    """It may have: nobody could hear. Clients are told if it has."""


class ResourceUpdated(msgspec.Struct, frozen=True):
    """`uri` is the exposed one; `params` is what else the server said."""

    uri: str
    params: Fields
    owner: Owner | None = None


class TaskChanged(msgspec.Struct, frozen=True):
    """A server says how a task is: under its own id, which means something on `host` alone."""

    host: object
    id: str
    params: Fields


class HostReplaced(msgspec.Struct, frozen=True):
    """What lives at a server elsewhere is to be had over another connection from now on."""

    before: object
    after: Any
    """A `calls.call.Host`."""


class TaskTold(msgspec.Struct, frozen=True):
    """The same under our id; `session` is that of the legacy client who began it."""

    id: str
    session: str | None
    params: Fields


class Elicited(msgspec.Struct, frozen=True):
    """What a URL was visited for is done; `session` is that of the client who was sent there."""

    params: Fields
    session: str | None = None


class BackgroundMoved(msgspec.Struct, frozen=True):
    """A call that goes on by itself is not any more what it was."""

    going: Any
    """`policy.going_on.GoingOn`: what has become of it is read there."""


class Withdrawn(msgspec.Struct, frozen=True):
    """These principals may not be here any more, or not with the token they came with."""

    principals: frozenset[str | None]


Notice = (
    ListChanged
    | ResourceUpdated
    | TaskChanged
    | HostReplaced
    | TaskTold
    | Elicited
    | BackgroundMoved
    | Withdrawn
)
Hear = Callable[[Notice], None]
"""Neither awaits nor raises."""


@dataclass(slots=True)
class Board:
    """Where notices for everyone are put up. Whoever reads must not be slow: queue and return."""

    _hearers: dict[int, Hear] = field(default_factory=dict)
    _next: int = 0

    def subscribe(self, hear: Hear) -> Callable[[], None]:
        """Hear every notice from now on, until the returned function is called."""
        self._next += 1
        mine = self._next
        self._hearers[mine] = hear
        return lambda: self._hearers.pop(mine, None) and None

    def post(self, notice: Notice) -> None:
        for hear in tuple(self._hearers.values()):
            hear(notice)
