"""The walk with Python `mcp` 2.x: PREFIX URL MODE, or PREFIX and the command of a stdio server with
MODE as its second word. The mode is legacy, auto or a revision.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from mcp import Client, MCPError, StdioServerParameters, types
from mcp.client.context import ClientRequestContext

from tests.peers.clients import walk
from tests.peers.clients.walk import Message, plain, tell

MODERN = "2026-07-28"


class Mcp2(walk.Client):
    """The SDK's client."""

    async def told_of_tools(self, cause: Callable[[], Awaitable[Any]]) -> None:
        if self.version == MODERN:
            async with self.api.listen(tools_list_changed=True) as subscription:
                await cause()
                await anext(aiter(subscription))
        else:
            await super().told_of_tools(cause)

    async def cancel_call(
        self, name: str, arguments: Message, started: Callable[[], Awaitable[Any]]
    ) -> None:
        """To cancel the call's task is enough: the SDK tells the server, as its era wants it."""
        async with asyncio.TaskGroup() as tasks:
            calling = tasks.create_task(self.api.call_tool(name, arguments))
            await started()
            calling.cancel()


async def answer_form(
    context: ClientRequestContext, params: types.ElicitRequestParams
) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def asked(client: Client, tool: str) -> str | int:
    """What a tool that asks the user says in the end, or the code it is refused with."""
    try:
        return str(plain(await client.call_tool(tool, {}))["content"][0]["text"])
    except MCPError as refused:
        return refused.code


async def main() -> Message:
    prefix, target, mode, *rest = sys.argv[1:]
    at = StdioServerParameters(command=target, args=rest) if rest else target
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def hear(message: Any) -> None:
        heard.put_nowait(getattr(message, "method", ""))

    client = Client(at, mode=mode, message_handler=hear, elicitation_callback=answer_form)
    async with client:
        seen = await walk.walk(Mcp2(client, client.protocol_version, heard), prefix)
        if client.protocol_version == MODERN:
            seen["asked"] = await asked(client, f"{prefix}test_input_required_result_elicitation")
        return seen


if __name__ == "__main__":
    tell(main)
