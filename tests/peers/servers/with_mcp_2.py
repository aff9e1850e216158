"""The notes on Python `mcp` 2.x, which serves both eras and locks to the first one it hears."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated

from tests.peers.servers.notes import CHANGES_EVERY_S, TODAY, offer_notes

changes = InMemorySubscriptionBus()


@asynccontextmanager
async def changing(server: MCPServer[None]) -> AsyncIterator[None]:
    async def change() -> None:
        while True:
            await asyncio.sleep(CHANGES_EVERY_S)
            await changes.publish(ResourceUpdated(uri=TODAY))

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(change())
        yield
        task.cancel()


server = MCPServer("notes", subscriptions=changes, lifespan=changing)
offer_notes(server, Context)

if __name__ == "__main__":
    server.run("stdio")
