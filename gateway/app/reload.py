"""Replace the configuration of a running gateway, without losing a call.

The new file is read and checked whole before anything changes; a bad one changes
nothing. Rules, tokens and bounds swap at once, servers by difference.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import structlog

from gateway.app.current import rules_of
from gateway.app.gateway import Gateway
from gateway.calls.notices import ListChanged
from gateway.catalog.catalog import changed_kinds
from gateway.config.complaints import ConfigError
from gateway.config.load import Loaded, load
from gateway.config.model import Config

log = structlog.get_logger()

NEEDS_RESTART = ("listen", "admin", "calls", "log")
"""Sections that are read once: sockets are bound, files opened, logs set up with them."""

LOOK_EVERY_S = 2.0
"""How often a watched file is looked at."""


class Reloaded(msgspec.Struct, frozen=True):
    """What a reload did; with an `error` it did nothing."""

    ok: bool
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()
    """Sections that changed, but hold only after the gateway is restarted."""
    error: str | None = None


@dataclass(slots=True, eq=False)
class Reloader:
    """Reads the file again when it is told to, one time after the other."""

    gateway: Gateway
    environ: Mapping[str, str]
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def reload(self) -> Reloaded:
        """Never raises: what is wrong with the file is in the answer, the log and a metric."""
        async with self._turn:
            file = self.gateway.current.loaded.file
            try:
                loaded = await asyncio.to_thread(load, file, self.environ, Path.cwd())
            except ConfigError as error:
                self.gateway.operator.reloaded(time.time(), ok=False)
                log.error("config.refused", file=str(file), errors=str(error))
                return Reloaded(False, error=str(error))
            done = self._replace(loaded)
            self.gateway.operator.reloaded(time.time(), ok=True)
            log.info("config.reloaded", file=str(file), **msgspec.structs.asdict(done))
            return done

    def _replace(self, loaded: Loaded) -> Reloaded:
        """From here on nothing waits: no call sees half of one and half of the other."""
        gateway = self.gateway
        before, current = gateway.config, gateway.current
        offered = gateway.middle.offered()
        current.loaded, current.rules = loaded, rules_of(loaded)
        gateway.regard()
        fleet = gateway.fleet
        fleet.shelf.prefixes, fleet.shelf.longest = current.prefixes, loaded.config.names.longest
        added, removed, restarted = fleet.apply(current.servers, gateway.assembly.server)
        for kind in changed_kinds(offered, gateway.middle.offered()):
            gateway.middle.board.post(ListChanged(kind))
        return Reloaded(True, added, removed, restarted, _unheeded(before, loaded.config))

    async def watch(self) -> None:
        """Reload whenever the content of the file has changed, and has come to rest.

        By content, not by events: Kubernetes swaps links, editors rename, and both touch a
        file many times. Until cancelled.
        """
        seen = known = _content(self.gateway.current.loaded.file)
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            now = await asyncio.to_thread(_content, self.gateway.current.loaded.file)
            if now is not None and now == seen and now != known:
                known = now
                await self.reload()
            seen = now


def _content(file: Path) -> bytes | None:
    """None while it is not there: in the midst of being replaced, most likely."""
    try:
        return file.read_bytes()
    except OSError:
        return None


def _unheeded(before: Config, after: Config) -> tuple[str, ...]:
    return tuple(n for n in NEEDS_RESTART if getattr(before, n) != getattr(after, n))
