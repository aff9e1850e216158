"""Put one server together: how it is started, remembered, supervised, and kept apart."""

from asyncio import TaskGroup
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from gateway.calls.notices import Owner
from gateway.catalog.entries import Kind
from gateway.config.model import AnyServer, HttpServer, Limits
from gateway.downstream.apart import Apart
from gateway.downstream.backoff import RestartPolicy
from gateway.downstream.connection import Connection, Opener
from gateway.downstream.dialing import Dial, StdioDial
from gateway.downstream.environment import Launch
from gateway.downstream.fleet import Fleet
from gateway.downstream.memory import Memory, digest
from gateway.downstream.pool import Pool
from gateway.downstream.seats import Places, Whose
from gateway.downstream.server import Downstream
from gateway.downstream.supervise import contained
from gateway.downstream.warden import Warden
from gateway.eras.legacy.parked import Bounds, Parked, Room
from gateway.eras.negotiate import Private
from gateway.eras.profile import Profiles
from gateway.protocol.jsonrpc import Fields

PATIENT = RestartPolicy(exits_allowed=1_000_000)
"""For a server elsewhere: networks come back, and trying costs nobody a process."""


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
    published: Callable[[Downstream, frozenset[Kind], Owner | None], Awaitable[None]]
    profiles: Profiles
    places: Places
    room: Room
    limits: Callable[[], Limits]

    def bound(self) -> None:
        """Let all servers go by the limits there are now."""
        limits = self.limits()
        self.places.most, self.room.most_bytes = limits.processes, limits.parked_total_bytes
        self.places.line.stir()
        for server in self.fleet.succession.all:
            server.apart.parked.bounds = _bounds(limits)

    def server(self, name: str, section: AnyServer) -> Downstream:
        """One server, not yet started."""
        dial, key, policy = self._dial(name, section)
        retire = partial(self.fleet.retire, server=name, grace_s=section.stop_grace_s)
        opener = Opener(
            dial,
            self.us,
            section.start_timeout_s,
            partial(self.fleet.heard, name),
            retire,
        )
        parked = Parked(name, self.clock, _bounds(self.limits()), self.room)
        pool = Pool(
            name,
            partial(_open_private, opener, parked),
            lambda connection: server.learn(connection),
            retire,
            self.tasks,
            self.clock,
            self.places,
        )
        server = Downstream(
            name,
            section,
            opener,
            digest(key),
            self.memory,
            self.tasks,
            self.clock,
            self.published,
            self.fleet.connected,
            Apart(section.isolation, self.profiles, pool, parked),
            policy=policy,
        )
        pool.seated = partial(self.fleet.connected, server)
        pool.go_by(section)
        return server

    def _dial(self, name: str, section: AnyServer) -> tuple[Dial, list[str], RestartPolicy]:
        """How to reach it, what it is remembered under, and when to try again."""
        if isinstance(section, HttpServer):
            key = [name, "http", section.url, section.transport, *sorted(section.headers)]
            return self._afar(name, section), key, PATIENT
        launch = Launch.of(name, section, self.environ, self.line_bytes)
        key = [name, *launch.argv, str(launch.cwd), *sorted(section.env)]
        return StdioDial(launch, self.warden), key, RestartPolicy()

    def _afar(self, name: str, section: HttpServer) -> Dial:
        from gateway.downstream.afar import HttpDial
        from gateway.downstream.transports.remote import Web

        if self.fleet.web is None:
            self.fleet.web = Web(lambda work, of: self.tasks.create_task(contained(work, of)))
        return HttpDial(name, section, self.fleet.web, self.line_bytes)


def _bounds(limits: Limits) -> Bounds:
    return Bounds(
        limits.parked,
        limits.parked_per_principal,
        limits.rounds,
        limits.parked_call_bytes,
        limits.answer_s,
    )


async def _open_private(opener: Opener, parked: Parked, wanted: Whose) -> Connection:
    private = Private(wanted.profile, parked) if wanted.profile is not None else None
    return await opener.open(wanted.era, private=private)
