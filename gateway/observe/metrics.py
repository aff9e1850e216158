"""Every metric the gateway exports, declared once.

Labels come from the configuration and from what servers list, never from what a
caller typed. Counts of calls are kept as they happen; what is a state (sessions,
servers up, calls in flight) is asked for when somebody scrapes. The two `mcp_…`
histograms are those of OpenTelemetry's semantic conventions for MCP, buckets included.
"""

import asyncio
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.observe.exposition import Family, Format, formats
from gateway.observe.record import CallRecord
from gateway.observe.tally import Counts, Durations
from gateway.observe.visible import visible
from gateway.protocol.methods import CALL_TOOL

OPERATION_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""OpenTelemetry prescribes these for `mcp.server.operation.duration` and its siblings."""
OVERHEAD_S = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1)
LAG_S = (1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)

TOOLS = 500
"""Tools with series of their own: some MB of text for each scrape, if all are called."""
LABEL_LONGEST = 128
"""Characters: what a server calls a tool is bounded by nothing else."""
OTHER = "_other"
"""Where a label of its own would be one too many. No server's key begins with `_`."""
UNKNOWN = "_unknown"
"""Where a caller named something nobody offers."""
FORESEEN = ("ok", "tool_error", "timeout", "unavailable", "server_error", "crashed")
"""Outcomes that alerts ask about: their series start at 0 when a tool is listed, because
`rate()` cannot see the first event of a series that begins at 1."""


@dataclass(frozen=True, slots=True)
class ServerStats:
    """One configured server, now."""

    name: str
    up: bool
    in_flight: int = 0
    restarts: Mapping[str, int] = field(default_factory=dict)
    """Since the gateway started, by reason."""
    parked: int = 0
    """Calls that wait for answers of their clients, or go on with them."""
    parked_bytes: int = 0
    parked_events: Mapping[str, int] = field(default_factory=dict)
    """Since the gateway started, by what became of a parked call."""
    processes: Mapping[str, int] = field(default_factory=dict)
    """Of clients that do not share, by what they are there for now."""
    waiting: int = 0
    """Calls that wait for one of those to come free."""


@dataclass(frozen=True, slots=True)
class GatewayStats:
    """What a scrape asks of the running gateway. Frozen, because another thread reads it."""

    servers: tuple[ServerStats, ...] = ()
    sessions: Mapping[str, int] = field(default_factory=dict)
    """Open ones, by era."""
    record_writable: bool = True
    """False while records wait in memory because they could not be written."""
    records_dropped: int = 0
    log_lines_dropped: int = 0
    reload_ok: bool = True
    """Of the last time the configuration was read."""
    reloaded_at: float | None = None
    """When it last was read with success, seconds since 1970; None: only at the start."""
    connections_refused: int = 0


class Metrics:
    """All metrics, added to by the event loop alone."""

    def __init__(self, stats: Callable[[], GatewayStats], version: str) -> None:
        """`stats` is called on the event loop, once for each scrape."""
        self._stats = stats
        self._formats: Callable[[str], Format] | None = None
        self._now = GatewayStats()
        self._started_at = time.time()
        self._scraping = asyncio.Lock()
        self._build = (version, platform.python_version())
        self._tools: dict[tuple[str, str], str] = {}
        self._calls = Counts(
            "onegate_tool_calls",
            "Calls of tools, by how they ended.",
            ("server", "tool", "outcome"),
        )
        self._served = Durations(
            "mcp_server_operation_duration_seconds",
            "What clients see: from accepting a request to its answer.",
            ("mcp_method_name", "gen_ai_tool_name"),
            OPERATION_S,
        )
        self._asked = Durations(
            "mcp_client_operation_duration_seconds",
            "What servers take: from asking one to its answer.",
            ("mcp_method_name", "server"),
            OPERATION_S,
        )
        self._overhead = Durations(
            "onegate_overhead_seconds",
            "The gateway's own share of a call that reached its server, waiting in line excepted.",
            (),
            OVERHEAD_S,
        )
        self._lag = Durations(
            "onegate_event_loop_lag_seconds",
            "How late the event loop comes to what was due.",
            (),
            LAG_S,
        )
        self._overhead.appear(())
        self._lag.appear(())
        self._calls.add((UNKNOWN, UNKNOWN, "invalid"), 0)
        self._served.appear((CALL_TOOL, UNKNOWN))

    def listed(self, server: str, tools: Iterable[str]) -> None:
        """A server offers these tools, by its own names: let their series begin."""
        for tool in tools:
            label = self._label(server, tool)
            for outcome in FORESEEN:
                self._calls.add((server, label, outcome), 0)

    def ended(self, record: CallRecord, method: str, waited_s: float) -> None:
        """A call has ended; it spent `waited_s` waiting for its turn."""
        server = record.server or UNKNOWN
        if method == CALL_TOOL:
            tool, name = self._named(record)
            self._calls.add((server, tool, record.outcome))
        else:
            name = ""  # URIs under a template are endless, and prompts have no metric of their own
        self._served.add((method, name), record.duration_s)
        if record.server_s is not None:
            self._asked.add((method, server), record.server_s)
            self._overhead.add((), max(0.0, record.duration_s - record.server_s - waited_s))

    def served(self, method: str, seconds: float) -> None:
        """A request that is no call was answered. `method` is one of `protocol.methods`,
        never what the client wrote."""
        self._served.add((method, ""), seconds)

    def asked(self, method: str, server: str, seconds: float) -> None:
        """A server answered a request of the gateway's own, such as for its lists."""
        self._asked.add((method, server), seconds)

    def lagged(self, seconds: float) -> None:
        """The event loop came this much too late to something that was due."""
        self._lag.add((), seconds)

    async def scrape(self, accept: str) -> tuple[bytes, str]:
        """All metrics as text, and its content type, chosen by the `Accept` header.

        Asks for `stats` here, renders in a thread; one scrape at a time, so that many
        scrapers cannot take the processor from calls.
        """
        async with self._scraping:
            self._now = self._stats()
            return await asyncio.to_thread(self.render, accept)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """The same with the state of the last scrape, here and now. For use in a thread."""
        if self._formats is None:
            self._formats = formats()
        chosen = self._formats(accept)
        durations = (self._served, self._asked, self._overhead, self._lag)
        text = [self._calls.text(is_open=chosen.is_open), *(each.text() for each in durations)]
        text += [family.text(is_open=chosen.is_open) for family in self._state()]
        return "".join(text).encode(errors="replace") + chosen.rest(), chosen.content_type

    def _state(self) -> Iterator[Family]:
        """What was asked for when somebody scraped."""
        now = self._now
        yield from _of_servers(now.servers)
        yield from _of_questions(now.servers)
        sessions = [((era,), count) for era, count in now.sessions.items()]
        yield Family("gauge", "onegate_sessions", "Open sessions.", ("era",), sessions)
        labels = ("version", "python")
        yield Family("gauge", "onegate_build_info", "Always 1.", labels, [(self._build, 1)])
        yield from _of_reloads(now, self._started_at)
        documentation = "0 while records cannot be written and wait in memory."
        writable = [((), int(now.record_writable))]
        yield Family("gauge", "onegate_record_writable", documentation, (), writable)
        for name, documentation, count in (
            ("records_dropped", "Records lost, the file not being writable.", now.records_dropped),
            (
                "log_lines_dropped",
                "Lines of the log lost: nobody read it.",
                now.log_lines_dropped,
            ),
            (
                "connections_refused",
                "Clients sent away because too many files were open.",
                now.connections_refused,
            ),
        ):
            yield Family("counter", f"onegate_{name}", documentation, (), [((), count)])

    def _named(self, record: CallRecord) -> tuple[str, str]:
        """A tool's two labels: what its server calls it, and what clients do."""
        server, tool = record.server, record.tool
        if server is None or tool is None:
            return UNKNOWN, UNKNOWN
        label = self._tools.get((server, tool)) or self._label(server, tool)
        return label, OTHER if label == OTHER else record.name

    def _label(self, server: str, tool: str) -> str:
        """The tool's own name, or `_other` if too many have series already."""
        known = self._tools.get((server, tool))
        if known is not None or len(self._tools) >= TOOLS:
            return known or OTHER
        return self._tools.setdefault((server, tool), visible(tool, LABEL_LONGEST))


def _of_reloads(now: GatewayStats, started_at: float) -> Iterator[Family]:
    """Named and meant as Prometheus does for its own configuration."""
    prefix = "onegate_config_last_reload_success"
    ok = int(now.reload_ok)
    at = now.reloaded_at if now.reloaded_at is not None else started_at
    yield Family("gauge", f"{prefix}ful", "1 if the last reload held.", (), [((), ok)])
    name, documentation = f"{prefix}_timestamp_seconds", "Of the last that held."
    yield Family("gauge", name, documentation, (), [((), at)])


Value = Callable[[ServerStats], int]
Parts = Callable[[ServerStats], Mapping[str, int]]


def _of_servers(servers: Sequence[ServerStats]) -> Iterator[Family]:
    def each(name: str, documentation: str, value: Value) -> Family:
        return _each(servers, name, documentation, value)

    yield each("onegate_server_up", "1 if it answers.", lambda server: int(server.up))
    yield each(
        "onegate_calls_in_flight", "Calls a server is working on.", lambda server: server.in_flight
    )
    yield _parts(
        servers,
        ("counter", "onegate_server_restarts", "Starts after the first."),
        "reason",
        lambda server: server.restarts,
    )


def _of_questions(servers: Sequence[ServerStats]) -> Iterator[Family]:
    """Of calls in which servers ask something, and of the processes such clients have."""
    for name, documentation, value in (
        (
            "onegate_calls_parked",
            "Calls that wait for answers of their clients.",
            lambda server: server.parked,
        ),
        (
            "onegate_parked_bytes",
            "What parked calls hold, kept answers included.",
            lambda server: server.parked_bytes,
        ),
        (
            "onegate_private_processes_awaited",
            "Calls that wait for such a process to come free.",
            lambda server: server.waiting,
        ),
    ):
        yield _each(servers, name, documentation, value)
    yield _parts(
        servers,
        ("counter", "onegate_parked_events", "What became of parked calls."),
        "event",
        lambda server: server.parked_events,
    )
    documentation = "Processes, or sessions, of clients that do not share one."
    yield _parts(
        servers,
        ("gauge", "onegate_private_processes", documentation),
        "state",
        lambda server: server.processes,
    )


def _each(servers: Sequence[ServerStats], name: str, documentation: str, value: Value) -> Family:
    """A gauge for each server."""
    samples = [((server.name,), value(server)) for server in servers]
    return Family("gauge", name, documentation, ("server",), samples)


def _parts(
    servers: Sequence[ServerStats], told: tuple[str, str, str], label: str, parts: Parts
) -> Family:
    """Several series for each server."""
    samples = [
        ((server.name, part), count) for server in servers for part, count in parts(server).items()
    ]
    return Family(*told, ("server", label), samples)
