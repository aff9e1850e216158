"""What is listed, and how: all of it, as servers wrote it, in every revision's own shape.

Source: server/tools, server/resources, server/prompts of every revision; cases B46, B48.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conversations.talking import (
    LEGACY_REVISIONS,
    Gate,
    Message,
    P,
    client_of,
    each_era,
    opened_gate,
    recorded,
)
from tests.kit.http import Answer
from tests.kit.waiting import eventually_async, run

EVERY_REVISION = (*LEGACY_REVISIONS, "modern")
each_revision = pytest.mark.parametrize("revision", EVERY_REVISION)

ODD_SCHEMA: Message = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.com/tree",
    "type": "object",
    "$defs": {"node": {"$anchor": "n", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    "definitions": {"old": {"anyOf": [{"type": "null"}, True, {"type": "integer"}]}},
    "properties": {"a": {"$ref": "#/definitions/old"}, "b": True, "c": {"default": 1.0}},
    "required": [],
    "additionalProperties": False,
}
ODD_TOOLS: list[Message] = [
    {
        "name": "odd",
        "title": "Odd",
        "description": "line\nbreak \u2028 \U0001f3b2",
        "inputSchema": ODD_SCHEMA,
        "outputSchema": {"type": "object", "properties": {"x": {"$ref": "#/$defs/none"}}},
        "annotations": {"readOnlyHint": True, "x-mine": [1]},
        "icons": [{"src": "data:image/png;base64,AA==", "sizes": ["48x48"]}],
        "execution": {"taskSupport": "optional"},
        "_meta": {"example.com/a": {"b": 1}},
        "x-unheard-of": {"z": [3, 1, 2], "a": None},
    },
    {"name": "listing", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}},
    *({"name": f"n{number:03}", "inputSchema": {"type": "object"}} for number in range(150)),
]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    """Servers with pages, odd definitions, and lists they do not have."""
    folder = tmp_path_factory.mktemp("shelf")
    file = folder / "tools.json"
    file.write_text(json.dumps(ODD_TOOLS))
    servers = {
        "paged": recorded(folder, "paged", "--tools-file", file, "--page", 7, protocol="legacy"),
        "bare": recorded(
            folder,
            "bare",
            *("--era", "legacy", "--only", "echo", "--unknown", "exit"),
            *("--without", "resources,prompts,completions,logging"),
            protocol="legacy",
        ),
        "stuck": recorded(folder, "stuck", "--page", 3, "--stuck-cursor", protocol="modern"),
        "first": recorded(folder, "first", "--only", "whoami", prefix="", protocol="modern"),
        "second": recorded(folder, "second", "--only", "whoami", prefix="", protocol="modern"),
        "grows": recorded(folder, "grows", "--only", "add_tool", protocol="legacy"),
    }
    rules = [{"match": "*__secret*", "decision": "deny"}]
    with opened_gate(folder, servers, tools=rules) as gate:
        gate.gateway.wait_tools(
            *("paged__n149", "bare__echo", "stuck__echo", "second__whoami", "grows__add_tool")
        )
        yield gate


def listed(gate: Gate, revision: str, what: str = "tools") -> list[Message]:
    async def converse() -> Message:
        async with client_of(revision, gate.url) as client:
            return (await client.request(f"{what}/list")).result

    result = run(converse())
    assert "nextCursor" not in result
    found: list[Message] = result["resourceTemplates" if "/" in what else what]
    return found


@each_revision
def test_every_page_is_listed_in_the_order_of_the_servers(shelf: Gate, revision: str) -> None:
    names = [tool["name"] for tool in listed(shelf, revision)]

    assert names[:2] == ["paged__odd", "paged__listing"]
    assert names[2:152] == [f"paged__n{number:03}" for number in range(150)]
    assert names[152] == "bare__echo"
    assert len(names) == len(set(names))


@each_era
def test_what_is_on_the_last_page_can_be_called(shelf: Gate, era: str) -> None:
    async def converse() -> str:
        async with client_of(era, shelf.url) as client:
            return (await client.call("paged__n149", {"text": "last"})).text

    assert run(converse()) == "last"


@each_revision
def test_a_definition_is_what_the_server_wrote_but_for_its_name(shelf: Gate, revision: str) -> None:
    """Schemas and unknown fields untouched, not even resolved or sorted."""
    odd = listed(shelf, revision)[0]

    gone = {"2024-11-05": {"annotations"}, "modern": {"execution"}}.get(revision, set())
    wrote = {key: value for key, value in ODD_TOOLS[0].items() if key not in gone}
    assert json.dumps(odd) == json.dumps({**wrote, "name": "paged__odd"})


@each_revision
def test_an_output_schema_that_is_no_object_is_for_the_newest_alone(
    shelf: Gate, revision: str
) -> None:
    """2026-07-28 server/tools allows any; before it has to be of type object."""
    listing = listed(shelf, revision)[1]

    assert ("outputSchema" in listing) == (revision == "modern")


@each_revision
def test_lists_of_resources_prompts_and_templates_come_from_who_has_them(
    shelf: Gate, revision: str
) -> None:
    """cases B37: `bare` would leave if it were asked for what it does not have."""
    assert [each["uri"] for each in listed(shelf, revision, "resources")][:2] == [
        "fake://plain",
        "fake://blob",
    ]
    assert listed(shelf, revision, "resources")[0]["x-kept"] == {"a": [1]}
    assert [each["name"] for each in listed(shelf, revision, "prompts")][:2] == [
        "paged__greet",
        "paged__plain",
    ]
    assert "fake://item/{id}" in [
        each["uriTemplate"] for each in listed(shelf, revision, "resources/templates")
    ]


def test_a_cursor_that_does_not_advance_ends_with_a_warning(shelf: Gate) -> None:
    names = [tool["name"] for tool in listed(shelf, "modern")]

    assert len([name for name in names if name.startswith("stuck__")]) == 3
    assert '"cursor.repeated"' in shelf.gateway.text


def test_a_modern_list_says_how_long_it_may_be_kept_and_by_whom(shelf: Gate) -> None:
    """2026-07-28 server/utilities/caching."""

    async def converse() -> list[Message]:
        methods = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
        async with client_of("modern", shelf.url) as client:
            return [(await client.request(method)).result for method in methods]

    for result in run(converse()):
        assert result["resultType"] == "complete"
        assert isinstance(result["ttlMs"], int)
        assert result["ttlMs"] >= 0
        assert result["cacheScope"] in ("public", "private")
        assert result["_meta"][f"{P}serverInfo"]["name"] == "onegate"


@each_era
def test_servers_are_not_asked_when_clients_list(shelf: Gate, era: str) -> None:
    since = shelf.mark()

    async def converse() -> set[bytes]:
        async with client_of(era, shelf.url) as client:
            return {(await client.request("tools/list", id_=1)).body for _ in range(10)}

    assert len(run(converse())) == 1, "the same bytes each time"
    assert not [each for each in since.heard("paged") if each.get("method") == "tools/list"]


def content_of(gate: Gate, revision: str, server: str) -> tuple[Message, list[str]]:
    async def converse() -> Answer:
        async with client_of(revision, gate.url) as client:
            return await client.call(f"{server}__rich")

    result = run(converse()).result
    return result, [block["type"] for block in result["content"]]


@each_revision
@pytest.mark.parametrize("server", ["old", "new"])
def test_content_a_revision_does_not_have_becomes_text(
    gate: Gate, revision: str, server: str
) -> None:
    """Audio came with 2025-03-26, links to resources with 2025-06-18."""
    result, kinds = content_of(gate, revision, server)

    audio = "text" if revision == "2024-11-05" else "audio"
    link = "text" if revision in ("2024-11-05", "2025-03-26") else "resource_link"
    assert kinds == ["text", "image", audio, link, "resource"]
    if link == "text":
        assert "fake://plain" in result["content"][3]["text"]
    assert result["x-kept"] == "unknown fields come through"


@each_era
def test_a_tool_that_comes_later_is_under_the_rules_at_once(shelf: Gate, era: str) -> None:
    """cases B53: policy is applied to what is new as well."""

    async def converse() -> tuple[list[str], Answer]:
        async with client_of(era, shelf.url) as client:
            for name in (f"secret_{era}", f"fresh_{era}"):
                await client.call("grows__add_tool", {"name": name})

            async def names() -> list[str]:
                tools = (await client.request("tools/list")).result["tools"]
                return [tool["name"] for tool in tools]

            async def is_there() -> bool:
                return f"grows__fresh_{era}" in await names()

            await eventually_async(is_there)
            return await names(), await client.call(f"grows__secret_{era}")

    names, refused = run(converse())

    assert f"grows__secret_{era}" not in names
    assert refused.error["message"] == f"Unknown tool: grows__secret_{era}"


def test_a_prefix_may_be_empty_and_a_clash_moves_the_later_server(shelf: Gate) -> None:
    async def converse() -> list[str]:
        async with client_of("legacy", shelf.url) as client:
            first = json.loads((await client.call("whoami")).text)["argv"][2]
            second = json.loads((await client.call("second__whoami")).text)["argv"][2]
            return [Path(each).stem for each in (first, second)]

    assert run(converse()) == ["first", "second"]
