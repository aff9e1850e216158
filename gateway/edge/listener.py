"""Serve HTTP on bound sockets: start, stop accepting, drain."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import cast

import structlog
from aiohttp import web

from gateway.edge.connections import Connection, Connections
from gateway.edge.crowd import Crowd
from gateway.edge.direct import Directs, Post
from gateway.edge.heads import Heads
from gateway.edge.pulse import Pulse, Watched
from gateway.edge.sockets import Bound

log = structlog.get_logger()

Serve = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

BACKLOG = 1024
CUT_S = 0.5
"""How long what was cut may take to say so; `drain` may wait for it so often."""
LAST_S = 0.25
"""How long an idle connection may still bring a request that was on its way."""
LOOK_EVERY_S = 0.02


class Listener:
    """One handler on one or more addresses. Everything it starts is a task of `tasks`."""

    def __init__(
        self,
        serve: Serve,
        pulse: Pulse,
        tasks: asyncio.TaskGroup,
        *,
        header_bytes: int,
        spare_share: float = 1.0,
        post: Post | None = None,
    ) -> None:
        """`spare_share`: of the files kept from clients, so many are kept from these.
        `post` serves small POSTs to the endpoint; None: they are like everything else."""
        self.crowd = Crowd(share=spare_share)
        self._connections = Connections(serve, pulse, self.crowd, header_bytes=header_bytes)
        self._directs: Directs | None = None
        if post is not None:
            self._directs = Directs(
                post, pulse, self.crowd, self._connections, Heads(pulse, time.time)
            )
        self._pulse = pulse
        self._tasks = tasks
        self._bound: tuple[Bound, ...] = ()
        self._servers: list[asyncio.AbstractServer] = []
        self._ticker: asyncio.Task[None] | None = None
        pulse.watch(self._watched)

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return sum(1 for _ in self._watched())

    @property
    def direct(self) -> int:
        """How many of these aiohttp's handler has not got."""
        return 0 if self._directs is None else len(self._directs.open)

    async def start(self, bound: Sequence[Bound]) -> None:
        """Accept connections on these sockets from now on."""
        loop = asyncio.get_running_loop()
        self._bound = tuple(bound)
        accept = self._directs or self._connections
        for one in bound:
            make = loop.create_server if one.address.path is None else loop.create_unix_server
            for sock in one.sockets:
                server = await make(accept, sock=sock, backlog=BACKLOG)
                self._servers.append(server)
        self._ticker = self._tasks.create_task(self._pulse.run())

    def regard(self, header_bytes: int, request_s: float) -> None:
        """Bounds for the connections to come; those that are there keep theirs."""
        self._connections.header_bytes = header_bytes
        self._pulse.head_s = request_s

    def stop_accepting(self) -> None:
        """Close the sockets; connections that are there go on."""
        for server in self._servers:
            server.close()
        for one in self._bound:
            one.close()
        self._servers, self._bound = [], ()

    async def drain(self, grace_s: float) -> None:
        """Stop: let answers finish within `grace_s`, end held streams, then cut the rest.

        Returns after `grace_s` and five times `CUT_S` at the latest.
        """
        self.stop_accepting()
        self._connections.is_draining = True
        for one in tuple(self._pulse.open):
            one.wind_up()
        last_s = min(LAST_S, grace_s)
        await self._wait_last(last_s)
        self._connections.pre_shutdown()
        if self._directs is not None:
            self._directs.close_idle()
        await self._wait_quiet(grace_s - last_s)
        left = tuple(self._pulse.open)
        if left:
            log.warning("requests.cut", requests=len(left), grace_s=grace_s)
            for one in left:
                one.cut()
            await self._wait_quiet(CUT_S)
        if self._directs is not None:
            await self._directs.shutdown(CUT_S)
        await self._connections.shutdown(CUT_S)
        if self._ticker is not None:
            self._ticker.cancel()

    async def _wait_last(self, within_s: float) -> None:
        await asyncio.sleep(0)  # what was read by now is served yet
        for _ in range(round(within_s / LOOK_EVERY_S)):
            if not self.connections:
                break
            await asyncio.sleep(LOOK_EVERY_S)

    async def _wait_quiet(self, within_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._pulse.wait_quiet()

    def _watched(self) -> Iterable[Watched]:
        direct = () if self._directs is None else self._directs.open
        return (*cast(list[Connection], self._connections.connections), *direct)
