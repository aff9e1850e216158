"""Whether the machine is quiet enough for figures to mean something."""

import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

QUIET_LOAD = 0.3
"""Of one minute, for each core."""
QUIET_STEAL = 0.01
LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class Machine:
    cores: int
    load_1m: float
    steal: float | None
    """Share of time that the machine below takes away; None where the kernel does not say."""
    busy: float | None
    """Share of time that others use while we do nothing."""
    loop_ms: float
    """A fixed piece of Python: how fast the machine is now."""

    @property
    def is_quiet(self) -> bool:
        return (
            self.load_1m <= QUIET_LOAD * self.cores
            and (self.steal or 0) <= QUIET_STEAL
            and (self.busy or 0) <= QUIET_LOAD / 2
        )

    def words(self) -> str:
        steal = "unknown" if self.steal is None else f"{self.steal:.1%}"
        busy = "unknown" if self.busy is None else f"{self.busy:.0%}"
        return (
            f"{self.cores} cores, load average {self.load_1m:.2f}, used by others {busy}, "
            f"stolen {steal}, fixed loop {self.loop_ms:.1f} ms"
        )

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "quiet": self.is_quiet}


def look(for_s: float = LOOK_S) -> Machine:
    """Watch the machine do nothing of ours."""
    before = _ticks()
    time.sleep(for_s)
    after = _ticks()
    steal = busy = None
    if before and after and sum(after) > sum(before):
        spent = [late - early for early, late in zip(before, after, strict=True)]
        steal = spent[7] / sum(spent)
        busy = 1 - (spent[3] + spent[4] + spent[7]) / sum(spent)
    return Machine(os.cpu_count() or 1, os.getloadavg()[0], steal, busy, loop_ms())


def loop_ms() -> float:
    best = float("inf")
    for _ in range(3):
        at = time.perf_counter()
        total = 0
        for number in range(200_000):
            total += number * number
        best = min(best, time.perf_counter() - at)
    return best * 1e3


def _ticks() -> list[int]:
    """user nice system idle iowait irq softirq steal, since the start of the machine."""
    try:
        first = Path("/proc/stat").read_text().splitlines()[0]
    except OSError:
        return []
    return [int(word) for word in first.split()[1:9]]
