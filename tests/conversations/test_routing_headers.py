"""Headers that repeat what the body says: held against it, never trusted instead of it.

Source: 2026-07-28 basic/transports/streamable-http, "Request Metadata"; cases B35.
"""

import base64
from typing import Any

import pytest

from tests.conversations.talking import Gate, Message, P, exposed
from tests.kit.http import Answer, Modern
from tests.kit.waiting import run

TOOL = "every__test_routed_by_header"


def sent(gate: Gate, method: str, params: Message, **headers: str) -> Answer:
    """A modern request; `headers` replace those that belong to it, with _ for -."""

    async def converse() -> Answer:
        async with Modern.to(gate.url) as client:
            message = client.message(method, params)
            told = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.post(message, {**client.routing(message), **told})

    return run(converse())


@pytest.mark.parametrize("name", ["echo", "old__fail", "OLD__ECHO", "old__echo2", "old echo"])
def test_mcp_name_is_the_name_the_client_knows(gate: Gate, name: str) -> None:
    """The prefixed one: what the server calls it is no business of the client's."""
    since = gate.mark()

    answer = sent(gate, "tools/call", {"name": "old__echo"}, Mcp_Name=name)

    assert (answer.status, answer.error["code"]) == (400, -32020)
    assert not since.heard("old", "tools/call"), "and nothing has been done"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "old__echo"}),
        ("prompts/get", {"name": "old__plain"}),
        ("resources/read", {"uri": exposed("new", "fake://item/é ü")}),
    ],
)
def test_each_method_that_names_something_has_its_header(
    gate: Gate, method: str, params: Message
) -> None:
    (named,) = params.values()
    encoded = f"=?base64?{base64.b64encode(named.encode()).decode()}?="

    assert sent(gate, method, params, Mcp_Name=encoded).status == 200
    for wrong in ("=?base64?!!?=", "=?base64?b2xkX19lY2hv?", "", "=?BASE64?b2xkX19lY2hv?="):
        answer = sent(gate, method, params, Mcp_Name=wrong)
        assert (answer.status, answer.error["code"]) == (400, -32020), wrong


def test_a_method_that_names_nothing_needs_no_such_header(gate: Gate) -> None:
    assert sent(gate, "tools/list", {}, Mcp_Name="whatever").status == 200


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("north", "north"),
        ("a b\u00e9", "=?base64?YSBiw6k=?="),
        (" lead", "=?base64?IGxlYWQ=?="),
        ("tab\there", "=?base64?dGFiCWhlcmU=?="),
        ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ("", ""),
    ],
)
def test_an_argument_that_belongs_into_a_header_is_checked_behind_stdio_too(
    gate: Gate, value: str, header: str
) -> None:
    """Over a pipe the server cannot see headers: whoever ends HTTP has to look."""
    params: Message = {"name": TOOL, "arguments": {"region": value}}

    assert sent(gate, "tools/call", params, Mcp_Param_Region=header).status == 200
    for told in ({}, {"Mcp_Param_Region": "elsewhere"}, {"Mcp_Param_Region": "=?base64?%?="}):
        answer = sent(gate, "tools/call", params, **told)
        assert (answer.status, answer.error["code"]) == (400, -32020)


@pytest.mark.parametrize(
    ("arguments", "headers", "fine"),
    [
        ({"priority": 7}, {"Priority": "7"}, True),
        ({"priority": 7}, {"Priority": "7.0"}, True),
        ({"priority": 7}, {"Priority": "8"}, False),
        ({"priority": 7}, {}, False),
        ({"priority": 2**53 - 1}, {"Priority": str(2**53 - 1)}, True),
        ({"urgent": True}, {"Urgent": "true"}, True),
        ({"urgent": True}, {"Urgent": "True"}, False),
        ({"urgent": False}, {"Urgent": "false"}, True),
        ({"urgent": None}, {}, True),
        ({"urgent": None}, {"Urgent": "true"}, False),
        ({"query": "free"}, {}, True),
        ({"query": "free"}, {"Query": "whatever"}, True),
    ],
)
def test_numbers_flags_and_what_is_left_out(
    gate: Gate, arguments: dict[str, Any], headers: dict[str, str], fine: bool
) -> None:
    """Integers compare as numbers; null is absent; headers nobody asked for are ignored."""
    params = {"name": TOOL, "arguments": {"region": "r", **arguments}}
    told = {f"Mcp_Param_{name}": value for name, value in headers.items()}

    answer = sent(gate, "tools/call", params, Mcp_Param_Region="r", **told)

    assert answer.status == (200 if fine else 400)


def test_the_annotation_is_listed_as_the_server_wrote_it(gate: Gate) -> None:
    tools = sent(gate, "tools/list", {}).result["tools"]

    (tool,) = [each for each in tools if each["name"] == TOOL]
    assert tool["inputSchema"]["properties"]["region"]["x-mcp-header"] == "Region"


def test_the_servers_own_envelope_is_ours_whatever_the_client_writes(gate: Gate) -> None:
    """A client cannot pose as another towards the server, nor choose its revision."""
    meta = {f"{P}subscriptionId": 7, f"{P}serverInfo": {"name": "forged", "version": "1"}}

    seen = sent(gate, "tools/call", {"name": "new__echo", "_meta": meta}).result

    told = seen["structuredContent"]["meta"]
    assert told[f"{P}clientInfo"]["name"] == "onegate"
    assert not set(meta) & set(told)
