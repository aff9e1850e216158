"""How calls fail, told apart: on the wire, and by one word in the record.

Source: cases B28, B44, B64; architecture, "How failure looks to a client".
"""

import asyncio
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


@each_era
def test_each_kind_of_ending_has_its_word_in_the_record(strict: Gate, era: str) -> None:
    """cases B64, B89: as many records as calls, and each says what happened."""
    since = strict.mark()

    async def ended(client: Client, other: Client) -> dict[str, Answer]:
        found: dict[str, Answer] = {}
        for word in ("ok", "tool_error", "server_error", "timeout", "denied", "invalid"):
            tool, arguments = OUTCOMES[word]
            found[word] = await client.call(f"fragile__{tool}", arguments)
        async with asyncio.TaskGroup() as tasks:
            message = called(other, "fragile__hang", "held")
            headers = other.routing(message) if isinstance(other, Modern) else {}
            hanging = tasks.create_task(other.post(message, headers))
            await since.told("fragile", "tools/call", number=5)
            found["throttled"] = await client.call("fragile__hang")
            if isinstance(other, Legacy):
                await other.notify("notifications/cancelled", {"requestId": "held"})
            else:
                hanging.cancel()
        tool, arguments = OUTCOMES["unavailable"]
        found["unavailable"] = await client.call(f"fragile__{tool}", arguments)
        return found

    async def converse() -> dict[str, Answer]:
        async with client_of(era, strict.url) as client, client_of(era, strict.url) as other:
            found = await ended(client, other)
            assert (await client.call("one__echo", {"text": "unharmed"})).text == "unharmed"
            return found

    found = run(converse())

    for word in ("timeout", "throttled", "unavailable"):
        told = found[word].result["_meta"]["onegate/error"]
        assert (found[word].result["isError"], told["kind"]) == (True, word)
        assert told["server"] == "fragile"
    assert "disk full" in found["unavailable"].text
    assert "onegate.json:" in found["timeout"].text, "says where the limit is set"
    unknown = found["invalid"].error
    denied = found["denied"].error
    assert denied["message"].replace("rich", "no_such_tool") == unknown["message"]
    assert (denied["code"], denied["data"]) == (unknown["code"], unknown["data"])
    outcomes = [record["outcome"] for record in since.records(number=10)]
    assert sorted(outcomes) == sorted([*OUTCOMES, "ok"])


@each_era
def test_what_is_denied_is_not_listed(strict: Gate, era: str) -> None:
    async def converse() -> list[str]:
        async with client_of(era, strict.url) as client:
            return [tool["name"] for tool in (await client.request("tools/list")).result["tools"]]

    names = run(converse())

    assert "one__echo" in names
    assert not [name for name in names if name.endswith("__rich")]


ODD = ("unknown_id", "null_id", "no_id", "both", "neither", "null_result", "array", "twice")


@each_pair
def test_an_answer_out_of_shape_ends_its_call_and_nothing_else(
    gate: Gate, era: str, server: str
) -> None:
    """cases B25, B28: at once, by an answer or an error, never by a time limit."""

    async def converse() -> dict[str, Answer]:
        found: dict[str, Answer] = {}
        async with client_of(era, gate.url) as client:
            for shape in ODD:
                found[shape] = await client.call(f"{server}__odd", {"shape": shape})
                following = await client.call(f"{server}__echo", {"text": shape})
                assert following.text == shape
        return found

    found = run(converse(), within_s=15)

    for shape in ("both", "neither", "null_result"):
        assert found[shape].result["_meta"]["onegate/error"]["kind"] == "server_error", shape
    for shape in ("unknown_id", "no_id", "array", "twice"):
        assert found[shape].text == "odd", shape
    nobodys = found["null_id"]  # taken for this call's error if nothing else waits for an answer
    told = nobodys.error["message"] if "error" in nobodys.final else nobodys.text
    assert told == "odd"


def test_one_process_of_a_server_dies_and_calls_of_the_other_era_go_on(strict: Gate) -> None:
    """protocol 3.11: a dual-era server with clients of both eras at once."""

    async def converse() -> tuple[str, Message]:
        async with Modern.to(strict.url) as modern, client_of("legacy", strict.url) as legacy:
            for client in (modern, legacy):
                await client.call("fragile__echo")
            since = strict.mark()
            async with asyncio.TaskGroup() as tasks:
                message = called(legacy, "fragile__progress", arguments={"steps": 1, "ms": 500})
                slow = tasks.create_task(legacy.post(message))
                await since.told("fragile", "tools/call")
                crashed = await modern.call("fragile__crash")
            return slow.result().text, crashed.result["_meta"]["onegate/error"]

    text, told = run(converse())

    assert text == "1 steps"
    assert told["kind"] == "unavailable"
