"""Take steps through a gateway as a Python SDK's client: URL MODE, and the steps on stdin.

A step is `[server, what, name, arguments]`; each prints one line of JSON with what was seen.
MODE is `1` for Python `mcp` 1.x, else the mode of 2.x. Whoever is asked is Ada, in Bern.
Clients with methods of other names have modules of their own, and take their steps here.
"""

from __future__ import annotations  # the oldest SDK lacks some of these types

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from mcp import types
from mcp.types import PromptReference, TextContent

WAIT_S = 150
MODERN = "2026-07-28"
PATIENCE_S = 20


@dataclass(frozen=True)
class Connected:
    """The SDK's client, the revision it speaks, and the URIs that it was told are updated."""

    api: Any
    version: str
    updated: Updated
    by_hand: ByHand | None = None
    """Of an SDK that tells the server nothing when a call's task is cancelled."""


@dataclass(frozen=True)
class ByHand:
    """The session, which numbers its requests, and how to tell `notifications/cancelled` over it,
    given the params."""

    session: Any
    tell: Callable[[dict[str, Any]], Awaitable[None]]


def by_hand(session: Any) -> ByHand:
    """With the types that newer ones of 1.x have for it."""

    async def tell(params: dict[str, Any]) -> None:
        words = {"method": "notifications/cancelled", "params": params}
        cancelled = types.CancelledNotification.model_validate(words)
        await session.send_notification(types.ClientNotification(cancelled))

    return ByHand(session, tell)


class Updated:
    """What the client has heard of resources that it subscribed to, in a legacy era."""

    def __init__(self) -> None:
        self._uris: asyncio.Queue[str] = asyncio.Queue()

    async def hear(self, message: Any) -> None:
        """Any message that is no answer, as each of the SDKs hands it over."""
        told = getattr(message, "root", message)
        if isinstance(told, types.ResourceUpdatedNotification):
            self._uris.put_nowait(str(told.params.uri))

    async def wait(self, uri: str) -> None:
        while await self._uris.get() != uri:
            pass


Connect = Callable[[str, str], AbstractAsyncContextManager[Connected]]


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
async def connected(url: str, mode: str) -> AsyncIterator[Connected]:
    updated = Updated()
    told: dict[str, Any] = {**ASKED, "message_handler": updated.hear}
    if mode == "1":
        from mcp import ClientSession
        from mcp.client.streamable_http import streamablehttp_client

        async with (
            streamablehttp_client(url) as streams,
            ClientSession(streams[0], streams[1], **told) as session,
        ):
            version = str((await session.initialize()).protocolVersion)
            yield Connected(session, version, updated, by_hand(session))
    else:
        from mcp import Client

        async with Client(url, mode=mode, **told) as client:
            yield Connected(client, client.protocol_version, updated)


async def take(client: Connected, what: str, target: str, arguments: Any) -> Any:
    """What one step shows, as JSON can say it."""
    api = client.api
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
        case "subscribe":
            return await subscribed(client, target, arguments["within_s"])
        case "cancel":
            return await cancelled(client, target, **arguments)
        case "progress":
            heard: list[float] = []

            async def hear(done: float, total: float | None, message: str | None) -> None:
                heard.append(done)

            await api.call_tool(target, arguments, progress_callback=hear)
            return len(heard)
    return (await api.call_tool(target, arguments)).content[0].text


async def subscribed(client: Connected, uri: str, within_s: float) -> str:
    """Whether the client is told that a resource is another now."""
    try:
        async with asyncio.timeout(within_s):
            if client.version == MODERN:
                async with client.api.listen(resource_subscriptions=[uri]) as changes:
                    while (await anext(aiter(changes))).uri != uri:
                        pass
            else:
                await client.api.subscribe_resource(uri)
                await client.updated.wait(uri)
    except TimeoutError:
        return "no update"
    return "updated"


async def cancelled(client: Connected, tool: str, arguments: Any, witness: Any) -> str:
    """Whether the server has heard of it when a call that goes on is cancelled."""

    async def told() -> str:
        return str((await client.api.call_tool(**witness)).content[0].text)

    before, going = await told(), asyncio.Event()

    async def hear(done: float, total: float | None, message: str | None) -> None:
        going.set()

    number = client.by_hand and client.by_hand.session._request_id
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        calling = tasks.create_task(client.api.call_tool(tool, arguments, progress_callback=hear))
        await going.wait()
        if client.by_hand is not None:
            await client.by_hand.tell({"requestId": number})
        calling.cancel()
        while await told() == before:  # noqa: ASYNC110 - it is written in another process
            await asyncio.sleep(0.05)
    return "the server knows"


async def main(connected: Connect) -> None:
    url, mode = sys.argv[1:]
    async with asyncio.timeout(WAIT_S), connected(url, mode) as client:
        for server, what, target, arguments in json.load(sys.stdin):
            try:
                saw = await take(client, what, target, arguments)
            except Exception as error:  # noqa: BLE001 - what went wrong is what was seen
                saw = f"{type(error).__name__}: {error}"
            line = {"server": server, "what": what, "version": client.version, "saw": saw}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    asyncio.run(main(connected))
