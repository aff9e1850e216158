"""The calls running on one private connection: to which of them belongs what the server asks?

Over HTTP the stream tells, and of a task the question itself. Else, on a pipe, a legacy
server does not say. All calls of one session are one client's, so the newest is as good as
any. Where several clients share (`isolation: principal`), a question goes to the client
whose calls alone can have caused it, those included that have just ended; or to nobody.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gateway.calls.call import Call
from gateway.eras.legacy.leg import Leg
from gateway.protocol.jsonrpc import Json, Request, RequestId, shallow, value
from gateway.protocol.meta import RELATED_TASK

MOST_UNOWNED = 8
"""Questions before any call: servers ask for roots as soon as they are up."""


LATE_S = 1.0
"""How long after its answer to one client a server may still ask about that call."""
GIVEN_UP_S = 60.0
"""The same where it was given up without an answer: the server may be at it for long."""
MOST_LATE = 64


@dataclass(frozen=True, slots=True)
class Late:
    """A call that has ended, as far as the server may have something to ask about it."""

    session: str | None
    until: float
    given_up: bool


@dataclass(slots=True)
class Legs:
    refuse: Callable[[Request, int, str], None]
    clock: Callable[[], float] = time.monotonic
    _open: list[Leg] = field(default_factory=list)
    """Oldest first."""
    _late: list[Late] = field(default_factory=list)
    _unowned: list[Request] = field(default_factory=list)
    """Asked while no call ran, or beside one that was over too soon; put to the client with
    the next."""
    _are_overdue: bool = False
    """Some of them were left by a call."""
    _served: bool = False
    _session: str | None = None
    """Of every call so far; None: they are, or may be, of several clients."""

    def add(self, leg: Leg) -> None:
        """A call begins; it takes along what was asked before it."""
        is_first = not self._served
        self._session = leg.session if self._session == leg.session or is_first else None
        self._served = True
        self.prune()
        self._open.append(leg)
        unowned, self._unowned = self._unowned, []
        leg.is_overdue, self._are_overdue = self._are_overdue, False
        for question in unowned:
            if self._is_one_clients or is_first:
                leg.asked(question)
            else:  # it may be about a call of somebody else
                self._refuse(question)

    def prune(self) -> None:
        """Hold nothing of what has ended, but for a while whose it was."""
        now = self.clock()
        ended = [leg for leg in self._open if leg.end is not None]
        for leg in ended:
            until = now + (GIVEN_UP_S if leg.given_up else LATE_S)
            self._late.append(Late(leg.session, until, leg.given_up))
            for question in leg.left:
                self._put_off(question)
        self._late = [late for late in self._late if late.until > now][-MOST_LATE:]
        self._open = self._running()

    def _put_off(self, question: Request) -> None:
        """The call is over beside which it was asked: the next of the same client will do."""
        if self._is_one_clients and self._may_wait:
            self._unowned.append(question)
            self._are_overdue = True
        else:
            self._refuse(question)

    def asked(self, request: Request, about: RequestId | None = None) -> None:
        """`about`: the request on whose stream it came, where there is such a thing."""
        self.prune()
        running, is_certain = self._concerned(about, _task_of(request))
        if running and is_certain:
            ([leg for leg in running if leg.is_attached] or running)[-1].asked(request)
        elif not running and self._may_wait:
            self._unowned.append(request)
        else:
            self._refuse(request)

    def withdrawn(self, id_: Json) -> None:
        """The server no longer wants an answer to this question."""
        self._unowned = [asked for asked in self._unowned if asked.id != id_]
        for leg in self._open:
            leg.withdrawn(id_)

    def hearers(self, about: RequestId | None = None) -> Sequence[Call]:
        """The call that a log line is for, if that can be told."""
        self.prune()
        running, is_certain = self._concerned(about)
        heard = [leg.opened.call for leg in running if leg.is_attached and leg.opened.call]
        return heard[-1:] if is_certain else ()

    def _concerned(
        self, about: RequestId | None, task: str | None = None
    ) -> tuple[list[Leg], bool]:
        """The running calls that a message may be about, and whether they alone can be meant."""
        running = self._running(about)
        if about is not None or self._is_one_clients:
            return running, True
        if task is not None:  # its owner may not be waiting for it just now
            return [leg for leg in running if leg.task == task], True
        return running, self._are_of_one(running)

    def _are_of_one(self, running: list[Leg]) -> bool:
        """Whether these calls are one client's, and nobody else's has ended just before.
        Without sessions clients cannot be told apart: then one call is one client's."""
        one = running[0].session if running else None
        if any(leg.session != one for leg in running) or (one is None and len(running) > 1):
            return False
        return not any(
            late.session != one or (one is None and late.given_up) for late in self._late
        )

    @property
    def _is_one_clients(self) -> bool:
        return self._session is not None

    @property
    def _may_wait(self) -> bool:
        """Whether what is asked now may be put to whoever calls next. After a call of
        somebody who may be somebody else it may not: it can be about that call."""
        return len(self._unowned) < MOST_UNOWNED and (self._is_one_clients or not self._served)

    def _running(self, about: RequestId | None = None) -> list[Leg]:
        running = [leg for leg in self._open if leg.end is None]
        return running if about is None else [leg for leg in running if leg.opened.id == about]

    def _refuse(self, request: Request) -> None:
        self.refuse(request, -32601, "It cannot be told which client this question is for")


def _task_of(request: Request) -> str | None:
    """The task that a question says it is about."""
    related = shallow((shallow(request.params.get("_meta")) or {}).get(RELATED_TASK)) or {}
    id_ = value(related, "taskId")
    return id_ if isinstance(id_, str) else None
