"""`onegate stdio` with a gateway of its own: in this process, for this client alone."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path

from gateway.app.gateway import Gateway
from gateway.app.running import running
from gateway.cli.bridging import on_signals, tell
from gateway.cli.ends import StandardEnds
from gateway.cli.reach import loaded
from gateway.cli.standing_in import plain
from gateway.config.environ import environment
from gateway.config.load import Loaded
from gateway.downstream.supervise import contained
from gateway.edge.admin.operator import ServerReport
from gateway.edge.stdio.holding import Holding
from gateway.edge.stdio.within import Within
from gateway.edge.stdio.work import Work
from gateway.observe.logs import configure_logs
from gateway.observe.stream import LineStream

SETTLE_S = 0.7
"""The first list waits this long for servers that nothing is remembered of."""
LOOK_EVERY_S = 0.02
STOP_S = 0.4
"""Servers have this long to leave; then they are killed."""


def serve_alone(file: Path | None) -> None:
    """Serve until stdin ends. Raises `Misconfigured`."""
    found = loaded(file)
    stream = configure_logs(found.config.log.level, found.config.log.format, wall=time.time)
    try:
        asyncio.run(_serve(found, stream))
    except BaseExceptionGroup as group:
        raise plain(group) from None


async def _serve(found: Loaded, stream: LineStream) -> None:
    ends = StandardEnds()
    loop = asyncio.get_running_loop()
    with suppress(TimeoutError):
        async with asyncio.timeout(None) as hurry:
            async with running(found, environment(), stream=stream) as gateway:
                await _converse(gateway, ends)
                hurry.reschedule(loop.time() + STOP_S)
    await ends.close()


async def _converse(gateway: Gateway, ends: StandardEnds) -> None:
    loop = asyncio.get_running_loop()
    settled_by = loop.time() + SETTLE_S

    async def settled() -> None:
        while loop.time() < settled_by and any(map(_is_empty, gateway.operator.servers())):  # noqa: ASYNC110 - many servers, no event
            await asyncio.sleep(LOOK_EVERY_S)

    async with asyncio.TaskGroup() as tasks:
        holding = Holding(ends, Work(tasks, lambda work: contained(work, "stdio")), tell)
        on_signals(holding.end)
        catalog = gateway.middle.offered
        far = Within(gateway.entrance, holding.mouth, lambda: catalog().header_params, settled)
        await holding.hold(far)
        await far.leave()
        holding.work.end()


def _is_empty(server: ServerReport) -> bool:
    """It starts, and nothing is known of it."""
    return server.state == "starting" and not (server.tools + server.prompts + server.resources)
