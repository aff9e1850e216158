"""The calls running on one private connection: to which of them belongs what the server asks?

Over HTTP the stream tells. On a pipe a legacy server does not say. All calls of one
session are one client's, so the newest is as good as any. Where several clients share
(`isolation: principal`), a question goes to the only call there is, or to nobody.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gateway.calls.call import Call
from gateway.eras.legacy.leg import Leg
from gateway.protocol.jsonrpc import Json, Request, RequestId

MOST_UNOWNED = 8
"""Questions before any call: servers ask for roots as soon as they are up."""


@dataclass(slots=True)
class Legs:
    refuse: Callable[[Request, int, str], None]
    _open: list[Leg] = field(default_factory=list)
    """Oldest first."""
    _unowned: list[Request] = field(default_factory=list)
    """Asked while no call ran; put to the client with the next."""
    _served: bool = False
    _session: str | None = None
    """Of every call so far; None: they are, or may be, of several clients."""

    def add(self, leg: Leg) -> None:
        """A call begins; it takes along what was asked before it."""
        self._session = leg.session if self._session == leg.session or not self._served else None
        self._served = True
        self._open = [*self._running(), leg]
        unowned, self._unowned = self._unowned, []
        for question in unowned:
            if self._is_one_clients or len(self._open) == 1:
                leg.asked(question)
            else:
                self._refuse(question)

    def prune(self) -> None:
        """Hold nothing of what has ended."""
        self._open = self._running()

    def asked(self, request: Request, about: RequestId | None = None) -> None:
        """`about`: the request on whose stream it came, where there is such a thing."""
        running = self._running(about)
        if self._is_one_clients:
            running = [leg for leg in running if leg.is_attached] or running
        if running and (len(running) == 1 or self._is_one_clients):
            running[-1].asked(request)
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
        running = self._running(about)
        heard = [leg.opened.call for leg in running if leg.is_attached and leg.opened.call]
        if self._is_one_clients:
            return heard[-1:]
        return heard if len(running) == 1 else ()

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
