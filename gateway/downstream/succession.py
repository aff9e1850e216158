"""Run other servers from now on: what did not change stays, what did is replaced in turn.

Two of a kind side by side would fight over files and ports. So a server that is replaced
first ends the calls it has, then stops, and only then does the next one start. How long
that may take is for the limits of those calls to say.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
import structlog

from gateway.config.model import AnyServer
from gateway.downstream.predecessor import Predecessor
from gateway.downstream.server import Downstream

log = structlog.get_logger()

LOOK_EVERY_S = 0.1
"""How often a server that is to go is asked whether its calls have ended."""


class Succeeded(msgspec.Struct, frozen=True):
    """Names of servers, by what became of them."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Succession:
    """`servers` are those that serve; it is filled anew, so that who holds it sees that."""

    servers: dict[str, Downstream]
    beside: Callable[[Awaitable[None], str], object]
    """Run work for a server beside everything else."""
    retired: Callable[[str], Awaitable[None]]
    """Returns when nothing runs any more that a server of this name had given up."""
    leaving: dict[str, Downstream] = field(default_factory=dict)
    """Those that end their last calls; of each name there is one at most."""
    is_over: bool = False
    """The gateway stops: nothing is started any more."""

    @property
    def all(self) -> Iterator[Downstream]:
        yield from tuple(self.servers.values())
        yield from tuple(self.leaving.values())

    def apply(
        self,
        wanted: Mapping[str, AnyServer],
        make: Callable[[str, AnyServer], Downstream],
        touched: Collection[str],
    ) -> Succeeded:
        """Run these from now on. `touched`: to be taken for changed, whatever they say."""
        before = dict(self.servers)
        after = {
            name: old
            if (old := before.get(name)) is not None
            and name not in touched
            and old.runs_as(section)
            else make(name, section)
            for name, section in wanted.items()
        }
        self.servers.clear()
        self.servers.update(after)
        for name, server in after.items():
            old = before.get(name)
            if old is server:
                server.go_by(wanted[name])
                server.retry()
            else:
                self._replace(old, server)
        removed = tuple(name for name in before if name not in after)
        for name in removed:
            self._dismiss(before[name], None)
            before[name].apart.parked.dismiss()  # a retry would name what is no tool any more
        return Succeeded(
            tuple(name for name in after if name not in before),
            removed,
            tuple(name for name in after if name in before and after[name] is not before[name]),
        )

    async def stop(self) -> None:
        """Stop all servers at once, those that leave among them."""
        self.is_over = True
        async with asyncio.TaskGroup() as stopping:
            for server in self.all:
                stopping.create_task(server.stop())

    def _replace(self, old: Downstream | None, heir: Downstream) -> None:
        if old is not None:
            heir.inherit(old)
            before = self._dismiss(old, heir)
        else:
            before = self.leaving.get(heir.name)  # removed a moment ago, and here again
        if before is None:
            heir.start()
        else:
            heir.predecessor = Predecessor(heir.name, before)

    def _dismiss(self, old: Downstream, heir: Downstream | None) -> Downstream | None:
        """Let a server go. Returns whom its heir has to wait for."""
        if old.predecessor is None:
            self.leaving[old.name] = old
            log.info("server.dismissed", server=old.name, calls=old.in_flight)
            self.beside(self._leave(old), old.name)
            return old
        old.predecessor.make_way(heir)  # it never started; the one before it still leaves
        self.beside(old.stop(), old.name)
        return self.leaving.get(old.name)

    async def _leave(self, old: Downstream) -> None:
        try:
            # Calls that wait for their client may end without anybody being told.
            while old.is_busy and not self.is_over:  # noqa: ASYNC110
                await asyncio.sleep(LOOK_EVERY_S)
            await old.stop()
            await self.retired(old.name)
        finally:
            del self.leaving[old.name]
            heir = self.servers.get(old.name)
            if heir is not None and not self.is_over:
                heir.start()
