"""What a client of the oldest transport sees: PREFIX and the URL of `/sse`. Any Python `mcp`."""

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession
from mcp.client.sse import sse_client

WAIT_S = 60


async def main() -> dict[str, Any]:
    prefix, url = sys.argv[1:]
    async with sse_client(url) as (read, write), ClientSession(read, write) as session:
        welcome = await session.initialize()
        tools = await session.list_tools()
        first, second = await asyncio.gather(
            session.call_tool(f"{prefix}echo", {"text": "one"}),
            session.call_tool(f"{prefix}echo", {"text": "two"}),
        )
        failed = await session.call_tool(f"{prefix}fail", {"text": "no luck"})
        return {
            "version": welcome.protocolVersion,
            "tools": [tool.name for tool in tools.tools],
            "texts": [first.content[0].text, second.content[0].text],
            "failed": failed.isError,
        }


async def bounded() -> dict[str, Any]:
    async with asyncio.timeout(WAIT_S):
        return await main()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(bounded())), flush=True)
