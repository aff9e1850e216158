"""Keep an ear open at a modern server: one `subscriptions/listen` that outlives its streams.

Streams end: proxies cut them, servers restart. Nothing is replayed (2026-07-28), so after
a gap whatever was listened for may have changed.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from gateway.downstream.transports.failures import BrokenOff, NotTaken, asked_for_s
from gateway.downstream.transports.streams import STABLE_S, Hear, pause_s
from gateway.protocol.errors import BadAnswer, GatewayError, ServerFailure
from gateway.protocol.jsonrpc import Notification, Result, decode

log = structlog.get_logger()

HAS_NONE = frozenset({-32601, -32602})
"""Errors of a server that has no listen, or not such a one."""

NOT_IMPLEMENTED = 501


@dataclass(slots=True, eq=False)
class Listening:
    """One listen, over as many streams as it takes."""

    server: str
    hear: Hear
    """Where everything goes but a goodbye, which ends a stream and answers nothing."""
    missed: Callable[[], None]
    """Told when it is open again after a gap."""
    is_confirmed: bool = False
    """The server has acknowledged it, or told something."""
    _has_gap: bool = False

    async def keep(
        self, attempt: Callable[[Hear], Awaitable[bool]], is_wanted: Callable[[], bool]
    ) -> None:
        """Open stream after stream with `attempt`, which reads one to its end, and tells whether
        it was left for its silence: then nothing was missed.

        Returns when it `is_wanted` no more, or was never confirmed. Raises `GatewayError`
        where another stream would not help.
        """
        tries = 0
        while is_wanted():
            opened, was_silent, later_s = time.monotonic(), False, 0.0
            try:
                was_silent = await attempt(self.take)
            except GatewayError as error:
                if not self._may_pass(error):
                    raise
                later_s = asked_for_s(error)
            else:
                if not self.is_confirmed:
                    return
            self._has_gap = self._has_gap or (self.is_confirmed and not was_silent)
            if was_silent or not is_wanted():
                continue
            tries = 0 if time.monotonic() - opened > STABLE_S else tries + 1
            wait_s = max(pause_s(None, tries), later_s)
            log.info("listen.broken", server=self.server, again_in_s=round(wait_s, 1))
            await asyncio.sleep(wait_s)

    def take(self, line: bytes, about: int | None) -> None:
        """One message from the stream. Passes it on, and says after a gap that there was one."""
        try:
            message = decode(line)
        except GatewayError:
            message = None  # whoever hears it says so
        if isinstance(message, Result) and self.is_confirmed:
            return
        self.hear(line, about)
        if isinstance(message, Notification):
            self.is_confirmed = True
            if self._has_gap:
                self._has_gap = False
                self.missed()

    def _may_pass(self, error: GatewayError) -> bool:
        """Whether another stream may have more luck. One that there was: unless the server says
        that it has none. One that never was: if the server is merely busy, or was cut off."""
        match error:
            case NotTaken():
                return False  # the whole connection is begun anew
            case ServerFailure():
                return self.is_confirmed and error.own_code not in HAS_NONE
            case BadAnswer(data={"status": int(status)}) if status >= 500:
                return status != NOT_IMPLEMENTED or self.is_confirmed
            case BrokenOff():
                return True
        return self.is_confirmed or error.retryable
