"""A gateway from its first server's start to the last one's end."""

import asyncio
from asyncio import TaskGroup
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from gateway.app.compose import compose
from gateway.app.gateway import Gateway
from gateway.config.loaded import Loaded
from gateway.observe.stream import LineStream

BEGUN_AFTER = 4
"""Turns of the loop, in which the processes of servers are started: they come up while what
serves clients is being loaded."""


@asynccontextmanager
async def running(
    loaded: Loaded,
    environ: Mapping[str, str],
    only: frozenset[str] | None = None,
    stream: LineStream | None = None,
    *,
    listen: bool = False,
) -> AsyncIterator[Gateway]:
    """A gateway with its servers starting (`only` some, by key); stopped on the way out.

    `stream` is the log's, where the record may have to go as well. With `listen` clients
    can come from the start; raises `CannotListen`, before any server is started.
    """
    async with TaskGroup() as tasks:
        gateway = compose(loaded, environ, tasks, only, stream)
        gateway.watch_over()
        try:
            if listen:
                await gateway.bind()
            gateway.fleet.start()
            if listen:
                for _ in range(BEGUN_AFTER):
                    await asyncio.sleep(0)
                await gateway.listen()
            yield gateway
        finally:
            await gateway.stop()
