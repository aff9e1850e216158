"""What every Python client does, whatever its SDK: list, call, read, prompt, be told, cancel."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

Message = dict[str, Any]
WAIT_S = 60
LASTING_S = 600


class Client:
    """An SDK's client, connected: `api` has its methods, which both lines of the SDK call alike.

    Results are the plain objects of the wire. What comes that is no answer goes to `heard`.
    """

    def __init__(self, api: Any, version: str, heard: "asyncio.Queue[str]"):
        self.version = version
        self.api = api
        self._heard = heard

    async def listed(self, kind: str) -> list[Message]:
        """All of `tools`, `prompts`, `resources` or `resourceTemplates`."""
        listing = {
            "tools": self.api.list_tools,
            "prompts": self.api.list_prompts,
            "resources": self.api.list_resources,
            "resourceTemplates": self.api.list_resource_templates,
        }[kind]
        found: list[Message] = plain(await listing())[kind]
        return found

    async def call(
        self, name: str, arguments: Message, progress: list[float] | None = None
    ) -> Message:
        """The result of a tool; progress on the way is added to the list."""

        async def report(done: float, total: float | None, message: str | None) -> None:
            if progress is not None:
                progress.append(done)

        listen = None if progress is None else report
        return plain(await self.api.call_tool(name, arguments, progress_callback=listen))

    async def read(self, uri: str) -> Message:
        return plain(await self.api.read_resource(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> Message:
        return plain(await self.api.get_prompt(name, arguments))

    async def told_of_tools(self, cause: Callable[[], Awaitable[Any]]) -> None:
        """Do what changes the tools, and return when the server has told of it."""
        await cause()
        while await self._heard.get() != "notifications/tools/list_changed":
            pass

    async def cancel_call(
        self, name: str, arguments: Message, started: Callable[[], Awaitable[Any]]
    ) -> None:
        """Start a call, wait until it has `started`, then cancel it in the SDK's own way."""
        raise NotImplementedError


def plain(result: Any) -> Message:
    """An SDK's model as it was on the wire."""
    values: Message = result.model_dump(mode="json", by_alias=True)
    return values


async def walk(client: Client, prefix: str) -> Message:
    """All there is to see through this client of the server whose names start with `prefix`."""

    def named(name: str) -> str:
        return f"{prefix}{name}"

    async def text(name: str, arguments: Message | None = None) -> str:
        result = await client.call(named(name), arguments or {})
        return str(result["content"][0]["text"])

    async def names() -> list[str]:
        return [each["name"] for each in await client.listed("tools")]

    progress: list[float] = []
    await client.call(named("test_tool_with_progress"), {}, progress)
    structured = await client.call(named("test_structured_content"), {"numbers": [1, 2]})
    greeting = await client.prompt(
        named("test_prompt_with_arguments"), {"arg1": "one", "arg2": "two"}
    )
    seen = {
        "version": client.version,
        "tools": await names(),
        "prompts": [each["name"] for each in await client.listed("prompts")],
        "resources": [each["uri"] for each in await client.listed("resources")],
        "templates": [each["uriTemplate"] for each in await client.listed("resourceTemplates")],
        "text": await text("test_simple_text"),
        "structured": structured["structuredContent"],
        "progress": progress,
        "routed": await text("test_routed_by_header", {"region": "Zürich", "priority": 3}),
        "failed": (await client.call(named("test_error_handling"), {}))["isError"],
        "unknown": await code_of(client.call(named("no_such_tool"), {})),
        "read": (await client.read("test://static-text"))["contents"][0]["text"],
        "template": (await client.read("test://template/123/data"))["contents"][0]["text"],
        "missing": await code_of(client.read("test://nothing")),
        "prompt": greeting["messages"][0]["content"]["text"],
    }
    await client.told_of_tools(lambda: text("test_toggle_tool"))
    await until(lambda: contains(names, named("test_visitor")))
    await text("test_toggle_tool")
    seen["told"] = True

    async def running(number: str) -> bool:
        return await text("test_count_lasting") == number

    arguments = {"seconds": LASTING_S}
    await client.cancel_call(named("test_lasting"), arguments, lambda: until(lambda: running("1")))
    await until(lambda: running("0"))
    seen["cancelled"] = True
    return seen


async def contains(names: Callable[[], Awaitable[list[str]]], name: str) -> bool:
    return name in await names()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again; the bound is that of the whole walk."""
    while not await condition():  # noqa: ASYNC110 - what it waits for is in another process
        await asyncio.sleep(0.05)


async def code_of(call: Awaitable[Any]) -> int | None:
    """The code of the JSON-RPC error that this ends with; None if it ends well."""
    try:
        await call
    except Exception as refused:  # noqa: BLE001 - each SDK has an error class of its own
        error = getattr(refused, "error", refused)
        return int(error.code)
    return None


def tell(conversation: Callable[[], Awaitable[Message]]) -> None:
    """Hold the conversation and print what was seen as one line of JSON."""

    async def bounded() -> Message:
        async with asyncio.timeout(WAIT_S):
            return await conversation()

    print(json.dumps(asyncio.run(bounded())), file=sys.stdout, flush=True)
