"""One running process of a server, and the conversation with it in one era."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from gateway.calls.notices import Notice
from gateway.downstream.environment import Launch
from gateway.downstream.link import Link
from gateway.downstream.transports.stdio import Departure, StdioTransport
from gateway.downstream.warden import Warden
from gateway.eras.negotiate import Private, may_take_an_older_one, offers, outbound
from gateway.eras.sides import Greeting, Outbound
from gateway.protocol.errors import GatewayError, ServerFailure
from gateway.protocol.jsonrpc import Fields, Notification, Request
from gateway.protocol.revisions import Era, Revision

log = structlog.get_logger()


class Process(Protocol):
    """A transport, as far as a connection needs one."""

    @property
    def pid(self) -> int: ...
    async def stop(self, grace_s: float) -> None: ...
    async def wait_closed(self) -> Departure: ...


@dataclass(slots=True, eq=False)
class Connection:
    """Open: the handshake is done. It ends when `wait_closed` of its process returns."""

    era: Era
    process: Process
    link: Link
    outbound: Outbound
    greeting: Greeting
    offer: Revision

    @property
    def is_alive(self) -> bool:
        return self.link.departure is None


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens connections to one server."""

    launch: Launch
    us: Fields
    """Our own `clientInfo`."""
    start_timeout_s: float
    heard: Callable[["Connection", Notice], None]
    """What servers say that concerns everyone; under the server's own names."""
    retire: Callable[[Process], None]
    """Stop a process that is of no use, without waiting for it."""
    warden: Warden | None = None
    """Sees to its processes if the gateway is killed outright."""

    async def open(
        self, era: Era, remembered: str | None = None, private: Private | None = None
    ) -> Connection:
        """Start a process and open the conversation.

        A server that refuses our revision instead of negotiating is offered each older
        one, on a process of its own. Raises `CannotStart` or `GatewayError`.
        """
        proposals = [r for r in offers(era) if remembered in (None, r.name)] or list(offers(era))
        for proposal in proposals[:-1]:
            try:
                return await self._open(era, proposal, private)
            except ServerFailure as error:
                if not may_take_an_older_one(error):
                    raise
                log.info("revision.refused", server=self.launch.server, revision=proposal.name)
        return await self._open(era, proposals[-1], private)

    async def _open(self, era: Era, proposal: Revision, private: Private | None) -> Connection:
        told: list[Notification] = []  # before there is a connection to hear them
        link = Link(self.launch.server, _nobody, told.append, _nobody)
        process = await StdioTransport.start(self.launch, link, self.warden)
        link.pipe = process
        speaker = outbound(era, link, self.us, proposal, private)
        link.on_asked = speaker.asked
        try:
            async with asyncio.timeout(self.start_timeout_s):
                greeting = await speaker.start()
        except TimeoutError:
            self.retire(process)
            raise GatewayError(
                f"did not answer {era.value} handshake within {self.start_timeout_s:g} s"
            ) from None
        except BaseException:  # cancelled as well: the process must not be left behind
            self.retire(process)
            raise
        connection = Connection(era, process, link, speaker, greeting, proposal)
        link.on_told = lambda notification: self._told(connection, notification)
        for notification in told:
            self._told(connection, notification)
        return connection

    def _told(self, connection: Connection, notification: Notification) -> None:
        notice = connection.outbound.told(notification)
        if notice is not None:
            self.heard(connection, notice)


def _nobody(_: Request | Departure) -> None:
    """Nobody asks or leaves before the handshake is over; `start` sees it fail."""
