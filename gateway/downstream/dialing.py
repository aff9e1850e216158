"""How the conversation with a server is begun: by starting its program, or by HTTP (`afar`)."""

from dataclasses import dataclass, field
from typing import Protocol

from yarl import URL

from gateway.config.model import AnyServer, HttpServer
from gateway.downstream.environment import Launch
from gateway.downstream.transports.stdio import StdioTransport
from gateway.downstream.transports.transport import StreamSink, Transport
from gateway.downstream.warden import Warden
from gateway.protocol.revisions import Era


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
