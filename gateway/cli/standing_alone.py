"""The gateway that `onegate stdio` runs in its own process, for one client alone.

Loaded while the client is being answered already.
"""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gateway.app.gateway import Gateway
from gateway.app.running import running
from gateway.cli.reach import finished
from gateway.config.aside import Reading
from gateway.config.environ import environment
from gateway.downstream.supervise import contained
from gateway.edge.admin.operator import ServerReport
from gateway.edge.endpoint import CRASHED
from gateway.edge.stdio.within import Within
from gateway.eras.sides import Answer, Entrance, Headers, Posted, Reply, Stream
from gateway.observe.logs import configure_logs

SETTLE_S = 5.0
"""The first lists and calls wait this long for servers that nothing is remembered of."""
LOOK_EVERY_S = 0.02
MERGED_S = 0.1
"""What a server lists is on offer this much later at most."""


async def host(reading: Reading, within: Within, stop: asyncio.Event) -> None:
    """Run a gateway until told to stop; cancelled meanwhile, its servers are killed.

    Raises `Misconfigured`.
    """
    found = await asyncio.to_thread(finished, reading)
    log = found.config.log
    stream = configure_logs(log.level, log.format, wall=time.time)
    async with running(found, environment(), stream=stream) as gateway:
        gc.freeze()  # what has been loaded stays
        gc.enable()
        within.lead_to(
            Contained(gateway.entrance), settling(gateway), lambda: not _is_settling(gateway)
        )
        await stop.wait()


def settling(gateway: Gateway) -> Callable[[], Awaitable[None]]:
    """Wait for servers that start and that nothing is known of; soon for the last time."""
    loop = asyncio.get_running_loop()
    until = loop.time() + SETTLE_S

    async def settled() -> None:
        is_late = False
        while loop.time() < until and _is_settling(gateway):
            is_late = True
            await asyncio.sleep(LOOK_EVERY_S)  # of many servers, none tells
        if is_late:
            await asyncio.sleep(MERGED_S)

    return settled


def _is_settling(gateway: Gateway) -> bool:
    return any(map(_is_empty, gateway.operator.servers()))


def _is_empty(server: ServerReport) -> bool:
    return server.state == "starting" and not (server.tools + server.prompts + server.resources)


@dataclass(frozen=True, slots=True)
class Contained:
    """An entrance (`eras.sides.Entrance`) where a bug in one request ends that request alone."""

    entrance: Entrance

    async def post(self, posted: Posted, reply: Reply) -> Answer:
        answers: list[Answer] = []

        async def serve() -> None:
            answers.append(await self.entrance.post(posted, reply))

        await contained(serve(), "stdio")
        return answers[0] if answers else CRASHED

    async def get(
        self, headers: Headers, principal: str | None, open_stream: Callable[[], Stream]
    ) -> Answer | Stream:
        return await self.entrance.get(headers, principal, open_stream)

    def left(self, headers: Headers, principal: str | None, stream: Stream) -> None:
        self.entrance.left(headers, principal, stream)

    async def delete(self, headers: Headers, principal: str | None) -> Answer:
        return await self.entrance.delete(headers, principal)
