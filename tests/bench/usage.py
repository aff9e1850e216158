"""CPU and memory of a gateway: of its process and its helpers, without the servers behind it."""

import psutil

from tests.bench.echo import is_echo


class Meter:
    """Knows the processes of a running gateway. Which they are is looked up once: that is slow."""

    def __init__(self, pid: int) -> None:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
        self._processes = [each for each in family if not is_echo(each.cmdline())]

    def cpu_s(self) -> float:
        """User and system time until now, in steps of 10 ms."""
        return sum(each.cpu_times().user + each.cpu_times().system for each in self._processes)

    def memory_mb(self) -> float:
        """Resident memory, in MB of 2**20 bytes."""
        return sum(each.memory_info().rss for each in self._processes) / (1 << 20)
