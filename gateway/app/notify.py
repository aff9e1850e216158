"""Tell the service manager how things are (sd_notify(3)); silent where there is none.

The watchdog is fed from the event loop: a loop that hangs stops feeding it, and systemd
starts the gateway anew.
"""

import asyncio
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

MICROSECONDS = 1_000_000


@dataclass(slots=True, eq=False)
class Notifier:
    """Speaks to `NOTIFY_SOCKET`: a path, or an abstract name written with `@`."""

    address: str | None
    watchdog_s: float | None
    _socket: socket.socket | None = None
    """Kept open: the watchdog must be fed also when no more files can be opened."""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Notifier":
        interval = environ.get("WATCHDOG_USEC", "")
        whose = environ.get("WATCHDOG_PID", "")
        is_ours = not whose or whose == str(os.getpid())
        watchdog_s = int(interval) / MICROSECONDS if interval.isdigit() and is_ours else 0.0
        return cls(environ.get("NOTIFY_SOCKET") or None, watchdog_s or None)

    def ready(self) -> None:
        self._say("READY=1")

    def reloading(self) -> None:
        self._say(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        self._say("STOPPING=1")

    async def feed(self) -> None:
        """Keep the watchdog quiet, if there is one; until cancelled."""
        while self.watchdog_s is not None:
            self._say("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_s / 3)  # twice before it bites

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _say(self, message: str) -> None:
        if self.address is None:
            return
        where = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with suppress(OSError):  # nobody listens, or only slowly: nothing depends on it
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._socket.setblocking(False)
            self._socket.sendto(message.encode(), where)
