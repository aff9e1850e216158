"""The work that is measured. Each workload notes figures by name and by who it measured."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from tests.bench import asking, beside, sessions
from tests.bench.asking import LEGACY, MODERN, Refused, Work
from tests.bench.conversing import Conversation
from tests.bench.figures import Figures
from tests.bench.peers import CONSTANT, FLOOR, GATEWAY, HUB, PROXY, Fleet, Peer
from tests.bench.running import Load, NotReady, Running, running

SMALL, WIDE, HUGE = Fleet(2, 3), Fleet(10, 50), Fleet(200, 20)
SLOW_START = Fleet(10, 3, start_ms=1000)
Measured = dict[str, dict[str, float]]
"""Name of a figure -> name of a peer -> value."""


@dataclass(slots=True)
class Repeat:
    """One time through the workloads: what runs meanwhile, and what was found."""

    peers: Sequence[Peer]
    seconds: float
    idle_sessions: int
    stack: ExitStack
    say: Callable[[str], None]
    found: Measured = field(default_factory=dict)
    details: list[dict[str, object]] = field(default_factory=list)
    _running: dict[tuple[str, Fleet], Running] = field(default_factory=dict)

    def note(self, figure: str, peer: str, value: float) -> None:
        self.found.setdefault(figure, {})[peer] = value

    def of(self, *peers: Peer) -> list[Peer]:
        """Those of these that are measured at all."""
        return [each for each in peers if each in self.peers]

    def ready(self, peer: Peer, fleet: Fleet) -> Running:
        """It with this fleet, warm. Kept until the repeat is over: an idle one costs nothing."""
        key = (peer.name, fleet)
        if key not in self._running:
            it = self.stack.enter_context(running(peer, fleet))
            self._running[key] = it
            it.measure(asking.echo(it.tool("echo")), Load(16, 16, self.seconds / 2))
        return self._running[key]

    def measure(self, what: str, it: Running, work: Work, how: Load, server: int = 0) -> Figures:
        """One window. Whatever fails is counted, and shown."""
        figures = it.measure(work, how, server)
        about = {"what": what, "peer": it.peer.name, "in_flight": how.in_flight}
        self.details.append({**about, "revision": how.revision, **figures.summary()})
        if figures.failed:
            self.say(f"! {it.peer.name}, {what}: {figures.failed} failed: {figures.faults}")
        if it.peer is GATEWAY:
            before = self.found.get("failed", {}).get(GATEWAY.name, 0)
            self.note("failed", GATEWAY.name, before + figures.failed)
        return figures

    def each(self, what: str, measure: Callable[[Peer], None], *peers: Peer) -> None:
        """The same with each of these, one after another. One that fails does not end the rest."""
        for peer in self.of(*peers):
            try:
                measure(peer)
            except (OSError, EOFError, Refused, NotReady, ExceptionGroup) as error:
                self.say(f"! {peer.name}, {what}: {error!r}")


def small_calls(repeat: Repeat) -> None:
    """64 in flight over 16 sessions, in both eras."""

    def measure(peer: Peer, era: str, revision: str, *, is_traced: bool = False) -> None:
        it = repeat.ready(peer, SMALL)
        how = Load(64, 16, repeat.seconds, revision)
        work = asking.echo(it.tool("echo"), is_traced=is_traced)
        figures = repeat.measure(f"small calls, {era}", it, work, how)
        repeat.note(f"small.{era}.per_s", peer.name, figures.per_s)
        repeat.note(f"small.{era}.cpu_us", peer.name, figures.cpu_us)

    everyone = (FLOOR, GATEWAY, HUB, PROXY, CONSTANT)
    repeat.each("legacy", lambda peer: measure(peer, "legacy", LEGACY), *everyone)
    repeat.each("modern", lambda peer: measure(peer, "modern", MODERN), FLOOR, GATEWAY)
    repeat.each(
        "traced", lambda peer: measure(peer, "traced", LEGACY, is_traced=True), FLOOR, GATEWAY
    )
    # The peers do not speak modern: what they do in their own era stands beside.
    for peer in repeat.of(HUB, PROXY):
        if peer.name in (legacy := repeat.found.get("small.legacy.per_s", {})):
            repeat.note("small.modern.per_s", peer.name, legacy[peer.name])


def one_at_a_time(repeat: Repeat) -> None:
    """What a call takes if there is no other: with cores that stay awake, and as the machine is."""

    def measure(peer: Peer, named: str, what: str) -> None:
        it = repeat.ready(peer, SMALL)
        how = Load(1, 1, repeat.seconds)
        figures = repeat.measure(what, it, asking.echo(it.tool("echo")), how)
        repeat.note(f"{named}.p50_ms", peer.name, figures.quantile_ms(0.5))
        repeat.note(f"{named}.p99_ms", peer.name, figures.quantile_ms(0.99))
        repeat.note(f"{named}.cpu_us", peer.name, figures.cpu_us)

    def begin(peer: Peer) -> None:
        repeat.ready(peer, SMALL)

    everyone = (FLOOR, GATEWAY, HUB, PROXY, CONSTANT)
    repeat.each("start", begin, *everyone)
    with beside.cores_awake():
        repeat.each("awake", lambda peer: measure(peer, "one", "one at a time"), *everyone)
    repeat.each("asleep", lambda peer: measure(peer, "asleep", "one, cores asleep"), *everyone)


def big_answers(repeat: Repeat) -> None:
    def measure(peer: Peer) -> None:
        it = repeat.ready(peer, SMALL)
        work, how = asking.blob(it.tool("blob")), Load(4, 4, repeat.seconds)
        repeat.note("big.per_s", peer.name, repeat.measure("1 MiB", it, work, how).per_s)

    repeat.each("1 MiB", measure, FLOOR, GATEWAY, HUB, PROXY)


def lists(repeat: Repeat) -> None:
    def measure(peer: Peer) -> None:
        it = repeat.ready(peer, WIDE)
        for count in (1, 16):
            work, how = asking.listing(WIDE.all_tools), Load(count, count, repeat.seconds)
            figures = repeat.measure("lists", it, work, how)
            repeat.note(f"list.{count}.per_s", peer.name, figures.per_s)

    repeat.each("lists", measure, FLOOR, GATEWAY, HUB)


def start(repeat: Repeat) -> None:
    """From exec to the first full list, with nothing kept from an earlier start."""

    def measure(peer: Peer, figure: str, fleet: Fleet) -> None:
        with running(peer, fleet) as it:
            repeat.note(figure, peer.name, it.ready_s)

    everyone = (FLOOR, GATEWAY, HUB, PROXY)
    repeat.each("start", lambda peer: measure(peer, "start.quick_s", WIDE), *everyone)
    repeat.each("slow start", lambda peer: measure(peer, "start.slow_s", SLOW_START), *everyone)


def memory(repeat: Repeat) -> None:
    """Of fresh processes: as soon as all is listed, after some calls, and with idle sessions."""

    def measure(peer: Peer, figure: str, fleet: Fleet) -> None:
        with running(peer, fleet) as it:
            repeat.note(f"{figure}.fresh_mb", peer.name, it.meter.memory_mb())
            it.measure(asking.echo(it.tool("echo")), Load(16, 16, repeat.seconds / 2))
            repeat.note(f"{figure}.mb", peer.name, it.meter.memory_mb())

    def measure_sessions(peer: Peer) -> None:
        for figure, with_stream in (("session.kb", False), ("session.stream_kb", True)):
            with running(peer, SMALL) as it:
                grown = sessions.kb_per_session(it, repeat.idle_sessions, with_stream)
                repeat.note(figure, peer.name, grown)

    everyone = (FLOOR, GATEWAY, HUB, PROXY)
    repeat.each("memory", lambda peer: measure(peer, "memory.two", SMALL), *everyone)
    repeat.each("memory", lambda peer: measure(peer, "memory.ten", WIDE), *everyone)
    repeat.each("sessions", measure_sessions, GATEWAY)


def neighbours(repeat: Repeat) -> None:
    """Small calls on one server, alone and while slow ones run on another."""

    def measure(peer: Peer) -> None:
        it = repeat.ready(peer, SMALL)
        work, how = asking.echo(it.tool("echo")), Load(1, 1, repeat.seconds)
        alone = repeat.measure("alone", it, work, how)
        with beside.slow_calls(it, 1, repeat.seconds * 2 + 2):
            among = repeat.measure("beside slow calls", it, work, how)
        repeat.note("neighbours.ratio", peer.name, _p99_ratio(among, alone))

    repeat.each("neighbours", measure, FLOOR, GATEWAY)


def sizes(repeat: Repeat) -> None:
    """The same small calls with more and more servers and tools behind; two rounds, interleaved."""

    def measure(peer: Peer) -> None:
        calls = dict.fromkeys((SMALL, WIDE, HUGE), 0.0)
        for _ in range(2):
            for fleet in calls:
                it = repeat.ready(peer, fleet)
                work, how = asking.echo(it.tool("echo")), Load(64, 16, repeat.seconds / 2)
                calls[fleet] += repeat.measure(f"size {fleet.servers}", it, work, how).per_s
        for fleet in (WIDE, HUGE):
            figure = f"size.{fleet.servers}x{fleet.tools}"
            repeat.note(figure, peer.name, _over(calls[fleet], calls[SMALL]))

    repeat.each("sizes", measure, FLOOR, GATEWAY)


def scraping(repeat: Repeat) -> None:
    """Load on a gateway all of whose 500 tools have been called, without and with a scraper."""

    def measure(peer: Peer) -> None:
        it = repeat.ready(peer, WIDE)
        _call_each_tool(it)
        work, how = asking.echo(it.tool("echo")), Load(16, 16, repeat.seconds * 2)
        alone = repeat.measure("not scraped", it, work, how)
        with beside.scraping(it, repeat.seconds * 3 + 1):
            among = repeat.measure("scraped", it, work, how)
        repeat.note("scrape.ratio", peer.name, _p99_ratio(among, alone))

    repeat.each("scraping", measure, GATEWAY)


def mix_ups(repeat: Repeat) -> None:
    """More and more at the same time, each client counting its ids from the same number."""

    def measure(peer: Peer) -> None:
        it = repeat.ready(peer, SMALL)
        for revision in (LEGACY, MODERN):
            for count in (1, 2, 4, 16, 64):
                how = Load(count, count, repeat.seconds / 4, revision)
                repeat.measure(f"{count} in flight", it, asking.echo(it.tool("echo")), how)

    repeat.each("mix-ups", measure, GATEWAY)


def _call_each_tool(it: Running) -> None:
    with Conversation(it.target()) as conversation:
        session = conversation.open_session()
        for name in it.names[0]:
            arguments = {"query": "x", "text": "x", "ms": 1, "kib": 1}
            conversation.call("tools/call", {"name": name, "arguments": arguments}, session)


def _p99_ratio(one: Figures, other: Figures) -> float:
    return _over(one.quantile_ms(0.99), other.quantile_ms(0.99))


def _over(one: float, other: float) -> float:
    return one / other if other else float("nan")


WORKLOADS: dict[str, Callable[[Repeat], None]] = {
    "start": start,  # first: what the others measure is kept running
    "small-calls": small_calls,
    "one-at-a-time": one_at_a_time,
    "big-answers": big_answers,
    "lists": lists,
    "memory": memory,
    "neighbours": neighbours,
    "sizes": sizes,
    "scraping": scraping,
    "mix-ups": mix_ups,
}
