"""Keep an ear open at a modern server: one `subscriptions/listen` that outlives its streams.

Streams end: proxies cut them, servers restart. Nothing is replayed (2026-07-28), so after
a gap whatever was listened for counts as changed.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import structlog

from gateway.downstream.transports.failures import NotTaken
from gateway.downstream.transports.streams import Hear, pause_s
from gateway.protocol import methods
from gateway.protocol.errors import GatewayError, ServerFailure
from gateway.protocol.jsonrpc import (
    Notification,
    Request,
    Result,
    decode,
    elements,
    encode_line,
    shallow,
    value,
)

log = structlog.get_logger()

STABLE_S = 30.0
"""A stream that held so long was no failure: its successor need not wait."""

CHANGES = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}
"""What is wished for, and how it is told."""


@dataclass(slots=True, eq=False)
class Listening:
    """One listen, over as many streams as it takes."""

    server: str
    request: Request
    hear: Hear
    """Where everything goes but a goodbye, which ends a stream and answers nothing."""
    is_confirmed: bool = False
    """The server has acknowledged it, or told something."""
    _has_gap: bool = False

    async def keep(
        self, attempt: Callable[[Hear], Awaitable[None]], is_wanted: Callable[[], bool]
    ) -> None:
        """Open stream after stream with `attempt`, which reads one to its end.

        Returns when it `is_wanted` no more, or was never confirmed. Raises `GatewayError`
        where another stream would not help: `NotTaken`, `ServerFailure`.
        """
        tries = 0
        while is_wanted():
            opened = time.monotonic()
            try:
                await attempt(self.take)
            except (NotTaken, ServerFailure):
                raise
            except GatewayError:
                if not self.is_confirmed:
                    raise
            if not self.is_confirmed or not is_wanted():
                return
            self._has_gap = True
            tries = 0 if time.monotonic() - opened > STABLE_S else tries + 1
            wait_s = pause_s(None, tries)
            log.info("listen.broken", server=self.server, again_in_s=round(wait_s, 1))
            await asyncio.sleep(wait_s)

    def take(self, line: bytes, about: int | None) -> None:
        """One message from the stream. Passes it on, and after a gap what may be missing."""
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
                for missed in missed_by(self.request):
                    self.hear(encode_line(missed), about)


def missed_by(request: Request) -> Iterator[Notification]:
    """All that this listen may have missed."""
    wished = shallow(request.params.get("notifications")) or {}
    for wish, method in CHANGES.items():
        if value(wished, wish) is True:
            yield Notification(method, {})
    for uri in elements(wished.get("resourceSubscriptions")) or ():
        yield Notification(methods.UPDATED, {"uri": uri})
