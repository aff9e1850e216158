"""The walk with Python `mcp` 2.x: PREFIX URL MODE; the mode is legacy, auto or a revision."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from mcp import Client, MCPError, types
from mcp.client.context import ClientRequestContext

from tests.peers.clients.walk import Message, tell, walk

MODERN = "2026-07-28"


class Mcp2:
    """The SDK's client; what it is told, apart from answers, goes to `heard`."""

    def __init__(self, client: Client, heard: "asyncio.Queue[str]"):
        self.version = client.protocol_version
        self._client = client
        self._heard = heard

    async def listed(self, kind: str) -> list[Message]:
        listing = {
            "tools": self._client.list_tools,
            "prompts": self._client.list_prompts,
            "resources": self._client.list_resources,
            "resourceTemplates": self._client.list_resource_templates,
        }[kind]
        found: list[Message] = _plain(await listing())[kind]
        return found

    async def call(
        self, name: str, arguments: Message, progress: list[float] | None = None
    ) -> Message:
        async def report(done: float, total: float | None, message: str | None) -> None:
            if progress is not None:
                progress.append(done)

        listen = None if progress is None else report
        return _plain(await self._client.call_tool(name, arguments, progress_callback=listen))

    async def read(self, uri: str) -> Message:
        return _plain(await self._client.read_resource(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> Message:
        return _plain(await self._client.get_prompt(name, arguments))

    async def told_of_tools(self, cause: Callable[[], Awaitable[Any]]) -> None:
        if self.version == MODERN:
            async with self._client.listen(tools_list_changed=True) as subscription:
                await cause()
                await anext(aiter(subscription))
            return
        await cause()
        while await self._heard.get() != "notifications/tools/list_changed":
            pass

    async def cancel_call(
        self, name: str, arguments: Message, started: Callable[[], Awaitable[Any]]
    ) -> None:
        """To cancel the call's task is enough: the SDK tells the server, as its era wants it."""
        async with asyncio.TaskGroup() as tasks:
            calling = tasks.create_task(self._client.call_tool(name, arguments))
            await started()
            calling.cancel()


async def answer_form(
    context: ClientRequestContext, params: types.ElicitRequestParams
) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def asked(client: Client, tool: str) -> str | int:
    """What a tool that asks the user says in the end, or the code it is refused with."""
    try:
        return str(_plain(await client.call_tool(tool, {}))["content"][0]["text"])
    except MCPError as refused:
        return refused.code


def _plain(result: Any) -> Message:
    plain: Message = result.model_dump(mode="json", by_alias=True)
    return plain


async def main() -> Message:
    prefix, url, mode = sys.argv[1:]
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def hear(message: Any) -> None:
        heard.put_nowait(getattr(message, "method", ""))

    client = Client(url, mode=mode, message_handler=hear, elicitation_callback=answer_form)
    async with client:
        seen = await walk(Mcp2(client, heard), prefix)
        if client.protocol_version == MODERN:
            seen["asked"] = await asked(client, f"{prefix}test_input_required_result_elicitation")
        return seen


if __name__ == "__main__":
    tell(main)
