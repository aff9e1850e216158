"""Put one server together: how it is started, remembered, supervised, and kept apart."""

from asyncio import TaskGroup
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from gateway.catalog.entries import Kind
from gateway.config.model import StdioServer
from gateway.downstream.apart import Apart
from gateway.downstream.connection import Connection, Opener
from gateway.downstream.dialing import StdioDial
from gateway.downstream.environment import Launch
from gateway.downstream.fleet import Fleet
from gateway.downstream.memory import Memory, digest
from gateway.downstream.pool import Pool
from gateway.downstream.seats import Places, Whose
from gateway.downstream.server import Downstream
from gateway.downstream.warden import Warden
from gateway.eras.legacy.parked import Parked
from gateway.eras.negotiate import Private
from gateway.eras.profile import Profiles
from gateway.protocol.jsonrpc import Fields

Published = Callable[[Downstream, frozenset[Kind]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Assembly:
    """What all servers of a gateway share."""

    fleet: Fleet
    memory: Memory
    warden: Warden
    tasks: TaskGroup
    clock: Callable[[], float]
    environ: Mapping[str, str]
    us: Fields
    line_bytes: int
    published: Published
    profiles: Profiles
    places: Places

    def server(self, name: str, section: StdioServer) -> Downstream:
        """One server, not yet started."""
        launch = Launch.of(name, section, self.environ, self.line_bytes)
        opener = Opener(
            StdioDial(launch, self.warden),
            self.us,
            section.start_timeout_s,
            partial(self.fleet.heard, name),
            self.fleet.retire,
        )
        parked = Parked(name, self.clock)

        async def opened(connection: Connection) -> None:
            await server.learn(connection)
            self.fleet.connected(server, connection)

        pool = Pool(
            name,
            partial(_open_private, opener, parked),
            opened,
            self.fleet.retire,
            self.tasks,
            self.clock,
            self.places,
        )
        server = Downstream(
            name,
            section,
            opener,
            digest([*launch.argv, str(launch.cwd), *sorted(section.env)]),
            self.memory,
            self.tasks,
            self.clock,
            self.published,
            self.fleet.connected,
            Apart(section.isolation, self.profiles, pool, parked),
        )
        return server


async def _open_private(opener: Opener, parked: Parked, wanted: Whose) -> Connection:
    private = Private(wanted.profile, parked) if wanted.profile is not None else None
    return await opener.open(wanted.era, private=private)
