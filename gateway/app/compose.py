"""Make every part of a gateway from its own section, and give it its neighbours.

The order of the stages a call passes is written here, once.
"""

import itertools
import secrets
import time
from asyncio import TaskGroup
from collections.abc import Callable, Mapping
from functools import partial

from gateway import __version__
from gateway.app.current import Current
from gateway.app.gateway import Gateway
from gateway.app.reports import Reports
from gateway.app.servers import Assembly
from gateway.calls.call import Call, InputRequired, Outcome
from gateway.calls.notices import Board, Owner
from gateway.calls.pipeline import chain
from gateway.calls.routing import Forward, Resolve
from gateway.calls.watching import Watching
from gateway.catalog.catalog import Catalog
from gateway.catalog.entries import OWN, Kind, Listing
from gateway.catalog.shelf import Shelf
from gateway.config.environ import state_folder
from gateway.config.loaded import Loaded
from gateway.config.model import Config
from gateway.downstream.fleet import Fleet
from gateway.downstream.memory import Memory
from gateway.downstream.seats import Places
from gateway.downstream.server import Downstream
from gateway.downstream.supervise import contained
from gateway.downstream.warden import Warden
from gateway.eras.entrance import Entrance
from gateway.eras.legacy.inbound import LegacyInbound
from gateway.eras.legacy.parked import Room
from gateway.eras.legacy.sessions import Session, Sessions
from gateway.eras.middle import Middle
from gateway.eras.modern.inbound import ModernInbound
from gateway.eras.profile import Profiles
from gateway.eras.questions import STATE, unknown_state
from gateway.eras.tasks import Tasks
from gateway.observe.audit import Audit
from gateway.observe.ledger import Ledger
from gateway.observe.metrics import Metrics
from gateway.observe.series import Series
from gateway.observe.sinks import RecordSink, Ring, Spool, log_sink
from gateway.observe.stream import LineStream
from gateway.observe.targets import FileTarget
from gateway.policy.authorize import authorize
from gateway.policy.background import Background
from gateway.policy.companion import LISTING, Companion
from gateway.policy.deadline import Deadline
from gateway.policy.throttle import Throttle
from gateway.protocol.meta import TASKS

LATER = frozenset({"completions", "logging"})
"""Capabilities that are advertised while some server may still turn out to have them."""

ONLY_IF_THERE = frozenset({"tasks", TASKS})
"""Others, experimental: clients go other ways for them."""


def compose(
    loaded: Loaded,
    environ: Mapping[str, str],
    tasks: TaskGroup,
    only: frozenset[str] | None = None,
    stream: LineStream | None = None,
) -> Gateway:
    """Every part, made from its own section and given its neighbours. Starts nothing."""
    config, clock = loaded.config, time.monotonic
    current = Current.of(loaded, only)
    us = {"name": "onegate", "version": __version__}

    def own() -> tuple[Listing, ...]:
        return (LISTING,) if current.rules.go_on or len(background) else ()

    shelf, board = Shelf(current.prefixes, config.names.longest, own), Board()
    fleet = Fleet(shelf, board, tasks, clock=clock)
    watching = Watching(fleet.watch, lambda work: tasks.create_task(contained(work, "watch")))

    ring, sinks = Ring(), _sinks(config, stream)
    spools = [sink for sink in sinks if isinstance(sink, Spool)]
    sessions: Sessions
    reports: Reports
    metrics = Metrics(lambda: reports.stats(), __version__)
    hour = Series(clock)
    with_arguments = config.calls.arguments == "redacted"
    ledger = Ledger([*sinks, hour], ring, metrics, with_arguments=with_arguments)

    throttle, deadline = Throttle(lambda server: current.rules.turns.get(server), clock), Deadline()
    new_id = _ids()
    background = Background(
        lambda work: tasks.create_task(contained(work, "background")),
        time.time,
        board,
        new_id,
        lambda call, asked: _abandoned(fleet, call, asked),
    )
    end = Forward(fleet.servers, clock, {OWN: Companion(background, time.time)})
    resolve = Resolve(
        lambda: shelf.current, lambda caller, entry: current.rules.verdict(caller, entry)
    )
    audit = Audit(ledger, clock, time.time)
    handle = chain(resolve, background, audit, authorize, throttle, deadline, end=end)
    refuse = chain(resolve, audit, authorize, end=_not_theirs)
    complete = chain(resolve, authorize, throttle, deadline, end=end)

    middle = Middle(
        handle=handle,
        refuse=refuse,
        complete=complete,
        offered=lambda: current.rules.offer(shelf.current),
        capabilities=lambda: _capabilities(shelf.current, fleet, current.rules.go_on),
        instructions=lambda: _instructions(current.config, shelf.current),
        board=board,
        watching=watching,
        wish_level=fleet.wish_level,
        new_id=new_id,
        us=us,
        abandon=lambda retry: _forsaken(fleet, retry),
        arrived=fleet.expect,
        roots_changed=fleet.roots_changed,
        tasks=Tasks(clock, board),
        background=background,
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
        current,
        fleet,
        shelf,
        sessions,
        ring,
        ledger,
        spools,
        metrics,
        handle,
        middle,
        hour,
        throttle,
        stream,
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
        partial(_published, fleet, metrics),
        Profiles(),
        Places(),
        Room(),
        lambda: current.config.limits,
    )
    for name, section in current.servers.items():
        fleet.add(assembly.server(name, section))
    gateway = Gateway(
        current,
        assembly,
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
    gateway.regard()
    return gateway


async def _published(
    fleet: Fleet,
    metrics: Metrics,
    server: Downstream,
    kinds: frozenset[Kind],
    owner: Owner | None,
) -> None:
    await fleet.published(server, kinds, owner)
    own = (e.route.name for e in fleet.shelf.current.of(Kind.TOOL) if e.route.server == server.name)
    metrics.listed(server.name, own)


async def _not_theirs(_call: Call) -> Outcome:
    raise unknown_state()


def _abandoned(fleet: Fleet, call: Call, asked: InputRequired) -> None:
    """Nobody will answer what the server asked in the middle of a call that goes on."""
    if asked.ours and call.entry is not None:
        fleet.abandon(call.entry.route.server, asked.result.get(STATE))


def _forsaken(fleet: Fleet, retry: Call) -> None:
    """Its server may have been replaced, or its name be none any more: its token finds it."""
    for server in fleet.succession.all:
        server.apart.parked.forsake(retry)


def _capabilities(catalog: Catalog, fleet: Fleet, go_on: bool) -> frozenset[str]:
    some = catalog.capabilities & ONLY_IF_THERE
    if go_on:
        some |= {TASKS}
    if any(not server.listing.capabilities for server in fleet.servers.values()):
        return LATER | some
    return (catalog.capabilities & LATER) | some


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


def _ids() -> Callable[[], str]:
    """Ids of calls: unique over restarts, cheap, and in order within one run."""
    run, count = secrets.token_hex(6), itertools.count(1)
    return lambda: f"{run}-{next(count)}"
