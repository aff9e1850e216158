"""Put a gateway together from its configuration; start it, stop it.

The order of everything is written here once: of the stages a call passes, of what
starts after what, and of what stops before what.
"""

import asyncio
import itertools
import secrets
import time
from asyncio import TaskGroup
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry

from gateway import __version__
from gateway.app.reports import Reports
from gateway.app.servers import Assembly
from gateway.calls.notices import Board
from gateway.calls.pipeline import chain
from gateway.calls.routing import Forward, Resolve
from gateway.calls.watching import Watching
from gateway.catalog.catalog import Catalog
from gateway.catalog.entries import Kind
from gateway.catalog.shelf import Shelf
from gateway.config.load import Loaded
from gateway.config.model import Config
from gateway.config.units import Address
from gateway.downstream.fleet import Fleet
from gateway.downstream.memory import Memory
from gateway.downstream.pool import Places
from gateway.downstream.server import Downstream
from gateway.downstream.supervise import contained
from gateway.downstream.warden import Warden
from gateway.edge.admin.pages import AdminPages
from gateway.edge.endpoint import Endpoint
from gateway.edge.guard import Guard, own_names
from gateway.edge.listener import Listener
from gateway.edge.pulse import Pulse
from gateway.edge.sockets import Bound, bind
from gateway.eras.entrance import Entrance
from gateway.eras.legacy.inbound import LegacyInbound
from gateway.eras.legacy.sessions import Session, Sessions
from gateway.eras.middle import Middle
from gateway.eras.modern.inbound import ModernInbound
from gateway.eras.profile import Profiles
from gateway.identity.tokens import Tokens
from gateway.observe.audit import Audit
from gateway.observe.lag import watch_lag
from gateway.observe.ledger import Ledger
from gateway.observe.metrics import Metrics
from gateway.observe.sinks import RecordSink, Ring, Spool, log_sink
from gateway.observe.stream import LineStream
from gateway.observe.targets import FileTarget
from gateway.policy.authorize import authorize
from gateway.policy.deadline import Deadline
from gateway.policy.rules import Rules
from gateway.policy.throttle import Throttle

log = structlog.get_logger()

LATER = frozenset({"completions", "logging"})
"""Capabilities that are advertised while some server may still turn out to have them."""

EXPIRE_EVERY_S = 5.0
FLUSH_WITHIN_S = 5.0
"""How long the record may take to be written out at the end."""


@dataclass(slots=True, eq=False)
class Gateway:
    """A gateway that is up: its servers run or try to. Listening is a step of its own."""

    loaded: Loaded
    fleet: Fleet
    entrance: Entrance
    middle: Middle
    sessions: Sessions
    operator: Reports
    metrics: Metrics
    warden: Warden
    tasks: TaskGroup
    spools: tuple[Spool, ...] = ()
    listening: tuple[Address, ...] = ()
    """Where clients connect, with real ports."""
    admin: Address | None = None
    _endpoint: Listener | None = None
    _admin_listener: Listener | None = None
    _beside: list["asyncio.Task[None]"] = field(default_factory=list)

    @property
    def config(self) -> Config:
        return self.loaded.config

    async def listen(self) -> None:
        """Serve clients and the operator from now on. Raises `CannotListen`."""
        config, tokens = self.config, _tokens(self.config)
        if config.admin is not None:
            bound = await bind([config.admin], "admin")
            self.admin = bound[0].address
            names = own_names([self.admin], config.allowed_hosts, ())
            pages = AdminPages(
                self.operator,
                Guard(names, tokens),
                is_local=self.admin.is_loopback,
                request_s=config.limits.request_s,
            )
            self._admin_listener = await self._start(pages, bound)
        bound = await bind(config.listen, "listen")
        self.listening = tuple(one.address for one in bound)
        names = own_names(self.listening, config.allowed_hosts, config.allowed_origins)
        pulse = Pulse(head_s=config.limits.request_s)
        endpoint = Endpoint(
            self.entrance,
            Guard(names, tokens),
            pulse,
            self.tasks,
            body_bytes=config.limits.body_bytes,
            request_s=config.limits.request_s,
        )
        self._endpoint = Listener(
            endpoint.serve, pulse, self.tasks, header_bytes=config.limits.header_bytes
        )
        await self._endpoint.start(bound)
        self.operator.is_open = True

    async def stop(self) -> None:
        """Stop in the order that loses least; bounded by the sum of its bounds: `drain`,
        the longest ladder of a server, and what it takes to write the record out."""
        self.operator.is_open = False  # /readyz says so while calls finish
        self.middle.closing.set()
        if self._endpoint is not None:
            await self._endpoint.drain(self.config.limits.drain_s)
        self.sessions.close_all()
        await self.fleet.stop()
        for spool in self.spools:
            await asyncio.to_thread(spool.close, FLUSH_WITHIN_S)
        if self._admin_listener is not None:
            await self._admin_listener.drain(0.0)
        for task in self._beside:
            task.cancel()
        self.warden.close()

    def run_beside(self) -> None:
        """What goes on as long as the gateway does."""
        lag = watch_lag(self.metrics.lagged, time.monotonic)
        self._beside = [
            self.tasks.create_task(lag),
            self.tasks.create_task(self._expire_sessions()),
        ]

    async def _expire_sessions(self) -> None:
        while True:
            await asyncio.sleep(min(EXPIRE_EVERY_S, self.config.limits.session_idle_s / 4))
            self.sessions.expire()
            self.fleet.expire()

    async def _start(self, pages: AdminPages, bound: Sequence[Bound]) -> Listener:
        pulse = Pulse(head_s=self.config.limits.request_s)
        listener = Listener(
            pages.serve, pulse, self.tasks, header_bytes=self.config.limits.header_bytes
        )
        await listener.start(bound)
        return listener


@asynccontextmanager
async def running(
    loaded: Loaded,
    environ: Mapping[str, str],
    only: frozenset[str] | None = None,
    stream: LineStream | None = None,
) -> AsyncIterator[Gateway]:
    """A gateway with its servers starting (`only` some, by key); stopped on the way out.

    `stream` is the log's, where the record may have to go as well.
    """
    async with TaskGroup() as tasks:
        gateway = compose(loaded, environ, tasks, only, stream)
        gateway.run_beside()
        gateway.fleet.start()
        try:
            yield gateway
        finally:
            await gateway.stop()


def compose(
    loaded: Loaded,
    environ: Mapping[str, str],
    tasks: TaskGroup,
    only: frozenset[str] | None = None,
    stream: LineStream | None = None,
) -> Gateway:
    """Every part, made from its own section and given its neighbours. Starts nothing."""
    config, clock = loaded.config, time.monotonic
    us = {"name": "onegate", "version": __version__}
    wanted = {
        name: section
        for name, section in config.servers.items()
        if not section.disabled and (only is None or name in only)
    }
    prefixes = {n: n if s.prefix is None else s.prefix for n, s in config.servers.items()}
    shelf, board = Shelf(prefixes, config.names.longest), Board()
    rules = Rules(config.tools, config.default_decision, config.servers, partial(_where, loaded))
    fleet = Fleet(shelf, board, tasks, stop_grace_s=5.0, clock=clock)
    watching = Watching(fleet.watch, lambda work: tasks.create_task(contained(work, "watch")))

    ring, sinks = Ring(), _sinks(config, stream)
    spools = [sink for sink in sinks if isinstance(sink, Spool)]
    sessions: Sessions
    reports: Reports
    metrics = Metrics(CollectorRegistry(), lambda: reports.stats(), __version__)
    ledger = Ledger(sinks, ring, metrics)

    throttle, deadline = Throttle(rules.turns.get, clock), Deadline()
    end = Forward(fleet.servers, clock)
    resolve = Resolve(lambda: shelf.current, rules.verdict)
    audit = Audit(ledger, clock, time.time, config.calls.arguments == "redacted")
    handle = chain(resolve, audit, authorize, throttle, deadline, end=end)
    complete = chain(resolve, authorize, throttle, deadline, end=end)

    middle = Middle(
        handle=handle,
        complete=complete,
        offered=lambda: rules.offer(shelf.current),
        capabilities=lambda: _capabilities(shelf.current, fleet),
        instructions=lambda: _instructions(config, shelf.current),
        board=board,
        watching=watching,
        wish_level=fleet.wish_level,
        new_id=_ids(),
        us=us,
        abandon=fleet.abandon,
        arrived=fleet.expect,
        roots_changed=fleet.roots_changed,
        timed=metrics.served,
        clock=clock,
    )

    def ended(session: Session) -> None:
        legacy.ended(session)
        fleet.ended(session.id)

    sessions = Sessions(config.limits.sessions, config.limits.session_idle_s, clock, ended)
    legacy = LegacyInbound(middle, sessions)
    entrance = Entrance(legacy, ModernInbound(middle))
    reports = Reports(
        config, fleet, shelf, rules, sessions, ring, spools, metrics, handle, middle, stream
    )

    warden = Warden()
    assembly = Assembly(
        fleet,
        Memory(state_folder(environ)),
        warden,
        tasks,
        clock,
        environ,
        us,
        config.limits.line_bytes,
        lambda server, kinds: _published(fleet, metrics, server, kinds),
        Profiles(),
        Places(),
    )
    for name, section in wanted.items():
        fleet.add(assembly.server(name, section))
    return Gateway(
        loaded,
        fleet,
        entrance,
        middle,
        sessions,
        reports,
        metrics,
        warden,
        tasks,
        tuple(spools),
    )


def state_folder(environ: Mapping[str, str]) -> Path | None:
    """Where to remember servers; None if there is no place to think of."""
    if chosen := environ.get("ONEGATE_STATE"):
        return Path(chosen)
    if base := environ.get("XDG_STATE_HOME"):
        return Path(base) / "onegate"
    home = environ.get("HOME") or environ.get("USERPROFILE")
    return Path(home) / ".local" / "state" / "onegate" if home else None


async def _published(
    fleet: Fleet, metrics: Metrics, server: Downstream, kinds: frozenset[Kind]
) -> None:
    await fleet.published(server, kinds)
    own = (e.route.name for e in fleet.shelf.current.of(Kind.TOOL) if e.route.server == server.name)
    metrics.listed(server.name, own)


def _capabilities(catalog: Catalog, fleet: Fleet) -> frozenset[str]:
    if any(not server.listing.capabilities for server in fleet.servers.values()):
        return LATER
    return catalog.capabilities & LATER


def _instructions(config: Config, catalog: Catalog) -> str | None:
    told = [text for text in (config.instructions, catalog.instructions) if text]
    return "\n\n".join(told) or None


def _sinks(config: Config, stream: LineStream | None) -> list[RecordSink]:
    sinks: list[RecordSink] = []
    if config.calls.path is not None:
        file = FileTarget(config.calls.path)
        sinks.append(Spool(file, str(config.calls.path), time.monotonic))
    if config.calls.stderr and stream is not None:
        sinks.append(log_sink(stream, time.monotonic))
    return sinks


def _where(loaded: Loaded, path: tuple[str | int, ...]) -> str:
    """FILE:LINE of a setting, for whoever wonders where a limit comes from."""
    line = loaded.marks.line_of(path)
    return "default" if line is None else f"{loaded.file.name}:{line}"


def _tokens(config: Config) -> Tokens | None:
    return Tokens(config.auth.tokens) if config.auth.mode == "tokens" else None


def _ids() -> Callable[[], str]:
    """Ids of calls: unique over restarts, cheap, and in order within one run."""
    run, count = secrets.token_hex(6), itertools.count(1)
    return lambda: f"{run}-{next(count)}"
