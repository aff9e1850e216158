"""How the conversation with a server is begun: by starting its program, or by HTTP."""

from dataclasses import dataclass, field
from typing import Protocol

import structlog
from yarl import URL

from gateway.config.model import AnyServer, HttpServer
from gateway.downstream.environment import Launch
from gateway.downstream.transports.http import HttpTransport
from gateway.downstream.transports.remote import Remote, Tls, Web
from gateway.downstream.transports.sse import SseTransport
from gateway.downstream.transports.stdio import StdioTransport
from gateway.downstream.transports.transport import StreamSink, Transport
from gateway.downstream.warden import Warden
from gateway.eras.manner import Learnt
from gateway.eras.over_http import manner_of
from gateway.protocol.revisions import Era

log = structlog.get_logger()


def in_short(section: AnyServer) -> tuple[str, ...]:
    """The program, or the origin: an argument may be a secret, and so may a path or query."""
    if isinstance(section, HttpServer):
        return (str(URL(section.url).origin()),)
    return (section.command,)


class Dial(Protocol):
    """One server's; it remembers between two openings what the first one found out."""

    @property
    def server(self) -> str:
        """Its key in the configuration."""

    @property
    def shown(self) -> tuple[str, ...]:
        """What is started, or where it is, for operators: secrets masked."""

    async def open(self, era: Era, sink: StreamSink) -> Transport:
        """A transport for a conversation in this era. Raises `CannotStart`."""

    def turn(self) -> bool:
        """The transport was not understood: take another from now on. False: there is none."""

    def recall(self, way: str | None) -> None:
        """Begin with the transport that an earlier run of the gateway found."""


@dataclass(frozen=True, slots=True)
class StdioDial:
    """Starts a process."""

    launch: Launch
    warden: Warden | None = None
    """Sees to the processes if the gateway is killed outright."""
    shown: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        words = self.launch.argv
        for secret in filter(None, self.launch.secrets):
            words = tuple(word.replace(secret, "***") for word in words)
        object.__setattr__(self, "shown", words)

    @property
    def server(self) -> str:
        return self.launch.server

    async def open(self, era: Era, sink: StreamSink) -> Transport:
        return await StdioTransport.start(self.launch, sink, self.warden)

    def turn(self) -> bool:
        return False

    def recall(self, way: str | None) -> None:
        """There is but one way."""


WAYS = {"http": "sse", "sse": "http"}
"""Each transport over HTTP, and the one to try where it is not understood."""


@dataclass(slots=True, eq=False)
class HttpDial:
    """Reaches a server elsewhere."""

    server: str
    section: HttpServer
    web: Web
    line_bytes: int
    """Of one message; see `limits.line`."""
    learnt: Learnt = field(default_factory=Learnt)
    _way: str = "http"

    def __post_init__(self) -> None:
        if self.section.transport != "auto":
            self._way = self.section.transport

    @property
    def shown(self) -> tuple[str, ...]:
        return in_short(self.section)

    async def open(self, era: Era, sink: StreamSink) -> Transport:
        section, manner = self.section, manner_of(era, self.learnt)
        remote = Remote(
            self.server,
            URL(section.url),
            self.web,
            section.headers,
            await Tls(section.ca, section.cert, section.key).context(),
            section.proxy,
            section.connect_timeout_s,
        )
        if manner.opens and self._way == "sse":
            return SseTransport(remote, manner, sink, self.line_bytes)
        return HttpTransport(remote, manner, sink, self.line_bytes)

    def turn(self) -> bool:
        if self.section.transport != "auto":
            return False
        self._way = WAYS[self._way]
        log.info("transport.changed", server=self.server, transport=self._way)
        return True

    def recall(self, way: str | None) -> None:
        if self.section.transport == "auto" and way in WAYS:
            self._way = way
