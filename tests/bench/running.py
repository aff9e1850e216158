"""A gateway, peer or floor while it runs: started, waited for, loaded, stopped."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop

from tests.bench import asking, old_sse
from tests.bench.asking import LEGACY, Refused, Session, Target, Work
from tests.bench.conversing import Conversation, open_sessions
from tests.bench.figures import Figures
from tests.bench.load import Window, load
from tests.bench.peers import Fleet, Peer, Place
from tests.bench.usage import Meter
from tests.kit.ports import free_port
from tests.kit.processes import Program, program

LOOK_EVERY_S = 0.01
START_S = 60.0
STOP_S = 15.0
WARM_SHARE = 0.25
"""Of a window's length: the warm-up before it."""


class NotReady(Exception):
    """It did not start; the text ends with the last of its log."""


@dataclass(frozen=True, slots=True)
class Load:
    """How a measurement is made."""

    in_flight: int
    sessions: int
    seconds: float
    revision: str = LEGACY


@dataclass(slots=True)
class Running:
    """One of the peers with a fleet behind it."""

    peer: Peer
    fleet: Fleet
    place: Place
    program: Program
    started_at: float
    names: dict[int, list[str]] = field(default_factory=dict)
    """Of tools, by the server whose endpoint listed them (0: of all)."""
    obstacle: str = ""
    """Why it was not ready when last looked."""
    ready_s: float = 0.0
    """From exec to the first list that holds all tools."""
    meter: Meter = field(init=False)

    def target(self, server: int = 0, revision: str = LEGACY) -> Target:
        path = self.peer.path.format(server=server)
        return Target(f"http://127.0.0.1:{self.place.port}{path}", revision)

    @property
    def admin(self) -> str:
        return f"http://127.0.0.1:{self.place.admin}"

    def tool(self, tool: str, server: int = 0) -> str:
        names = self.names[0 if self.peer.merges else server]
        return asking.exposed(names, server, tool)

    def measure(self, work: Work, how: Load, server: int = 0) -> Figures:
        """One window of this work. Raises what the connections raise if there are none."""
        window = Window(how.seconds, how.seconds * WARM_SHARE, self.meter.cpu_s)
        target = self.target(server, how.revision)
        if self.peer.speaks == "sse":
            calls = old_sse.in_flight(target.url, work, how.sessions, how.in_flight, window)
            return uvloop.run(calls)
        if self.peer.speaks == "constant":
            sessions, work = [Session() for _ in range(how.sessions)], asking.constant()
        else:
            sessions = open_sessions(target, how.sessions)
        return load(target, work, sessions, how.in_flight, window)

    def wait(self) -> None:
        """Until every tool is listed."""
        endpoints = range(1 if self.peer.merges else self.fleet.servers)
        for server in endpoints:
            wanted = self.fleet.all_tools if self.peer.merges else self.fleet.tools
            while len(self.names.setdefault(server, [])) < wanted:
                self._check()
                try:
                    self.names[server] = self._list(server)
                except (OSError, EOFError, Refused, ExceptionGroup, json.JSONDecodeError) as why:
                    self.obstacle = repr(why)
                    time.sleep(LOOK_EVERY_S)
        self.ready_s = time.perf_counter() - self.started_at
        self.meter = Meter(self.program.pid)

    def _check(self) -> None:
        if not self.program.is_running or time.perf_counter() > self.started_at + START_S:
            raise NotReady(f"{self.peer.name}: {self.obstacle}: {self.program.text[-1000:]}")

    def _list(self, server: int) -> list[str]:
        target = self.target(server)
        if self.peer.speaks == "sse":
            return uvloop.run(old_sse.tool_names(target.url))
        with Conversation(target) as conversation:
            if self.peer.speaks == "constant":
                conversation.ask(target.request("ping", None, 1, Session()))
                return ["echo"] * self.fleet.all_tools
            return conversation.tool_names(conversation.open_session())


@contextmanager
def running(peer: Peer, fleet: Fleet) -> Iterator[Running]:
    """Start it in a folder of its own and wait for its tools; stopped when the block ends."""
    with TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as name:
        place = Place(free_port(), free_port(), Path(name))
        argv = peer.argv(fleet, place)
        at = time.perf_counter()
        with program(argv, place.folder / "log", env=place.environment()) as started:
            it = Running(peer, fleet, place, started, at)
            it.wait()
            yield it
            started.send(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                started.process.wait(STOP_S)
