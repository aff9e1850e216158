"""How calls fail, told apart: on the wire, and by one word in the record.

Source: cases B28, B44, B64; architecture, "How failure looks to a client".
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conversations.talking import (
    Client,
    Gate,
    Message,
    called,
    client_of,
    each_era,
    each_pair,
    opened_gate,
    recorded,
)
from tests.kit.http import Answer, Legacy, Modern
from tests.kit.waiting import run


@each_pair
def test_a_tools_own_failure_is_a_result(gate: Gate, era: str, server: str) -> None:
    async def converse() -> Answer:
        async with client_of(era, gate.url) as client:
            return await client.call(f"{server}__fail", {"text": "no such file"})

    answer = run(converse())

    assert (answer.result["isError"], answer.text) == (True, "no such file")
    assert "onegate/error" not in answer.result.get("_meta", {})


@each_pair
def test_a_servers_error_keeps_code_message_and_data(gate: Gate, era: str, server: str) -> None:
    told: Message = {"code": -32050, "message": "it is é", "data": {"a": [1.0, None, "\u2028"]}}

    async def converse() -> Answer:
        async with client_of(era, gate.url) as client:
            return await client.call(f"{server}__error", told)

    answer = run(converse())

    assert (answer.status, answer.error) == (200, told)


@pytest.mark.parametrize(
    ("own", "modern", "legacy"),
    [
        # code a server sends: status and code for a modern client, code for a legacy one
        (-32601, (404, -32601), -32601),
        (-32602, (200, -32602), -32602),
        (-32603, (200, -32603), -32603),
        (-32002, (200, -32602), -32002),
        (-32042, (400, -32021), -32042),
        (-32020, (200, -32603), -32603),
        (-32022, (200, -32603), -32603),
        (1, (200, 1), 1),
    ],
)
def test_codes_of_one_revision_do_not_reach_another(
    gate: Gate, own: int, modern: tuple[int, int], legacy: int
) -> None:
    """2026-07-28 basic/index forbids -32002 and -32042; what a server holds against our own
    request is no fault of the client's."""

    async def converse() -> tuple[Answer, Answer]:
        async with Modern.to(gate.url) as new, client_of("legacy", gate.url) as old:
            told: Message = {"code": own, "message": "so it is"}
            return await new.call("old__error", told), await old.call("old__error", told)

    to_modern, to_legacy = run(converse())

    assert (to_modern.status, to_modern.error["code"]) == modern
    assert (to_legacy.status, to_legacy.error["code"]) == (200, legacy)
    assert to_modern.error["message"] == to_legacy.error["message"] == "so it is"


@each_era
@pytest.mark.parametrize("uri", ["no://where", "fake:nothing", "", "new+no://where"])
def test_a_resource_nobody_has_is_not_found_in_the_words_of_the_era(
    gate: Gate, era: str, uri: str
) -> None:
    """-32602 with the URI (2026-07-28 server/resources), -32002 before; never empty contents."""

    async def converse() -> Answer:
        async with client_of(era, gate.url) as client:
            return await client.request("resources/read", {"uri": uri})

    answer = run(converse())

    assert answer.status == 200
    assert answer.error["code"] == (-32602 if era == "modern" else -32002)
    assert answer.error["data"]["uri"] == uri


@each_era
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "nobody__has_it"}),
        ("tools/call", {"name": "echo"}),
        ("tools/call", {"name": ""}),
        ("prompts/get", {"name": "nobody__has_it"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "nobody__has_it"}}),
        ("completion/complete", {"ref": {"type": "unheard/of", "name": "x"}}),
        ("completion/complete", {}),
        ("tools/list", {"cursor": "theirs"}),
        ("tools/list", {"cursor": ""}),
    ],
)
def test_what_names_nothing_is_an_error_of_params(
    gate: Gate, era: str, method: str, params: Message
) -> None:
    async def converse() -> Answer:
        async with client_of(era, gate.url) as client:
            return await client.request(method, params)

    answer = run(converse())

    assert (answer.status, answer.error["code"]) == (200, -32602)
    assert answer.error["data"]["kind"] == "invalid"


@each_era
@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read"])
@pytest.mark.parametrize("value", [7, None, ["a"]])
def test_a_name_that_is_no_text_is_refused(gate: Gate, era: str, method: str, value: Any) -> None:
    async def converse() -> Answer:
        async with client_of(era, gate.url) as client:
            key = "uri" if method == "resources/read" else "name"
            message = client.message(method, {key: value})
            headers = client.routing(message) if isinstance(client, Modern) else {}
            return await client.post(message, headers)

    assert run(converse()).error["code"] in (-32602, -32020)


LIMITED = [
    {"match": "*__sleep", "timeout": "300ms"},
    {"match": "*__rich", "decision": "deny"},
    {"match": "*__hang", "concurrency": 1, "queue": 0},
]
OUTCOMES: dict[str, tuple[str, Message]] = {
    "ok": ("echo", {}),
    "tool_error": ("fail", {}),
    "server_error": ("error", {}),
    "timeout": ("sleep", {"ms": 5000}),
    "denied": ("rich", {}),
    "invalid": ("no_such_tool", {}),
    "throttled": ("hang", {}),
    "cancelled": ("hang", {}),
    "unavailable": ("crash", {"code": 3, "stderr": "disk full"}),
}


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("limited")
    servers = {"one": recorded(folder, "one"), "two": recorded(folder, "two")}
    with opened_gate(folder, servers, tools=LIMITED) as gate:
        gate.gateway.wait_tools("one__echo", "two__echo")
        yield gate


@each_era
def test_each_kind_of_ending_has_its_word_in_the_record(limited: Gate, era: str) -> None:
    """cases B64, B89: as many records as calls, and each says what happened."""
    since = limited.mark()

    async def ended(client: Client, other: Client) -> dict[str, Answer]:
        found: dict[str, Answer] = {}
        for word in ("ok", "tool_error", "server_error", "timeout", "denied", "invalid"):
            tool, arguments = OUTCOMES[word]
            found[word] = await client.call(f"one__{tool}", arguments)
        async with asyncio.TaskGroup() as tasks:
            message = called(other, "one__hang", "held")
            headers = other.routing(message) if isinstance(other, Modern) else {}
            hanging = tasks.create_task(other.post(message, headers))
            await since.told("one", "tools/call", number=5)
            found["throttled"] = await client.call("one__hang")
            if isinstance(other, Legacy):
                await other.notify("notifications/cancelled", {"requestId": "held"})
            else:
                hanging.cancel()
        tool, arguments = OUTCOMES["unavailable"]
        found["unavailable"] = await client.call(f"one__{tool}", arguments)
        return found

    async def converse() -> dict[str, Answer]:
        async with client_of(era, limited.url) as client, client_of(era, limited.url) as other:
            found = await ended(client, other)
            assert (await client.call("two__echo", {"text": "unharmed"})).text == "unharmed"
            return found

    found = run(converse())

    for word in ("timeout", "throttled", "unavailable"):
        told = found[word].result["_meta"]["onegate/error"]
        assert (found[word].result["isError"], told["kind"]) == (True, word)
        assert told["server"] == "one"
    assert "disk full" in found["unavailable"].text
    assert "onegate.json:" in found["timeout"].text, "says where the limit is set"
    unknown = found["invalid"].error
    denied = found["denied"].error
    assert denied["message"].replace("rich", "no_such_tool") == unknown["message"]
    assert (denied["code"], denied["data"]) == (unknown["code"], unknown["data"])
    outcomes = [record["outcome"] for record in since.records(number=10)]
    assert sorted(outcomes) == sorted([*OUTCOMES, "ok"])


@each_era
def test_what_is_denied_is_not_listed(limited: Gate, era: str) -> None:
    async def converse() -> list[str]:
        async with client_of(era, limited.url) as client:
            return [tool["name"] for tool in (await client.request("tools/list")).result["tools"]]

    names = run(converse())

    assert "one__echo" in names
    assert not [name for name in names if name.endswith("__rich")]


ODD = ("unknown_id", "null_id", "no_id", "both", "neither", "null_result", "array", "twice")


@each_pair
@pytest.mark.parametrize("shape", ODD)
def test_an_answer_out_of_shape_ends_its_call_and_nothing_else(
    gate: Gate, era: str, server: str, shape: str
) -> None:
    """cases B25, B28: at once, by an answer or an error, never by a time limit."""

    async def converse() -> tuple[Answer, str]:
        async with client_of(era, gate.url) as client:
            odd = await client.call(f"{server}__odd", {"shape": shape})
            return odd, (await client.call(f"{server}__echo", {"text": "next"})).text

    odd, following = run(converse(), within_s=10)

    assert following == "next"
    if shape in ("both", "neither", "null_result"):
        assert odd.result["_meta"]["onegate/error"]["kind"] == "server_error"
    elif shape == "null_id":  # taken for this call's if nothing else waits for an answer
        assert "odd" in (
            odd.final.get("error", {}).get("message"),
            odd.final.get("result") and odd.text,
        )
    else:
        assert odd.text == "odd"


def test_a_call_that_only_begins_a_second_process_is_not_lost_with_the_first(
    tmp_path: Path,
) -> None:
    """protocol 3.11: a dual-era server with clients of both eras at once, one process dying."""
    servers = {"dual": recorded(tmp_path, "dual", "--lock")}

    async def converse(gate: Gate) -> tuple[str, Message]:
        since = gate.mark()
        async with Modern.to(gate.url) as modern, client_of("legacy", gate.url) as legacy:
            await legacy.call("dual__echo")
            async with asyncio.TaskGroup() as tasks:
                message = called(legacy, "dual__sleep", arguments={"ms": 500})
                slept = tasks.create_task(legacy.post(message))
                await since.told("dual", "tools/call", number=2)
                crashed = await modern.call("dual__crash")
            return slept.result().text, crashed.result["_meta"]["onegate/error"]

    with opened_gate(tmp_path, servers) as gate:
        gate.gateway.wait_tools("dual__echo")
        text, told = run(converse(gate))

    assert text == "slept 500 ms"
    assert told["kind"] == "unavailable"
