"""One conversation with a server, in one era: opened here, ended by its transport."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from gateway.calls.notices import ListChanged, Notice
from gateway.catalog.entries import Kind
from gateway.downstream.dialing import Dial
from gateway.downstream.environment import CannotStart
from gateway.downstream.link import Link
from gateway.downstream.transports.failures import NotAdmitted, WrongTransport
from gateway.downstream.transports.transport import Departure, Transport
from gateway.eras.negotiate import Private, may_take_an_older_one, offers, outbound
from gateway.eras.profile import Profile
from gateway.eras.sides import Greeting, Outbound
from gateway.protocol.errors import GatewayError, ServerFailure
from gateway.protocol.jsonrpc import Fields, Notification, Request
from gateway.protocol.revisions import Era, Revision

log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class Connection:
    """Open: the handshake is done. It ends when `wait_closed` of its transport returns."""

    era: Era
    transport: Transport
    link: Link
    outbound: Outbound
    greeting: Greeting
    offer: Revision
    profile: Profile | None = None
    """What the client it serves alone can answer; None: nobody can be asked over it."""

    @property
    def is_alive(self) -> bool:
        return self.link.departure is None


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens connections to one server."""

    dial: Dial
    us: Fields
    """Our own `clientInfo`."""
    start_timeout_s: float
    heard: Callable[["Connection", Notice], None]
    """What servers say that concerns everyone; under the server's own names."""
    retire: Callable[[Transport], None]
    """Stop one that is of no use, without waiting for it."""

    @property
    def server(self) -> str:
        return self.dial.server

    @contextmanager
    def keeping(self, one: Connection, others: Iterable[Connection]) -> Iterator[None]:
        """Within the block there are all; beyond it there is this one, unless it fails."""
        try:
            yield
        except BaseException:
            self.retire(one.transport)
            raise
        finally:
            for other in others:
                self.retire(other.transport)

    async def open(
        self, era: Era, remembered: str | None = None, private: Private | None = None
    ) -> Connection:
        """Open a conversation; for one over pipes that starts a process.

        A server that refuses our revision instead of negotiating is offered each older
        one, and one that does not know our transport the other one, each time from the
        beginning. Raises `CannotStart` or `GatewayError`.
        """
        try:
            return await self._propose(era, remembered, private)
        except NotAdmitted as error:
            raise CannotStart(error.message, permanent=True) from None
        except WrongTransport as first:
            if not self.dial.turn():
                raise
            try:
                return await self._propose(era, remembered, private)
            except WrongTransport as second:
                both = f"{first.message}; and {second.message}"
                raise GatewayError(both) from None

    async def _propose(
        self, era: Era, remembered: str | None, private: Private | None
    ) -> Connection:
        proposals = [r for r in offers(era) if remembered in (None, r.name)] or list(offers(era))
        for proposal in proposals[:-1]:
            try:
                return await self._open(era, proposal, private)
            except ServerFailure as error:
                if not may_take_an_older_one(error):
                    raise
                log.info("revision.refused", server=self.server, revision=proposal.name)
        return await self._open(era, proposals[-1], private)

    async def _open(self, era: Era, proposal: Revision, private: Private | None) -> Connection:
        told: list[Notification] = []  # before there is a connection to hear them
        link = Link(self.server, _nobody, told.append, _nobody)
        transport = await self.dial.open(era, link)
        link.pipe = transport
        speaker = outbound(era, link, self.us, proposal, private)
        link.on_asked = speaker.asked
        try:
            async with asyncio.timeout(self.start_timeout_s):
                greeting = await speaker.start()
        except TimeoutError:
            self.retire(transport)
            raise GatewayError(
                f"did not answer {era.value} handshake within {self.start_timeout_s:g} s"
            ) from None
        except BaseException:  # cancelled as well: nothing must be left behind
            self.retire(transport)
            raise
        connection = Connection(era, transport, link, speaker, greeting, proposal)
        connection.profile = private.profile if private else None
        link.on_told = lambda notification: self._told(connection, notification)
        link.on_missed = lambda: self._missed(connection)
        for notification in told:
            self._told(connection, notification)
        return connection

    def _missed(self, connection: Connection) -> None:
        for kind in Kind:
            self.heard(connection, ListChanged(kind, in_doubt=True))

    def _told(self, connection: Connection, notification: Notification) -> None:
        notice = connection.outbound.told(notification)
        if notice is not None:
            self.heard(connection, notice)


def _nobody(_: Request | Departure) -> None:
    """Nobody asks or leaves before the handshake is over; `start` sees it fail."""
