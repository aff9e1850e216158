"""The load client: requests in flight over sessions at one endpoint for a while, all checked.

Also a program: `python -m tests.bench.load URL --in-flight 64 --sessions 16` at any gateway.
"""

import argparse
import asyncio
import gc
import json
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import uvloop

from tests.bench import asking
from tests.bench.answers import Answers
from tests.bench.asking import Asked, Asker, Session, Target, Work, fault
from tests.bench.conversing import Conversation, open_sessions
from tests.bench.figures import Figures

DRAIN_S = 30.0
"""How long answers may take that are still awaited when the window ends."""
GIVE_UP = 500
"""So many failures and no more: something is broken, and waiting will not mend it."""


@dataclass(frozen=True, slots=True)
class Window:
    """How long to measure, after how long a warm-up; `cpu_s` reads what the gateway has used."""

    seconds: float = 2.0
    warm_s: float = 0.5
    cpu_s: Callable[[], float] = lambda: 0.0


@dataclass(slots=True)
class Clocks:
    """Starts and ends a window."""

    window: Window
    figures: Figures
    _at: float = 0.0
    _own_cpu: float = 0.0
    _cpu: float = 0.0

    def start(self) -> None:
        self._cpu = self.window.cpu_s()
        self._at, self._own_cpu = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        self.figures.seconds = time.perf_counter() - self._at
        self.figures.client_cpu_s = time.process_time() - self._own_cpu
        self.figures.cpu_s = self.window.cpu_s() - self._cpu


def one_at_a_time(target: Target, work: Work, session: Session, window: Window) -> Figures:
    """One blocking client: what a call takes if there is no other."""
    figures = Figures()
    clocks = Clocks(window, figures)
    asker = Asker(target, work, session, [0])
    with Conversation(target) as conversation:

        def ask() -> None:
            asked = asker.next()
            at = time.perf_counter()
            try:
                answer = conversation.ask(asked.raw)
                took = time.perf_counter() - at
                wrong = fault(work, asked, answer.status, answer.body)
            except OSError as error:
                took, wrong = 0.0, repr(error)
                conversation.close()
            figures.fail(wrong) if wrong else figures.latencies_s.append(took)

        def ask_until(end: float) -> None:
            while time.perf_counter() < end and figures.failed < GIVE_UP:
                ask()

        ask_until(time.perf_counter() + window.warm_s)
        figures.latencies_s.clear()
        gc.collect()
        gc.disable()
        clocks.start()
        ask_until(time.perf_counter() + window.seconds)
        clocks.stop()
        gc.enable()
    return figures


@dataclass(slots=True)
class Run:
    """What the connections of one measurement share."""

    work: Work
    figures: Figures = field(default_factory=Figures)
    is_measuring: bool = False
    is_over: bool = False

    def fail(self, wrong: str) -> None:
        self.figures.fail(wrong)
        self.is_over = self.is_over or self.figures.failed >= GIVE_UP


class Caller(asyncio.Protocol):
    """One connection with one request in flight: the answer's arrival sends the next."""

    def __init__(self, run: Run, asker: Asker) -> None:
        self.run, self.asker = run, asker
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answers = Answers()
        self._asked: Asked | None = None
        self._at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        for answer in self._answers.feed(data):
            took = time.perf_counter() - self._at
            asked, self._asked = self._asked, None
            if asked is None:
                self.run.fail(f"an answer nobody awaits: {answer.body[:160]!r}")
                continue
            if wrong := fault(self.run.work, asked, answer.status, answer.body):
                self.run.fail(wrong)
            elif self.run.is_measuring:
                self.run.figures.latencies_s.append(took)
            if answer.is_last:
                self.transport.close()
            else:
                self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        if self._asked is not None:
            self.run.fail(f"connection lost: {error!r}")
            self._asked = None
        if not self.closed.done():
            self.closed.set_result(None)

    def _ask(self) -> None:
        if self.run.is_over:
            self.transport.close()
            return
        self._asked = self.asker.next()
        self._at = time.perf_counter()
        self.transport.write(self._asked.raw)


async def _call_on(run: Run, asker: Asker) -> None:
    """Keep one request in flight until the run is over, on as many connections as it takes."""
    loop = asyncio.get_running_loop()
    while not run.is_over:
        caller = Caller(run, asker)
        try:
            await loop.create_connection(lambda it=caller: it, *asker.target.address)  # type: ignore[misc] # bound at once
            await caller.closed
        except OSError as error:
            run.fail(repr(error))
        finally:
            if hasattr(caller, "transport"):
                caller.transport.abort()


async def in_flight(
    target: Target, work: Work, sessions: Sequence[Session], count: int, window: Window
) -> Figures:
    """`count` requests at a time, spread over the sessions."""
    tokens = [0]
    askers = [
        Asker(target, work, sessions[number % len(sessions)], tokens) for number in range(count)
    ]
    run = Run(work)
    return await measured(run, [_call_on(run, asker) for asker in askers], window)


async def measured(
    run: Run, callers: Sequence[Coroutine[Any, Any, None]], window: Window
) -> Figures:
    """Let the callers run for one window. Who has not ended long after it counts as failed."""
    clocks = Clocks(window, run.figures)
    gc.collect()
    gc.disable()
    async with asyncio.TaskGroup() as tasks:
        started = [tasks.create_task(each) for each in callers]
        await asyncio.sleep(window.warm_s)
        run.is_measuring = True
        clocks.start()
        await asyncio.sleep(window.seconds)
        clocks.stop()
        run.is_measuring, run.is_over = False, True
        _, hung = await asyncio.wait(started, timeout=DRAIN_S)
        for task in hung:
            run.fail(f"no answer within {DRAIN_S} s")
            task.cancel()
    gc.enable()
    return run.figures


def load(
    target: Target, work: Work, sessions: Sequence[Session], count: int, window: Window
) -> Figures:
    """`count` requests at a time for one window; one of them by the simplest of clients."""
    if count == 1:
        return one_at_a_time(target, work, sessions[0], window)
    return uvloop.run(in_flight(target, work, sessions, count, window))


SLEEP_MS = 1000
STARTED = "started"
"""The first line of output, just before the first request."""
WORKS: dict[str, Callable[[str], Work]] = {
    "echo": asking.echo,
    "blob": asking.blob,
    "sleep": lambda tool: asking.sleep(tool, SLEEP_MS),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--revision", default=asking.LEGACY)
    parser.add_argument("--work", choices=[*WORKS, "list"], default="echo")
    parser.add_argument("--tool", help="its exposed name; default: that of the first server")
    parser.add_argument("--in-flight", type=int, default=1)
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args()
    target = Target(given.url, given.revision)
    sessions = open_sessions(target, given.sessions)
    if given.work == "list":
        work = asking.listing(1)
    else:
        with Conversation(target) as conversation:
            names = [] if given.tool else conversation.tool_names(sessions[0])
        work = WORKS[given.work](given.tool or asking.exposed(names, 0, given.work))
    print(STARTED, flush=True)
    figures = load(target, work, sessions, given.in_flight, Window(given.seconds))
    print(json.dumps(figures.summary()))


if __name__ == "__main__":
    main()
