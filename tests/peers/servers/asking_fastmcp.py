"""The notes on `fastmcp` 4.x, with tools that ask the client: each era in its own way.

A modern client is answered with the question, and calls again with the answer. A legacy one is
asked in mid-call; the SDK has a method of its own for forms alone, but sends any request.
"""

from typing import Any

from fastmcp import Context
from mcp_types import (
    CompletionContext,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)

from tests.peers.servers.with_fastmcp import server

MODERN = "2026-07-28"
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


async def asked(ctx: Context, question: Any, answer: type) -> Any:
    """The client's answer; or, until a modern client brings it, what to return instead."""
    if ctx.request_context.protocol_version != MODERN:
        return await ctx.session.send_request(question, answer)
    if not ctx.input_responses:
        return InputRequiredResult(input_requests={"answer": question})
    return ctx.input_responses["answer"]


@server.tool()
async def ask_name(ctx: Context) -> str | InputRequiredResult:
    """Ask the user for a name."""
    params = ElicitRequestFormParams(message="Who are you?", requested_schema=NAME)
    answer = await asked(ctx, ElicitRequest(params=params), ElicitResult)
    return f"Hello, {answer.content['name']}!" if isinstance(answer, ElicitResult) else answer


@server.tool()
async def ask_model(ctx: Context) -> str | InputRequiredResult:
    """Ask the client's model for a city."""
    prompt = SamplingMessage(role="user", content=TextContent(type="text", text="Which city?"))
    params = CreateMessageRequestParams(messages=[prompt], max_tokens=10)
    answer = await asked(ctx, CreateMessageRequest(params=params), CreateMessageResult)
    if isinstance(answer, InputRequiredResult):
        return answer
    return f"The model says {answer.content.text}."


@server.tool()
async def ask_roots(ctx: Context) -> str | InputRequiredResult:
    """Ask the client for its roots."""
    answer = await asked(ctx, ListRootsRequest(), ListRootsResult)
    if isinstance(answer, InputRequiredResult):
        return answer
    return " ".join(str(root.uri) for root in answer.roots)


@server.completion
async def complete(ref: object, argument: object, context: CompletionContext | None) -> list[str]:
    return ["Ada"]


if __name__ == "__main__":
    server.run(show_banner=False)
