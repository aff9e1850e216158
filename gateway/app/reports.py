"""The running gateway as its operator sees it: implements `edge.admin.operator.Operator`."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from gateway.app.current import Current
from gateway.calls.call import Caller, Emit, silent
from gateway.calls.pipeline import Handler
from gateway.catalog.entries import Entry, Kind
from gateway.catalog.shelf import Shelf
from gateway.downstream.dialing import in_short
from gateway.downstream.fleet import Fleet
from gateway.downstream.lane import Lane
from gateway.downstream.server import Downstream
from gateway.edge.admin.operator import (
    CallFilter,
    Check,
    Explanation,
    Readiness,
    SecondReport,
    ServerReport,
    Setting,
    ToolReport,
)
from gateway.eras.legacy.parked import EVENTS
from gateway.eras.legacy.sessions import Sessions
from gateway.eras.middle import Middle
from gateway.observe.ledger import Ledger
from gateway.observe.metrics import GatewayStats, Metrics, ServerStats
from gateway.observe.series import Series
from gateway.observe.sinks import Ring, Spool
from gateway.observe.stream import LineStream
from gateway.policy.throttle import Throttle
from gateway.protocol.errors import GatewayError, wire_code
from gateway.protocol.jsonrpc import Request, raw, value
from gateway.protocol.methods import CALL_TOOL
from gateway.protocol.revisions import KNOWN

if TYPE_CHECKING:
    from gateway.edge.crowd import Crowd

OPERATOR = Caller(KNOWN[-1], principal="operator", client="onegate")
"""Who makes the calls of `onegate call`: in the record like anybody else's."""


NEVER = dict.fromkeys(("exit", "signal", "start", "crashed"), 0)
"""Restarts by reason begin at 0: `rate()` cannot see the first event of a series that
begins at 1."""


UNEVENTFUL = dict.fromkeys(EVENTS, 0)
"""For the same reason."""


class CanReload(Protocol):
    """`app.reload.Reloader`, which knows the gateway that these reports are part of."""

    async def reload(self) -> msgspec.Struct: ...


@dataclass(slots=True, eq=False)
class Reports:
    current: Current
    fleet: Fleet
    shelf: Shelf
    sessions: Sessions
    ring: Ring
    ledger: Ledger
    spools: Sequence[Spool]
    gauges: Metrics
    handle: Handler
    middle: Middle
    hour: Series
    throttle: Throttle
    stream: LineStream | None = None
    """The log's."""
    reloader: "CanReload | None" = None
    _reload: tuple[bool, float | None] = (True, None)
    is_open: bool = False
    """Clients can connect, and are not being sent away."""
    crowds: "list[Crowd]" = field(default_factory=list)
    """Of every listener."""

    def servers(self) -> Sequence[ServerReport]:
        waiting = self._waiting()
        return [
            self._report(self.fleet.servers[name], waiting[name])
            if name in self.fleet.servers
            else ServerReport(name, "disabled", command=in_short(section))
            for name, section in self.current.config.servers.items()
        ]

    def tools(self) -> Sequence[ToolReport]:
        return [self._tool(entry) for entry in self.shelf.current.of(Kind.TOOL)]

    def explain(self, name: str) -> Explanation | None:
        entry = self.shelf.current.resolve(Kind.TOOL, name)
        if entry is None:
            return None
        verdict = self.current.rules.verdict(None, entry)
        return Explanation(
            entry.name,
            entry.route.server,
            entry.route.name,
            "allow" if verdict.allowed else "deny",
            verdict.rule,
            tuple(
                Setting(one.setting, one.value, one.source)
                for one in self.current.rules.explain(entry)
            ),
        )

    def calls(self, last: int, only: CallFilter) -> Sequence[Any]:
        self.ledger.flush()
        wanted = {k: v for k, v in msgspec.structs.asdict(only).items() if v is not None}
        records = (msgspec.json.decode(line) for line in self.ring.since(0))
        fitting = [r for r in records if all(_says(r, k, v) for k, v in wanted.items())]
        return fitting[-last:] if last else []

    def totals(self) -> Sequence[Any]:
        self.ledger.flush()
        return self.hour.totals()

    def series(self, tool: str) -> Any:
        self.ledger.flush()
        return self.hour.of(tool)

    def _waiting(self) -> Counter[str]:
        """Calls that wait for a turn, by server."""
        found: Counter[str] = Counter()
        for kind, name, calls in self.throttle.waiting():
            entry = None if kind == "server" else self.shelf.current.resolve(Kind(kind), name)
            found[name if entry is None else entry.route.server] += calls
        return found

    async def call(
        self, name: str, arguments: Mapping[str, Any], emit: Emit | None = None
    ) -> Mapping[str, Any]:
        request = Request("operator", CALL_TOOL, {"name": name, "arguments": raw(arguments)})
        try:
            outcome = await self.handle(self.middle.call(request, OPERATOR, 0, emit or silent))
        except GatewayError as error:
            told = {"code": wire_code(error), "message": error.message, "kind": error.kind}
            return {"error": told}
        return {"result": outcome.result}

    def ready(self) -> Readiness:
        checks = [Check("listening", self.is_open, None if self.is_open else "not accepting calls")]
        for name, server in self.fleet.servers.items():
            if server.section.required:
                why = None if server.is_ready else server.main.reason or server.main.phase.value
                checks.append(Check(f"server {name}", server.is_ready, why))
        return Readiness(all(check.ok for check in checks), tuple(checks))

    async def metrics(self, accept: str) -> tuple[bytes, str]:
        self.ledger.flush()
        return await self.gauges.scrape(accept)

    async def reload(self) -> Any:
        """Read the configuration again; what came of it, as JSON."""
        if self.reloader is None:
            return {"ok": False, "error": "This gateway cannot read its configuration again"}
        return msgspec.to_builtins(await self.reloader.reload())

    def reloaded(self, at: float, *, ok: bool) -> None:
        """The configuration was read again, for better or worse (seconds since 1970)."""
        self._reload = (ok, at if ok else self._reload[1])

    def stats(self) -> GatewayStats:
        """The state of things, for one scrape."""
        return GatewayStats(
            tuple(map(self._stats, self.fleet.servers.values())),
            {"legacy": len(self.sessions)},
            not any(spool.is_blocked for spool in self.spools),
            sum(spool.dropped for spool in self.spools),
            self.stream.dropped if self.stream else 0,
            *self._reload,
            sum(crowd.refused for crowd in self.crowds),
        )

    def _stats(self, server: Downstream) -> ServerStats:
        """Of whatever runs under its name, one that is being replaced included."""
        sides = [one.apart for one in self.fleet.of(server.name)]
        processes: Counter[str] = Counter()
        for side in sides:
            processes.update(side.pool.uses)
        return ServerStats(
            server.name,
            server.is_ready,
            self.fleet.in_flight(server.name),
            {**NEVER, **server.restarts},
            sum(len(side.parked) for side in sides),
            sum(side.parked.held_bytes for side in sides),
            {**UNEVENTFUL, **server.apart.parked.events},
            processes,
            sum(side.pool.waiting for side in sides),
        )

    def _report(self, server: Downstream, waiting: int) -> ServerReport:
        listing, lane = server.listing, server.main
        sides = [one.apart for one in self.fleet.of(server.name)]
        return ServerReport(
            server.name,
            lane.phase.value,
            eras=tuple(era.value for era in server.eras),
            pids=_pids(server),
            since=_since(lane),
            restarts=sum(server.restarts.values()),
            tools=len(listing.tools),
            prompts=len(listing.prompts),
            resources=len(listing.resources) + len(listing.templates),
            in_flight=self.fleet.in_flight(server.name),
            waiting=waiting + sum(side.pool.waiting for side in sides),
            parked=sum(len(side.parked) for side in sides),
            last_error=lane.last_error or None,
            command=server.opener.dial.shown,
            required=server.section.required,
            second=_second(server),
        )

    def _tool(self, entry: Entry) -> ToolReport:
        verdict = self.current.rules.verdict(None, entry)
        title, description = (value(entry.definition, k) for k in ("title", "description"))
        return ToolReport(
            entry.name,
            entry.route.server,
            entry.route.name,
            title if isinstance(title, str) else None,
            description if isinstance(description, str) else None,
            "allow" if verdict.allowed else "deny",
            verdict.rule,
        )


def _says(record: Mapping[str, Any], key: str, wanted: str) -> bool:
    """A tool may be asked for by either of its names."""
    return record.get(key) == wanted or (key == "tool" and record.get("name") == wanted)


def _pids(server: Downstream) -> tuple[int, ...]:
    """Of what all clients share first, then of what is one client's own."""
    every = (*server.connections, *server.apart.pool.connections)
    return tuple(pid for one in every if (pid := one.transport.pid) is not None)


def _second(server: Downstream) -> SecondReport | None:
    lane = server.second
    if lane is None or len(server.eras) < 2:
        return None
    return SecondReport(
        server.eras[1].value,
        lane.phase.value,
        _since(lane),
        sum(lane.restarts.values()),
        lane.last_error or None,
    )


def _since(lane: Lane) -> str:
    at = time.time() - (lane.clock() - lane.since)
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
