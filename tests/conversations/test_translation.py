"""Clients of either era, servers of either: what works between them, and how it is dressed."""

import json

from tests.conversations.talking import (
    Client,
    Gate,
    Message,
    P,
    client_of,
    each_pair,
    echoed,
    exposed,
)
from tests.kit.http import Modern
from tests.kit.waiting import run

SPOKEN = {
    ("legacy", "old"): "legacy",
    ("legacy", "new"): "modern",
    ("legacy", "dual"): "legacy",
    ("modern", "old"): "legacy",
    ("modern", "new"): "modern",
    ("modern", "dual"): "modern",
}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@each_pair
def test_a_server_is_met_in_the_clients_era_wherever_it_has_it(
    gate: Gate, era: str, server: str
) -> None:
    """A server that serves both has a process for each: it keeps to the first era it hears."""

    async def converse() -> str:
        async with client_of(era, gate.url) as client:
            return str(json.loads((await client.call(f"{server}__whoami")).text)["era"])

    assert run(converse()) == SPOKEN[era, server]


@each_pair
def test_prompts_resources_and_completions_work_between_any_two_eras(
    gate: Gate, era: str, server: str
) -> None:
    async def converse(client: Client) -> list[object]:
        given = {"name": f"{server}__greet", "arguments": {"name": "Ada"}}
        prompt = (await client.request("prompts/get", given)).result
        listed = exposed(server, "fake://plain")
        read = (await client.request("resources/read", {"uri": listed})).result
        made = exposed(server, "fake://item/7")
        by_template = (await client.request("resources/read", {"uri": made})).result
        argument = {"name": "name", "value": "a"}
        ref: Message = {"type": "ref/prompt", "name": f"{server}__greet"}
        asked = {"ref": ref, "argument": argument}
        names = (await client.request("completion/complete", asked)).result
        ref = {"type": "ref/resource", "uri": exposed(server, "fake://item/{id}")}
        asked = {"ref": ref, "argument": argument}
        ids = (await client.request("completion/complete", asked)).result
        return [
            prompt["messages"][0]["content"]["text"],
            read["contents"][0]["text"],
            by_template["contents"][0]["text"],
            names["completion"]["values"],
            ids["completion"]["total"],
        ]

    async def conversed() -> list[object]:
        async with client_of(era, gate.url) as client:
            return await converse(client)

    found = run(conversed())

    assert found == ["Please greet Ada.", "plain text", "item 7", ["ada", "alan"], 2]


@each_pair
def test_a_result_carries_what_its_receivers_era_has_and_nothing_of_the_other(
    gate: Gate, era: str, server: str
) -> None:
    """2026-07-28 basic/index (resultType, serverInfo), server/utilities/caching."""

    async def converse() -> tuple[Message, Message]:
        async with client_of(era, gate.url) as client:
            called = (await client.call(f"{server}__echo")).result
            uri = exposed(server, "fake://plain")
            return called, (await client.request("resources/read", {"uri": uri})).result

    called, read = run(converse())

    if era == "modern":
        assert called["resultType"] == read["resultType"] == "complete"
        assert called["_meta"][f"{P}serverInfo"]["name"] == "onegate"
        assert isinstance(read["ttlMs"], int)
        assert read["cacheScope"] in ("public", "private")
        assert "ttlMs" not in called
    else:
        for result in (called, read):
            assert not {"resultType", "ttlMs", "cacheScope"} & set(result)
            assert f"{P}serverInfo" not in result.get("_meta", {})


@each_pair
def test_meta_of_the_client_travels_except_what_belongs_to_the_hop(
    gate: Gate, era: str, server: str
) -> None:
    """2026-07-28 basic/index, "_meta": reserved keys are between a client and its server."""
    sent = {
        "traceparent": TRACE,
        "tracestate": "a=1",
        "example.com/mine": {"b": [1, 2]},
        f"{P}related-task": {"taskId": "t"},
        f"{P}unheard-of": "forged",
    }

    async def converse() -> Message:
        async with client_of(era, gate.url) as client:
            seen: Message = echoed(await client.call(f"{server}__echo", _meta=sent))["meta"]
            return seen

    seen = run(converse())

    travelled = {k: v for k, v in sent.items() if k != f"{P}unheard-of"}
    assert {key: seen[key] for key in travelled} == travelled
    assert f"{P}unheard-of" not in seen
    if SPOKEN[era, server] == "modern":
        assert seen[f"{P}clientInfo"]["name"] == "onegate"
        assert seen[f"{P}protocolVersion"] == "2026-07-28"
    else:
        assert not {f"{P}clientInfo", f"{P}protocolVersion", f"{P}clientCapabilities"} & set(seen)


def test_a_modern_server_sees_the_clients_capabilities_without_what_we_cannot_carry(
    gate: Gate,
) -> None:
    """Capabilities come with each request and are never remembered (2026-07-28 basic/index)."""

    async def converse() -> list[Message]:
        async with Modern.to(gate.url) as client:
            client.envelope.capabilities = {
                "elicitation": {"form": {}},
                "extensions": {f"{P}tasks": {}},
            }
            first = echoed(await client.call("new__echo"))["meta"]
            client.envelope.capabilities = {}
            second = echoed(await client.call("new__echo"))["meta"]
            return [each[f"{P}clientCapabilities"] for each in (first, second)]

    assert run(converse()) == [{"elicitation": {"form": {}}}, {}]


@each_pair
def test_the_body_of_a_result_is_not_touched(gate: Gate, era: str, server: str) -> None:
    """Unknown fields, numbers and their spelling, text of any script: as the server sent them."""

    async def converse() -> bytes:
        async with client_of(era, gate.url) as client:
            return (await client.call(f"{server}__rich")).body

    body = run(converse())

    result = json.loads(body)["result"]
    assert b'"structuredContent":{"b":1,"a":[1.0,100.0,null,12345678901234567890]}' in body
    assert b'"x-kept":"unknown fields come through"' in body
    assert result["_meta"]["example.com/kept"] == {"z": 1, "a": 2}
    assert [block["type"] for block in result["content"]] == [
        *("text", "image", "audio", "resource_link", "resource")
    ]
    assert result["content"][0]["text"] == "naïve \u2028 \U0001f3b2"


@each_pair
def test_left_out_arguments_stay_left_out(gate: Gate, era: str, server: str) -> None:
    async def converse() -> Message:
        async with client_of(era, gate.url) as client:
            await client.request("tools/call", {"name": f"{server}__echo"})
            heard = gate.heard(server)
            return dict(heard[-1]["params"])

    told = run(converse())

    assert told["name"] == "echo"
    assert "arguments" not in told
