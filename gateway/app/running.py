"""A gateway from its first server's start to the last one's end."""

from asyncio import TaskGroup
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from gateway.app.compose import compose
from gateway.app.gateway import Gateway
from gateway.config.loaded import Loaded
from gateway.observe.stream import LineStream


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
                await gateway.listen()
            gateway.fleet.start()
            yield gateway
        finally:
            await gateway.stop()
