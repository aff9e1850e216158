"""Take steps through a gateway as a Python SDK's client: URL MODE, and the steps on stdin.

A step is `[server, what, name, arguments]`; each prints one line of JSON with what was seen.
MODE is `1` for Python `mcp` 1.x, else the mode of 2.x. Whoever is asked is Ada, in Bern.
Clients with methods of other names have modules of their own, and take their steps here.
"""

from __future__ import annotations  # the oldest SDK lacks some of these types

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from mcp import types
from mcp.types import PromptReference, TextContent

WAIT_S = 150
MODERN = "2026-07-28"
Connect = Callable[[str, str], AbstractAsyncContextManager[tuple[Any, str]]]


async def name(_context: Any, _params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def city(_context: Any, _params: Any) -> types.CreateMessageResult:
    text = TextContent(type="text", text="Bern")
    return types.CreateMessageResult(role="assistant", content=text, model="a-model")


async def roots(_context: Any) -> types.ListRootsResult:
    root = types.Root.model_validate({"uri": "file:///home/ada"})
    return types.ListRootsResult(roots=[root])


ASKED = {
    "elicitation_callback": name,
    "sampling_callback": city,
    "list_roots_callback": roots,
}


@asynccontextmanager
async def connected(url: str, mode: str) -> AsyncIterator[tuple[Any, str]]:
    """The SDK's client, and the revision it speaks."""
    if mode == "1":
        from mcp import ClientSession
        from mcp.client.streamable_http import streamablehttp_client

        async with (
            streamablehttp_client(url) as streams,
            ClientSession(streams[0], streams[1], **ASKED) as session,  # type: ignore[arg-type]
        ):
            yield session, str((await session.initialize()).protocolVersion)
    else:
        from mcp import Client

        async with Client(url, mode=mode, **ASKED) as client:
            yield client, client.protocol_version


async def take(api: Any, version: str, what: str, target: str, arguments: Any) -> Any:
    """What one step shows, as JSON can say it."""
    match what:
        case "list":
            return [tool.name for tool in (await api.list_tools()).tools if target in tool.name]
        case "read":
            return (await api.read_resource(target)).contents[0].text
        case "prompt":
            return (await api.get_prompt(target, arguments)).messages[0].content.text
        case "complete":
            ref = PromptReference(type="ref/prompt", name=target)
            return (await api.complete(ref, arguments)).completion.values
        case "subscribe" if version == MODERN:
            async with api.listen(resource_subscriptions=[target]):
                return "subscribed"
        case "subscribe":
            await api.subscribe_resource(target)
            return "subscribed"
        case "progress":
            heard: list[float] = []

            async def hear(done: float, total: float | None, message: str | None) -> None:
                heard.append(done)

            await api.call_tool(target, arguments, progress_callback=hear)
            return len(heard)
    return (await api.call_tool(target, arguments)).content[0].text


async def main(connected: Connect) -> None:
    url, mode = sys.argv[1:]
    async with asyncio.timeout(WAIT_S), connected(url, mode) as (api, version):
        for server, what, target, arguments in json.load(sys.stdin):
            try:
                saw = await take(api, version, what, target, arguments)
            except Exception as error:  # noqa: BLE001 - what went wrong is what was seen
                saw = f"{type(error).__name__}: {error}"
            line = {"server": server, "what": what, "version": version, "saw": saw}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    asyncio.run(main(connected))
