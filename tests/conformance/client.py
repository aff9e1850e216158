"""The gateway as a client of the suite's servers: what `conformance client --command` runs.

`python -m tests.conformance.client URL` puts a gateway in front of the server at that URL, drives
it as the scenario wants (it is named in the environment), and leaves.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from tests.kit.gateway import running_gateway
from tests.kit.http import Legacy, Message, Modern, header_value
from tests.kit.waiting import run

READY_S = 30.0
Drive = Callable[[str], Coroutine[Any, Any, None]]
"""Does what a scenario wants to see, given the gateway's endpoint."""

ARGUMENTS: Mapping[str, Message] = {
    "add_numbers": {"a": 5, "b": 3},
    "valid_tool": {"region": "here"},
}


# --- the older revisions ---


async def only_connect(url: str) -> None:
    """The gateway itself has shaken hands by now."""
    async with Legacy.to(url) as client:
        await client.initialize()
        await client.request("tools/list")


async def add_in_a_session(url: str) -> None:
    async with Legacy.to(url) as client:
        await client.initialize()
        answer = await client.call("add_numbers", ARGUMENTS["add_numbers"])
        assert "8" in answer.text, answer


async def accept_with_defaults(url: str) -> None:
    """A person who changes nothing: every default comes back as it was."""
    async with Legacy.to(url) as client:
        await client.initialize(capabilities={"elicitation": {"form": {"applyDefaults": True}}})
        message = client.message(
            "tools/call", {"name": "test_client_elicitation_defaults", "arguments": {}}
        )
        async with client.opened(message) as stream:
            question = await stream.message()
            properties = question["params"]["requestedSchema"]["properties"]
            content = {name: each["default"] for name, each in properties.items()}
            await client.respond(question["id"], {"action": "accept", "content": content})
            answer = await stream.message()
            assert "result" in answer, answer


async def wait_for_the_retry(url: str) -> None:
    async with Legacy.to(url) as client:
        await client.initialize()
        answer = await client.call("test_reconnection")
        assert "completed" in answer.text, answer


# --- 2026-07-28 ---


async def only_list(url: str) -> None:
    async with Modern.to(url) as client:
        await client.request("tools/list")


async def add(url: str) -> None:
    async with Modern.to(url) as client:
        answer = await client.call("add_numbers", ARGUMENTS["add_numbers"])
        assert "8" in answer.text, answer


async def come_back_with_answers(url: str) -> None:
    """Rounds of questions, with another call between two of them."""
    async with Modern.to(url) as client:
        client.envelope.capabilities = {"elicitation": {}}
        for name in ("test_mrtr_echo_state", "test_mrtr_no_state"):
            asked = (await client.call(name)).result
            await client.call("test_mrtr_unrelated")
            told = {
                key: {"action": "accept", "content": {"confirmed": True}}
                for key in asked["inputRequests"]
            }
            state = {"requestState": asked["requestState"]} if "requestState" in asked else {}
            done = await client.call(name, inputResponses=told, **state)
            assert done.result["resultType"] == "complete", done
        assert (await client.call("test_mrtr_no_result_type")).result["resultType"] == "complete"


async def use_everything_listed(url: str) -> None:
    async with Modern.to(url) as client:
        for tool in (await client.request("tools/list")).result["tools"]:
            assert "result" in (await client.call(tool["name"], ARGUMENTS.get(tool["name"]))).final
        for resource in (await client.request("resources/list")).result["resources"]:
            await client.request("resources/read", {"uri": resource["uri"]})
        for prompt in (await client.request("prompts/list")).result["prompts"]:
            await client.request("prompts/get", {"name": prompt["name"]})


async def call_as_told(url: str) -> None:
    """The calls of the scenario, with the headers that the listed tools ask for."""
    async with Modern.to(url) as client:
        listed = (await client.request("tools/list")).result["tools"]
        tools = {tool["name"]: tool["inputSchema"]["properties"] for tool in listed}
        for call in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
            await _call_with_headers(client, call["name"], call["arguments"], tools[call["name"]])


async def call_what_is_sound(url: str) -> None:
    async with Modern.to(url) as client:
        for tool in (await client.request("tools/list")).result["tools"]:
            properties = tool["inputSchema"]["properties"]
            arguments = ARGUMENTS.get(tool["name"], dict.fromkeys(properties, "x"))
            await _call_with_headers(client, tool["name"], arguments, properties)


async def hand_a_schema_back(url: str) -> None:
    async with Modern.to(url) as client:
        listed = (await client.request("tools/list")).result["tools"]
        schemas = {tool["name"]: tool["inputSchema"] for tool in listed}
        (focal,) = schemas.keys() - {"json_schema_echo"}
        answer = await client.call("json_schema_echo", {"schema": schemas[focal]})
        assert answer.text == "echoed", answer


async def _call_with_headers(
    client: Modern, name: str, arguments: Message, properties: Mapping[str, Any]
) -> None:
    headers = {
        f"Mcp-Param-{schema['x-mcp-header']}": header_value(_spelt(arguments[key]))
        for key, schema in properties.items()
        if "x-mcp-header" in schema and arguments.get(key) is not None
    }
    message = client.message("tools/call", {"name": name, "arguments": arguments})
    answer = await client.post(message, {**client.routing(message), **headers})
    assert "result" in answer.final, answer


def _spelt(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


SCENARIOS: Mapping[str, tuple[str, Drive]] = {
    "2025-11-25 initialize": ("legacy", only_connect),
    "2025-11-25 tools_call": ("legacy", add_in_a_session),
    "2025-11-25 elicitation-sep1034-client-defaults": ("legacy", accept_with_defaults),
    "2025-11-25 sse-retry": ("legacy", wait_for_the_retry),
    "2026-07-28 tools_call": ("modern", add),
    "2026-07-28 request-metadata": ("modern", only_list),
    "2026-07-28 sep-2322-client-request-state": ("modern", come_back_with_answers),
    "2026-07-28 http-standard-headers": ("modern", use_everything_listed),
    "2026-07-28 http-custom-headers": ("modern", call_as_told),
    "2026-07-28 http-invalid-tool-headers": ("modern", call_what_is_sound),
    "2026-07-28 json-schema-ref-no-deref": ("auto", only_list),
    "2025-11-25 json-schema-2020-12-preservation": ("legacy", hand_a_schema_back),
    "2026-07-28 json-schema-2020-12-preservation": ("modern", hand_a_schema_back),
}
"""By revision and name: the era to speak with the server, and what to do."""

UNSCORED = frozenset({"json-schema-2020-12-preservation"})


def main() -> None:
    revision = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    era, drive = SCENARIOS[f"{revision} {os.environ['MCP_CONFORMANCE_SCENARIO']}"]
    server = {"url": sys.argv[1], "prefix": "", "protocol": era, "required": True}
    with (
        tempfile.TemporaryDirectory() as folder,
        running_gateway(Path(folder), {"suite": server}) as gateway,
    ):
        run(drive(gateway.url), within_s=READY_S)


if __name__ == "__main__":
    main()
