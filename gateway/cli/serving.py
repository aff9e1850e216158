"""`onegate serve`: run a gateway from here until a signal ends it."""

import asyncio
import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from typing import TYPE_CHECKING

import structlog

from gateway.app.notify import Notifier
from gateway.app.reload import Reloader
from gateway.app.running import running
from gateway.cli.progress import EVERYTHING, NO_CHATTER, Show, progress_line, settled
from gateway.cli.reach import finished
from gateway.cli.standing_in import plain, shown
from gateway.config.aside import Reading
from gateway.config.environ import environment
from gateway.config.loaded import Loaded
from gateway.downstream.open_files import raise_limit
from gateway.downstream.supervise import contained
from gateway.edge.admin.operator import ServerReport
from gateway.observe.logs import configure_logs
from gateway.observe.stream import LineStream

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway

log = structlog.get_logger()

COLLECT_AFTER = 20_000
"""Objects more than there were: a few MB at most, and a third of a call's time if it is 700."""

LARGE_BYTES = 16 * 2**20


def serve(reading: Reading) -> None:
    """Returns after an orderly stop. Raises `Misconfigured` or `Failed` if it cannot start."""
    # Half of what loading it takes is reading certificates, which nothing else has to wait for.
    threading.Thread(target=_load_http, name="loading", daemon=True).start()
    make_loop = _loop_factory()  # loaded while the configuration is being read
    found = finished(reading)
    stream = configure_logs(found.config.log.level, found.config.log.format, wall=time.time)
    for doubt in found.warnings:
        log.warning("config.doubted", at=f"{doubt.file}:{doubt.line}", problem=doubt.problem)
    raise_limit()
    try:
        with asyncio.Runner(loop_factory=make_loop) as runner, suppress(Hurried):
            runner.run(_until_told(found, stream))
    except BaseExceptionGroup as group:
        raise plain(group) from None


class Hurried(Exception):
    """Told to end a second time: at once, and without waiting for anybody."""


class Signals:
    """TERM and INT: the first asks to stop, the second no longer asks. HUP asks to read the
    configuration again, unless it says that the terminal is gone."""

    def __init__(self, hurry: Callable[[], object]) -> None:
        self.stop, self.reload = asyncio.Event(), asyncio.Event()
        self._hurry = hurry
        self._had_terminal = os.isatty(0)

    def listen(self) -> None:
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None:
                try:
                    loop.add_signal_handler(number, self._heard, name)
                except NotImplementedError:  # Windows: Ctrl-C still ends `runner.run`
                    return

    def _heard(self, name: str) -> None:
        if name == "SIGHUP" and os.isatty(0) == self._had_terminal:
            self.reload.set()
            return
        if self.stop.is_set():
            self._hurry()
            return
        log.info("gateway.stopping", signal=name)
        self.stop.set()


async def _until_told(found: Loaded, stream: LineStream) -> None:
    """From the first server's start to the last one's end."""
    task = asyncio.current_task()
    assert task is not None
    signals = Signals(task.cancel)
    signals.listen()
    has_screen, notifier = os.isatty(1), Notifier.of(environment())
    try:
        with ExitStack() as screen:
            show = screen.enter_context(_progress(found, has_screen))
            async with running(found, environment(), stream=stream, listen=True) as gateway:
                gc.freeze()  # what has been loaded stays
                gc.enable()
                notifier.ready()
                reloader = gateway.operator.reloader = Reloader(gateway, environment())
                gateway.run_beside(
                    contained(_reload(signals, reloader, notifier), "reload"),
                    contained(reloader.watch(), "watch"),
                    notifier.feed(),
                )
                if not (has_screen and os.isatty(2)):
                    tell_started(gateway)
                reports = await settled(gateway.operator.servers, show, signals.stop)
                screen.close()
                settle_memory()
                if not signals.stop.is_set():
                    tell(gateway, reports, has_screen)
                await signals.stop.wait()
                notifier.stopping()
    except asyncio.CancelledError:
        if not signals.stop.is_set():
            raise
        log.warning("gateway.hurried", effect="calls were cut, servers are killed")
        raise Hurried from None
    log.info("gateway.stopped")


def settle_memory() -> None:
    """What is there now stays: the collector of cycles need not look at it again and again.
    Calls make hardly any cycles, and with many under way a hunt after 700 objects finds none."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 10, 10)
    # The C library learns from what it is given back that blocks of this size come and go: it
    # then keeps the memory of large answers for the next ones, which halves what each costs.
    bytearray(LARGE_BYTES)


async def _reload(signals: Signals, reloader: "Reloader", notifier: "Notifier") -> None:
    """Each HUP, one after the other; those that come meanwhile are one more."""
    while True:
        await signals.reload.wait()
        signals.reload.clear()
        if signals.stop.is_set():
            return
        notifier.reloading()
        await reloader.reload()
        notifier.ready()


def tell(gateway: "Gateway", reports: Sequence[ServerReport], has_screen: bool) -> None:
    """How all of it came up: a screen for a person, lines of the log for everybody else."""
    if has_screen:
        from gateway.cli.welcome import welcome

        welcome(gateway, reports)
    if not (has_screen and os.isatty(2)):
        for each in reports:
            log.info(
                "server.settled",
                server=each.name,
                state=each.state,
                eras=each.eras,
                tools=each.tools,
                resources=each.resources,
                prompts=each.prompts,
                **({"error": each.last_error} if each.last_error else {}),
            )


def tell_started(gateway: "Gateway") -> None:
    from gateway import __version__

    log.info(
        "gateway.started",
        version=__version__,
        config=shown(str(gateway.current.loaded.file)),
        listen=[str(address) for address in gateway.listening],
        admin=str(gateway.admin or "off"),
        servers=len(gateway.config.servers),
    )


def _progress(found: Loaded, has_screen: bool) -> AbstractContextManager[Show | None]:
    """Where to tell a person how far the servers are; the log is held back meanwhile."""
    if not has_screen:
        return nullcontext()
    passing = EVERYTHING if found.config.log.level == "debug" else NO_CHATTER
    return progress_line(1, passing if os.isatty(2) else None)


def _load_http() -> None:
    """Ahead of whoever needs it; what goes wrong is met there once more."""
    with suppress(ImportError):
        import aiohttp  # noqa: F401  (to have it loaded)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it exists: it halves what the gateway itself costs a call."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
