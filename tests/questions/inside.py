"""A gateway in the test's own process in front of one asking server, and what is inside it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.downstream.apart import Apart
from gateway.eras.legacy.parked import Parked
from tests.kit.processes import is_alive
from tests.kit.waiting import eventually_async
from tests.questions.talking import Heard, asker
from tests.servers.gate import Gate, gate

ANN, BOB = "an-anonymous-token-for-ann", "another-token-for-bob"


@dataclass(frozen=True)
class Inside:
    gate: Gate
    heard: Heard

    @property
    def url(self) -> str:
        return self.gate.url

    @property
    def apart(self) -> Apart:
        return self.gate.server().apart

    @property
    def parked(self) -> Parked:
        return self.apart.parked

    @property
    def pids(self) -> list[int | None]:
        """Of the private processes."""
        return [each.transport.pid for each in self.apart.pool.connections]

    def pass_time(self, seconds: float) -> None:
        """For parked calls and private processes; nobody waits."""
        now = self.parked.clock() + seconds
        self.parked.clock = self.apart.pool.clock = self.apart.pool.spare.clock = lambda: now
        self.gate.gateway.fleet.expire()

    async def gone(self, pid: int) -> None:
        await eventually_async(lambda: not is_alive(pid), 15, what=f"{pid} to be gone")

    async def spare_ready(self) -> int:
        """The pid of the spare, once it is up."""
        spare = self.apart.pool.spare

        def pid() -> int | None:
            return spare.connections[0].transport.pid if spare.connections else None

        return int(await eventually_async(pid, 15, what="a spare to be up"))


@asynccontextmanager
async def inside(
    folder: Path, era: str = "legacy", *flags: object, config: Any = None, **keys: Any
) -> AsyncIterator[Inside]:
    """`keys` are of the server's section, `config` top-level ones."""
    heard = Heard(folder / "it.heard")
    section = asker(era, "--record", heard.file, *flags, **keys)
    async with gate(folder, {"it": section}, **(config or {})) as opened:
        await opened.ready()
        yield Inside(opened, heard)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
