"""CPU and memory of a gateway: of its process and its helpers, without the servers behind it."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil

from tests.bench.echo import is_echo
from tests.kit.processes import words_of


class Meter:
    """Knows the processes of a running gateway. Which they are is looked up once: that is slow."""

    def __init__(self, pid: int) -> None:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
        words = {each: words_of(each) for each in family}
        self._processes = [each for each in family if words[each] and not is_echo(words[each])]

    def cpu_s(self) -> float:
        """User and system time until now, in steps of 10 ms."""
        return sum(self._each(lambda process: sum(process.cpu_times()[:2])))

    def memory_mb(self) -> float:
        """Resident memory, in MB of 2**20 bytes."""
        return sum(self._each(lambda process: process.memory_info().rss)) / (1 << 20)

    def _each(self, read: Callable[[psutil.Process], float]) -> Iterator[float]:
        for process in self._processes:
            with suppress(psutil.NoSuchProcess):  # it was there for the start alone
                yield read(process)
