"""Tools that answer by themselves: every kind of content, progress, log lines, changes of lists."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.everything.calls import Call
from tests.everything.content import embedded, picture, said, text, tone
from tests.everything.pipe import Message
from tests.everything.resources import WATCHED

NOTHING: Message = {"type": "object", "properties": {}}
PAUSE_S = 0.05


@dataclass(frozen=True)
class Tool:
    """A tool's definition, as listed, and what runs when it is called."""

    name: str
    description: str
    run: Callable[[Call], Awaitable[Message]]
    schema: Message = field(default_factory=lambda: NOTHING)
    more: Message = field(default_factory=dict)

    @property
    def definition(self) -> Message:
        named = {"name": self.name, "description": self.description, "inputSchema": self.schema}
        return named | self.more


async def simple_text(call: Call) -> Message:
    return said("A simple text.")


async def image(call: Call) -> Message:
    return {"content": [picture()]}


async def audio(call: Call) -> Message:
    return {"content": [tone()]}


async def resource(call: Call) -> Message:
    return {"content": [embedded("test://embedded-resource", "text/plain", "An embedded text.")]}


async def mixed(call: Call) -> Message:
    data = embedded("test://mixed-content-resource", "application/json", '{"mixed": true}')
    return {"content": [text("Three kinds of content:"), picture(), data]}


async def structured(call: Call) -> Message:
    total = sum(call.arguments.get("numbers", []))
    return said(f"The sum is {total}") | {"structuredContent": {"sum": total}}


async def failing(call: Call) -> Message:
    return said("This tool always fails.", failed=True)


async def with_progress(call: Call) -> Message:
    for done in (0, 50, 100):
        call.progress(done, 100)
        await asyncio.sleep(PAUSE_S)
    return said("Done, with progress on the way.")


async def with_logging(call: Call) -> Message:
    for words in ("It starts", "It works", "It is done"):
        call.log("info", words)
        await asyncio.sleep(PAUSE_S)
    return said("Done, with log lines on the way.")


async def reconnecting(call: Call) -> Message:
    """Says something at once, so that the answer becomes a stream that may break."""
    call.log("info", "It starts")
    await asyncio.sleep(PAUSE_S)
    return said("Done, whatever became of the stream.")


class Lasting:
    """A tool that takes its time, and one that tells how many calls of it run at the moment."""

    def __init__(self) -> None:
        self._running = 0

    async def lasting(self, call: Call) -> Message:
        """Takes the seconds it is told, with progress each tenth of it; cancelling ends it."""
        duration_s = float(call.arguments.get("seconds", 1))
        self._running += 1
        try:
            for tenth in range(10):
                call.progress(tenth, 10)
                await asyncio.sleep(duration_s / 10)
        finally:
            self._running -= 1
        return said(f"It took {duration_s} s.")

    async def running(self, call: Call) -> Message:
        return said(str(self._running))

    def tools(self) -> list[Tool]:
        return [
            Tool("test_lasting", "Takes as many seconds as told", self.lasting, SECONDS),
            Tool("test_count_lasting", "Tells how many test_lasting run", self.running),
        ]


async def by_header(call: Call) -> Message:
    return said(f"Arguments: {call.arguments}")


async def address(call: Call) -> Message:
    return said(f"Reached by {call.arguments.get('contactMethod', 'nothing')}.")


async def trigger_prompts(call: Call) -> Message:
    call.announce("prompts")
    return said("A prompt came and went.")


async def touch_watched(call: Call) -> Message:
    call.updated(WATCHED)
    return said("The watched resource changed.")


# Draft 2020-12 with what naive proxies lose: $defs, $anchor, composition and conditions.
CONTACT: Message = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
ROUTED: Message = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "description": "Where to", "x-mcp-header": "Region"},
        "priority": {"type": "integer", "x-mcp-header": "Priority"},
        "urgent": {"type": "boolean", "x-mcp-header": "Urgent"},
        "query": {"type": "string"},
    },
    "required": ["region"],
}
NUMBERS: Message = {
    "type": "object",
    "properties": {"numbers": {"type": "array", "items": {"type": "number"}}},
}
SUM: Message = {
    "type": "object",
    "properties": {"sum": {"type": "number"}},
    "required": ["sum"],
}
SECONDS: Message = {"type": "object", "properties": {"seconds": {"type": "number"}}}

# The first one is called without arguments by whoever wants just any tool.
TOOLS: list[Tool] = [
    Tool("test_simple_text", "Answers with one text", simple_text),
    Tool("test_image_content", "Answers with a picture", image),
    Tool("test_audio_content", "Answers with a sound", audio),
    Tool("test_embedded_resource", "Answers with a resource in the answer", resource),
    Tool("test_multiple_content_types", "Answers with text, picture and resource", mixed),
    Tool(
        "test_structured_content",
        "Adds numbers; answers with data as well",
        structured,
        NUMBERS,
        {"title": "Sum", "outputSchema": SUM, "annotations": {"readOnlyHint": True}},
    ),
    Tool("test_error_handling", "Always fails", failing),
    Tool("test_tool_with_progress", "Reports progress three times", with_progress),
    Tool("test_tool_with_logging", "Logs three lines", with_logging),
    Tool("test_logging_tool", "Logs three lines where the request asked for it", with_logging),
    Tool("test_reconnection", "Answers after a moment", reconnecting),
    Tool("json_schema_2020_12_tool", "Has a schema with all of 2020-12", address, CONTACT),
    Tool("test_routed_by_header", "Has arguments that go into headers", by_header, ROUTED),
    Tool("test_trigger_prompt_change", "Adds and removes a prompt", trigger_prompts),
    Tool("test_touch_watched_resource", "Changes the watched resource", touch_watched),
]
