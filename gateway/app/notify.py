"""Tell the service manager how things are (sd_notify(3)); silent where there is none.

The watchdog is fed from the event loop: a loop that hangs stops feeding it, and systemd
starts the gateway anew.
"""

import asyncio
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Notifier:
    """Speaks to `NOTIFY_SOCKET`: a path, or an abstract name written with `@`."""

    address: str | None
    watchdog_s: float | None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Notifier":
        interval = environ.get("WATCHDOG_USEC", "")
        watchdog_s = int(interval) / MICROSECONDS if interval.isdigit() and int(interval) else None
        return cls(environ.get("NOTIFY_SOCKET") or None, watchdog_s)

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

    def _say(self, message: str) -> None:
        if self.address is None:
            return
        where = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto(message.encode(), where)
