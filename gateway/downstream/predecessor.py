"""The server in whose place another comes: while it is there, the other has to wait."""

import asyncio
from dataclasses import dataclass, field

from gateway.calls.call import Call
from gateway.calls.routing import Backend
from gateway.eras.questions import STATE
from gateway.protocol.errors import ServerUnavailable


@dataclass(slots=True, eq=False)
class Predecessor:
    """Held by a server that may not start yet. Calls for it wait here: for itself, or for
    whoever comes in its place before it ever started."""

    name: str
    server: Backend
    _gone: asyncio.Event = field(default_factory=asyncio.Event)
    _heir: Backend | None = None

    def make_way(self, heir: Backend | None) -> None:
        """Those who wait are `heir`'s from now on; None: they wait in vain."""
        self._heir = heir
        self._gone.set()

    async def server_for(self, call: Call) -> Backend:
        """Whom to give this call to. What began with the old server goes on with it.

        Raises `ServerUnavailable` if there will be none. The caller bounds the wait.
        """
        if STATE in call.params:
            return self.server
        await self._gone.wait()
        if self._heir is None:
            raise ServerUnavailable(
                f"The server {self.name} is no longer configured", server=self.name
            )
        return self._heir
