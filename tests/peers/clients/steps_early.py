"""The steps with Python `mcp` 1.9, the first that speaks 2025-03-26: URL MODE.

It knows no elicitation. (1.8 has Streamable HTTP too, but speaks 2024-11-05 over it.)
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

from tests.peers.clients.steps import Connected, Updated, by_hand, city, main, roots


@asynccontextmanager
async def connected(url: str, _mode: str) -> AsyncIterator[Connected]:
    updated = Updated()
    told: dict[str, Any] = {"sampling_callback": city, "list_roots_callback": roots}
    async with (
        streamablehttp_client(url) as (read, write, _),
        ClientSession(read, write, message_handler=updated.hear, **told) as session,
    ):
        version = str((await session.initialize()).protocolVersion)
        yield Connected(session, version, updated, by_hand(session))


if __name__ == "__main__":
    asyncio.run(main(connected))
