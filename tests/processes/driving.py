"""Start children in tests, on either event loop, and see what a sink is told."""

import asyncio
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from gateway.downstream.environment import Launch
from gateway.downstream.transports.stdio import StdioTransport
from gateway.downstream.transports.transport import Departure
from tests.kit.processes import kill_tree
from tests.kit.waiting import eventually_async

T = TypeVar("T")

CHILD = Path(__file__).parent / "children" / "child.py"
LOOPS = ("asyncio", "uvloop")
"""A conversation that depends on the loop is held on both."""


def on(loop: str, conversation: Coroutine[Any, Any, T], within_s: float = 30.0) -> T:
    """Run a conversation on a fresh loop of this kind, bounded."""

    async def bounded() -> T:
        async with asyncio.timeout(within_s):
            return await conversation

    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(bounded())


@dataclass(slots=True)
class Heard:
    """A `LineSink` that keeps what it is told, in order."""

    lines: list[bytes] = field(default_factory=list)
    dropped: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    departures: list[Departure] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    def line(self, line: bytes) -> None:
        self.lines.append(line)
        self.order.append("line")

    def oversized(self, size: int, head: bytes, tail: bytes) -> None:
        self.dropped.append((size, head, tail))
        self.order.append("oversized")

    def closed(self, cause: Departure) -> None:
        self.departures.append(cause)
        self.order.append("closed")

    async def wait_line(self, number: int = 1, within_s: float = 15.0) -> bytes:
        await eventually_async(
            lambda: len(self.lines) >= number or self.departures, within_s, what=f"line {number}"
        )
        assert len(self.lines) >= number, self.departures
        return self.lines[number - 1]

    async def wait_pids(self) -> list[int]:
        """The pids after `ready`."""
        return [int(word) for word in (await self.wait_line()).split()[1:]]


def launch(mode: str, *arguments: str, **more: Any) -> Launch:
    return Launch("it", (sys.executable, "-S", str(CHILD), mode, *arguments), **more)


async def started(mode: str, *arguments: str, **more: Any) -> tuple[StdioTransport, Heard]:
    heard = Heard()
    return await StdioTransport.start(launch(mode, *arguments, **more), heard), heard


@contextmanager
def gone_in_the_end(*pids: int) -> Iterator[None]:
    """Whatever the test finds out: nothing it started stays behind."""
    try:
        yield
    finally:
        for pid in pids:
            kill_tree(pid)
