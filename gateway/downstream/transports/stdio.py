"""Talk to a server over the standard input and output of a child process.

The hot path is two calls: `send` writes to the pipe, and what comes out of the other
pipe is cut into lines that go straight to the sink. Reading never waits for anybody.

Whoever starts a transport stops it, even if the process has gone by itself: `stop` also
sees to what the process left behind.
"""

import asyncio
import errno
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack

import structlog

from gateway.downstream.environment import CannotStart, Launch, Program
from gateway.downstream.exit_watch import ExitWatch
from gateway.downstream.open_files import restore_limit
from gateway.downstream.stderr import Stderr
from gateway.downstream.stopping import Group, stop
from gateway.downstream.transports.pipes import Inlet, Outlet, open_pipe
from gateway.downstream.transports.transport import Departure, LineSink, NotReading
from gateway.downstream.warden import Warden
from gateway.protocol.framing import LineSplitter, Oversized

log = structlog.get_logger()

HIGH_WATER_BYTES = 2**20
"""Callers with something more to say wait while this much waits to be read."""

WAITING_BYTES = 8 * 2**20
"""Beyond this nothing is taken any more. A server that reads at all is far from it."""

EXIT_FOLLOWS_S = 0.25
"""A process that ends closes its pipes first; so long it is waited for what it died of."""

TEMPORARY = frozenset({"EAGAIN", "ENOMEM", "EMFILE", "ENFILE", "ETXTBSY", "EINTR"})
"""Reasons not to start that pass by themselves."""


class StdioTransport:
    """One child process in a session and process group of its own. Made by `start`."""

    way = "stdio"

    def __init__(
        self, launch: Launch, sink: LineSink, stderr: Stderr, warden: Warden | None
    ) -> None:
        self.server = launch.server
        self._sink, self._warden = sink, warden
        self._stderr = stderr
        self._splitter = LineSplitter(launch.line_bytes)
        self._loop = asyncio.get_running_loop()
        self._exited, self._closed = asyncio.Event(), asyncio.Event()
        self._stopping = False
        self._stop_turn = asyncio.Lock()
        self._code: int | None = None
        self._departure: Departure | None = None
        self._late: asyncio.TimerHandle | None = None

    @classmethod
    async def start(
        cls,
        launch: Launch,
        sink: LineSink,
        warden: Warden | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> "StdioTransport":
        """Start the process. Raises `CannotStart`, with what to do about it in the message."""
        # A file is read at once; a pipe takes as long as who writes to it.
        waits = launch.env_file is not None and launch.env_file.is_fifo()
        program = await asyncio.to_thread(launch.program) if waits else launch.program()
        self = cls(launch, sink, Stderr(launch.server, program.secrets, clock), warden)
        self._run(launch, program)
        log.info("process.started", server=launch.server, pid=self.pid, program=program.path)
        return self

    @property
    def group(self) -> Group:
        return self._group

    @property
    def has_exited(self) -> bool:
        return self._exited.is_set()

    @property
    def writable(self) -> bool:
        """Whether little is waiting to be read by the server."""
        return self._stdin.writable

    def send(self, line: bytes) -> None:
        """Write one message, now. `line` is without newlines.

        Raises `NotReading` if too much is waiting already, or if the process has gone.
        """
        if self._departure is not None or self._stopping:
            raise NotReading(self._departure.reason if self._departure else "is being stopped")
        if self._stdin.waiting_bytes > WAITING_BYTES:
            raise NotReading(f"{self._stdin.waiting_bytes} bytes wait to be read by it")
        self._stdin.write(line + b"\n")

    async def wait_writable(self) -> None:
        """Return when little is waiting, or the process has gone. Callers bound it themselves."""
        await self._stdin.wait_writable()

    async def wait_closed(self) -> Departure:
        """Return once nothing more will come from it. The process may still have to be stopped."""
        await self._closed.wait()
        assert self._departure is not None
        return self._departure

    async def wait_exited(self) -> None:
        await self._exited.wait()

    def stderr_tail(self, lines: int = 20) -> tuple[str, ...]:
        """What it last wrote to stderr, cleaned and redacted."""
        return self._stderr.tail(lines)

    def close_stdin(self) -> None:
        self._stdin.close()

    async def stop(self, grace_s: float) -> None:
        """Stop the process and what it started; see `stopping`. Bounded; may be called again."""
        self._stopping = True
        async with self._stop_turn:
            try:
                await stop(self, grace_s)
            finally:
                self._depart("was stopped")
                if self._warden is not None:  # whoever was left has been sent KILL
                    self._warden.forget(self._group.pgid)

    # --- inside ---

    def _run(self, launch: Launch, program: Program) -> None:
        with ExitStack() as theirs, ExitStack() as ours:
            try:
                child_in, our_in = _pipe(theirs, ours)
                our_out, child_out = _pipe(ours, theirs)
                our_err, child_err = _pipe(ours, theirs, roomy=False)
                process = subprocess.Popen(
                    # Its full path: Python finds its own libraries by how it was called.
                    [program.path, *launch.argv[1:]],
                    env=program.env,
                    cwd=launch.cwd,
                    stdin=child_in,
                    stdout=child_out,
                    stderr=child_err,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise _cannot_start(program.path, error) from None
            ours.pop_all()
        restore_limit(process.pid)
        self.pid = process.pid
        self._group = Group(process.pid)
        if self._warden is not None:
            self._warden.watch(process.pid)
        loop = self._loop
        self._stdin = Outlet(loop, our_in, HIGH_WATER_BYTES, self._stdin_broken)
        self._stdout = Inlet(loop, our_out, self._received, self._stdout_ended)
        self._errors = Inlet(loop, our_err, self._stderr.feed, self._stderr.finish)
        self._watch = ExitWatch(loop, process, self._process_exited)

    def _received(self, data: bytes) -> None:
        for line in self._splitter.feed(data):
            self._deliver(line)

    def _deliver(self, line: bytes | Oversized) -> None:
        if isinstance(line, Oversized):
            self._sink.oversized(line.size, line.head, line.tail)
        else:
            self._sink.line(line)

    def _process_exited(self, code: int) -> None:
        self._code = code
        self._exited.set()
        # Its children, if any are left, lost who they work for; `stop` insists if need be.
        if not self._group.is_empty():
            self._group.signal(signal.SIGTERM)
        self._depart(_how(code))

    def _stdout_ended(self) -> None:
        self._lost("closed its stdout")

    def _stdin_broken(self) -> None:
        self._lost("closed its stdin")

    def _lost(self, reason: str) -> None:
        """One pipe is gone: most likely the process is just ending, and why is known soon."""
        if self._departure is None and self._late is None:
            self._late = self._loop.call_later(EXIT_FOLLOWS_S, self._depart, reason)

    def _depart(self, reason: str) -> None:
        if self._departure is not None:
            return
        if self._late is not None:
            self._late.cancel()
        self._errors.drain()
        self._stderr.finish()
        self._stdout.drain()
        for line in self._splitter.finish():
            self._deliver(line)
        self._stdin.abort()
        name = _signal_name(self._code)
        self._departure = Departure(
            code=self._code if name is None else None,
            signal=name,
            stderr=self._stderr.tail(),
            reason="was stopped" if self._stopping else reason,
        )
        self._closed.set()
        log.info("process.ended", server=self.server, pid=self.pid, reason=reason)
        self._sink.closed(self._departure)


def _pipe(reader: ExitStack, writer: ExitStack, *, roomy: bool = True) -> tuple[int, int]:
    """A pipe whose ends are closed with whom they belong to."""
    reading, writing = open_pipe(roomy=roomy)
    reader.callback(os.close, reading)
    writer.callback(os.close, writing)
    return reading, writing


def _how(code: int) -> str:
    name = _signal_name(code)
    return f"exited with code {code}" if name is None else f"was killed by {name}"


def _signal_name(code: int | None) -> str | None:
    if code is None or code >= 0:
        return None
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"  # real-time signals have no names


def _cannot_start(path: str, error: OSError | ValueError) -> CannotStart:
    if isinstance(error, ValueError):  # a NUL byte, or a "=" in a variable's name
        return CannotStart(f"cannot start {path}: {error}", permanent=True)
    name = errno.errorcode.get(error.errno or 0, "")
    why = error.strerror or str(error)
    match name:
        case "ENOENT":
            why = "the interpreter its first line names does not exist"
        case "ENOEXEC":
            why = "it is neither a program for this machine nor a script with a #! line"
        case "E2BIG":
            why = "its arguments and environment are too long"
    return CannotStart(f"cannot start {path}: {why}", permanent=name not in TEMPORARY)
