"""One call that takes a while, made with Python `mcp` 1.x: URL, TOOL, arguments as JSON."""

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

WAIT_S = 60


async def main() -> dict[str, Any]:
    url, tool, arguments = sys.argv[1:]
    progress: list[float] = []

    async def report(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    async with (
        asyncio.timeout(WAIT_S),
        streamable_http_client(url) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        result = await session.call_tool(tool, json.loads(arguments), progress_callback=report)
        return {"progress": progress, "text": result.content[0].text}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main())), flush=True)
