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
from gateway.app.files import Prints, files_of, files_of_servers, prints
from gateway.app.gateway import Gateway
from gateway.calls.notices import ListChanged
from gateway.catalog.catalog import changed_kinds
from gateway.config.complaints import Complaint, ConfigError
from gateway.config.loaded import Loaded
from gateway.config.model import Config, Token
from gateway.config.outcome import load_aside
from gateway.identity.tokens import withdrawn

log = structlog.get_logger()

NEEDS_RESTART = ("listen", "admin", "calls", "log", "limits.line_bytes")
"""What is read once: sockets are bound, files opened, pipes read with it."""


class Reloaded(msgspec.Struct, frozen=True):
    """What a reload did; with an `error` it did nothing."""

    ok: bool
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()
    """Settings that changed, but hold only after the gateway is restarted."""
    error: str | None = None


@dataclass(slots=True, eq=False)
class Reloader:
    """Reads the file again when it is told to, one time after the other."""

    gateway: Gateway
    environ: Mapping[str, str]
    cwd: Path = field(default_factory=Path.cwd)
    look_every_s: float = 2.0
    """How often watched files are looked at."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _started_with: Config = field(init=False)
    _seen: Prints = field(init=False)
    """Of all files, when they were last read, for good or bad."""
    _in_force: Prints = field(init=False)
    """Of all files, when what holds now was read."""

    def __post_init__(self) -> None:
        loaded = self.gateway.current.loaded
        self._started_with = loaded.config
        self._seen = self._in_force = prints(files_of(loaded))

    async def reload(self) -> Reloaded:
        """Never raises: what is wrong with the file is in the answer, the log and a metric."""
        async with self._turn:
            try:
                loaded = await asyncio.to_thread(self._read)
                self._check_reach(loaded)
            except ConfigError as error:
                return self._refused(str(error))
            if self.gateway.middle.closing.is_set():
                return Reloaded(False, error="The gateway is stopping")
            done = self._replace(loaded)
            self.gateway.operator.reloaded(time.time(), ok=True)
            for doubt in loaded.warnings:
                log.warning(
                    "config.doubted", at=f"{doubt.file}:{doubt.line}", problem=doubt.problem
                )
            log.info("config.reloaded", file=str(loaded.file), **msgspec.structs.asdict(done))
            if done.needs_restart:
                log.warning("config.unheeded", settings=done.needs_restart, until="a restart")
            return done

    async def watch(self) -> None:
        """While the configuration says so, reload whenever the content of its files has
        changed and has come to rest. Until cancelled.

        By content, not by events: Kubernetes swaps links, editors rename, and both touch a
        file many times.
        """
        before = self._seen
        while True:
            await asyncio.sleep(self.look_every_s)
            if not self.gateway.config.watch:
                continue
            now = await asyncio.to_thread(prints, files_of(self.gateway.current.loaded))
            if now == before and now != self._seen and now[self._file] is not None:
                await self.reload()
            before = now

    @property
    def _file(self) -> Path:
        return self.gateway.current.loaded.file

    def _read(self) -> Loaded:
        """In a thread. What changes while it is read is found changed at the next look."""
        before = self._seen = prints(files_of(self.gateway.current.loaded))
        loaded = load_aside(self._file, self.environ, self.cwd)
        now = prints(files_of(loaded))
        self._seen = {file: before.get(file, print_) for file, print_ in now.items()}
        return loaded

    def _refused(self, errors: str) -> Reloaded:
        self.gateway.operator.reloaded(time.time(), ok=False)
        log.error("config.refused", file=str(self._file), errors=errors)
        return Reloaded(False, error=errors)

    def _check_reach(self, loaded: Loaded) -> None:
        """A file that is fine for the address it names may leave the one that is open, until
        a restart, without anybody to guard it. Raises `ConfigError`."""
        if loaded.config.auth.mode != "unset":
            return
        for address in self.gateway.listening:
            if not address.is_loopback:
                said = (
                    f"another `listen` holds after a restart only, and {address} reaches beyond "
                    "this machine: keep `auth` until then, or restart now"
                )
                raise ConfigError([Complaint(str(loaded.file), said)])

    def _replace(self, loaded: Loaded) -> Reloaded:
        """From here on nothing waits: no call sees half of one and half of the other."""
        gateway = self.gateway
        offered = gateway.middle.offered()
        current = gateway.current
        gone = withdrawn(_tokens(current.config), _tokens(loaded.config))
        current.loaded, current.rules = loaded, rules_of(loaded)
        gateway.regard()
        if gone:
            gateway.withdraw(gone)
        fleet = gateway.fleet
        fleet.shelf.prefixes, fleet.shelf.longest = current.prefixes, loaded.config.names.longest
        before, now = self._in_force, self._seen
        touched = {
            name
            for name, files in files_of_servers(loaded.config).items()
            if any(now[file] != before.get(file) for file in files)
        }
        self._in_force = now
        done = fleet.apply(current.servers, gateway.assembly.server, touched)
        for kind in sorted(changed_kinds(offered, gateway.middle.offered())):
            gateway.middle.board.post(ListChanged(kind))
        unheeded = _unheeded(self._started_with, loaded.config)
        return Reloaded(True, done.added, done.removed, done.restarted, unheeded)


def _tokens(config: Config) -> tuple[Token, ...] | None:
    return config.auth.tokens if config.auth.mode == "tokens" else None


def _unheeded(started: Config, now: Config) -> tuple[str, ...]:
    return tuple(
        name.removesuffix("_bytes")
        for name in NEEDS_RESTART
        if _at(started, name) != _at(now, name)
    )


def _at(config: Config, name: str) -> object:
    found: object = config
    for part in name.split("."):
        found = getattr(found, part)
    return found
