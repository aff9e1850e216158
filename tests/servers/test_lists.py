"""The lists of servers: read whole, kept as they came, read again when something changed."""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.catalog.entries import Entry, Kind
from gateway.protocol.revisions import Era
from tests.kit.fakes import fake
from tests.kit.waiting import eventually_async, run
from tests.servers.gate import PATIENT, Gate, gate

FEW = ("--only", "echo,add_tool,remove_tool,touch,crash,notify,whoami")


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_all_pages_are_read_and_everything_on_them_can_be_called(tmp_path: Path, era: str) -> None:
    """B46: 150 tools in pages of 50, and whatever else in pages of one."""

    async def converse() -> None:
        many = fake("--only", "echo", "--tools", 149, "--page", 50, protocol=era)
        single = fake("--only", "echo,whoami,crash", "--page", 1, protocol=era)
        async with gate(tmp_path, {"many": many, "single": single}) as it:
            await it.ready()
            async with it.modern() as client:
                answer = await client.request("tools/list")
                names = [tool["name"] for tool in answer.result["tools"]]
                assert "nextCursor" not in answer.result
                assert len(names) == 153
                assert names[0] == "many__echo"
                assert names[-1] == "single__crash"
                assert (await client.call("many__extra_148", {"text": "last"})).text == "last"
                for method, key in (
                    ("prompts/list", "prompts"),
                    ("resources/list", "resources"),
                    ("resources/templates/list", "resourceTemplates"),
                ):
                    assert (await client.request(method)).result[key]
                refused = await client.request("tools/list", {"cursor": "50"})
                assert refused.error["code"] == -32602
            assert not it.said("cursor.repeated")

    run(converse())


def test_odd_cursors_and_pages_lose_nothing(tmp_path: Path) -> None:
    """An empty page in the middle, an empty text and a number as cursors, and null at the end."""
    program = tmp_path / "pages.py"
    program.write_text(PAGES)

    async def converse() -> None:
        section = {"command": "python3", "args": ["-S", str(program)], "protocol": "legacy"}
        async with gate(tmp_path, {"it": section}) as it:
            await it.ready()
            async with it.modern() as client:
                answer = await client.request("tools/list")
                assert [tool["name"] for tool in answer.result["tools"]] == [
                    "it__one",
                    "it__two",
                    "it__three",
                ]

    run(converse())


def test_a_cursor_that_does_not_advance_ends_with_a_warning(tmp_path: Path) -> None:
    async def converse() -> None:
        server = fake("--only", "echo,whoami", "--page", 1, "--stuck-cursor")
        async with gate(tmp_path, {"it": server}) as it:
            await it.ready()
            async with it.modern() as client:
                assert (await client.call("it__echo", {"text": "x"})).text == "x"
            warned = it.said("cursor.repeated")
            assert {entry["method"] for entry in warned} >= {"tools/list", "resources/list"}
            assert {entry["server"] for entry in warned} == {"it"}

    run(converse())


def test_malformed_tools_are_left_out_with_a_warning_and_the_others_live(tmp_path: Path) -> None:
    async def converse() -> None:
        async with gate(tmp_path, {"it": fake("--only", "echo,whoami", "--malformed")}) as it:
            await it.ready()
            async with it.modern() as client:
                listed = (await client.request("tools/list")).result["tools"]
                assert [tool["name"] for tool in listed] == ["it__echo", "it__whoami"]
                assert (await client.call("it__echo", {"text": "x"})).text == "x"
            left_out = it.said("entry.left_out")
            assert len(left_out) >= 2
            assert all(entry["server"] == "it" for entry in left_out)

    run(converse())


def test_only_what_a_server_advertises_is_asked_for(tmp_path: Path) -> None:
    """B37: some servers exit over a question for a list they do not have."""
    heard = tmp_path / "heard"

    async def converse() -> None:
        flags = ("--without", "resources,prompts,logging,completions", "--unknown", "exit")
        server = fake("--only", "echo", *flags, "--record", heard, protocol="legacy")
        async with gate(tmp_path, {"it": server}) as it:
            await it.ready()
            async with it.modern() as client:
                assert (await client.request("resources/list")).result["resources"] == []
                assert (await client.call("it__echo", {"text": "x"})).text == "x"
            assert b"resources/list" not in heard.read_bytes()
            assert b"prompts/list" not in heard.read_bytes()

    run(converse())


def test_a_storm_of_announcements_is_read_a_few_times(tmp_path: Path) -> None:
    """B54: a hundred at once, of the same list."""
    heard = tmp_path / "heard"

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*FEW, "--record", heard, protocol="legacy")}) as it:
            await it.ready()
            async with it.modern() as client:
                before = heard.read_text().count('"tools/list"')
                told = {"method": "notifications/tools/list_changed"}
                await asyncio.gather(*(client.call("it__notify", told) for _ in range(100)))
                await client.call("it__add_tool", {"name": "last"})
                await eventually_async(lambda: _has(it, "it__last"))
            assert heard.read_text().count('"tools/list"') - before <= 10

    run(converse())


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_change_is_read_and_told_once_to_everybody_who_listens(tmp_path: Path, era: str) -> None:
    """B53: listed, callable, announced to both eras of clients."""

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*FEW, protocol=era)}) as it:
            await it.ready()
            async with (
                it.modern() as modern,
                it.legacy() as legacy,
                modern.listening(toolsListChanged=True) as new,
                legacy.listening() as old,
            ):
                await modern.call("it__add_tool", {"name": "fresh"})
                for stream in (new, old):
                    async with asyncio.timeout(5):
                        told = await stream.message()
                    assert told["method"] == "notifications/tools/list_changed"
                assert (await legacy.call("it__fresh", {"text": "here"})).text == "here"
                await modern.call("it__remove_tool", {"name": "fresh"})
                await new.message()
                assert (await modern.call("it__fresh")).error["code"] == -32602

    run(converse())


def test_a_change_that_comes_while_the_lists_are_read_is_not_lost(tmp_path: Path) -> None:
    """A server that announces one more tool while it is still being asked for the first ones."""
    program = tmp_path / "growing.py"
    program.write_text(GROWING)

    async def converse() -> None:
        section = {"command": "python3", "args": ["-S", str(program)], "protocol": "legacy"}
        async with gate(tmp_path, {"it": section}) as it:
            await it.ready()
            await eventually_async(lambda: _has(it, "it__second"))

    run(converse())


def test_a_list_that_hangs_holds_up_neither_calls_nor_other_lists(tmp_path: Path) -> None:
    """B39: what is missing is said, and asked for again when something has changed."""
    program, stuck = tmp_path / "hanging.py", tmp_path / "stuck"
    program.write_text(HANGING)
    stuck.touch()

    async def converse() -> None:
        section = {"command": "python3", "args": ["-S", str(program), str(stuck)]}
        section |= {"protocol": "legacy", "start_timeout": "6s"}
        async with gate(tmp_path, {"it": section}) as it:
            async with asyncio.timeout(5):
                await it.ready()
            (late,) = it.said("list.late")
            assert late["kind"] == "prompt"
            async with it.modern() as client, client.listening(promptsListChanged=True) as stream:
                assert await _names(client) == ["it__grow"]
                async with asyncio.timeout(3):
                    await client.call("it__grow")
                    await eventually_async(lambda: _has(it, "it__grown_1"))
                assert not it.said("list.failed")

                await eventually_async(lambda: it.said("list.failed"), 10)
                (failed,) = it.said("list.failed")
                assert failed["kind"] == "prompt"
                report = await it.report()
                assert report["state"] == "ready"
                assert report["last_error"] == "prompts/list: not answered within 6 s"

                stuck.unlink()
                await client.call("it__grow")
                async with asyncio.timeout(5):
                    told = await stream.message()
                assert told["method"] == "notifications/prompts/list_changed"
                prompts = (await client.request("prompts/list")).result["prompts"]
                assert [each["name"] for each in prompts] == ["it__hello"]

    run(converse())


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_subscriptions_are_made_again_after_a_restart(tmp_path: Path, era: str) -> None:
    """A14; the client notices nothing but that its server answered a call badly."""

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake(*FEW, protocol=era)}) as it:
            await it.ready()
            async with (
                it.modern() as client,
                client.listening(resourceSubscriptions=["fake://plain"]) as stream,
            ):
                for _ in range(2):
                    pid = await _touch(client)
                    async with asyncio.timeout(5):
                        told = await stream.message()
                    assert told["method"] == "notifications/resources/updated"
                    assert told["params"]["uri"] == "fake://plain"
                    await client.call("it__crash")
                    await eventually_async(partial(_is_watched_anew, it, pid))

    run(converse())


def test_one_resource_that_cannot_be_watched_keeps_no_other_from_it(tmp_path: Path) -> None:
    program = tmp_path / "picky.py"
    program.write_text(PICKY)
    heard = tmp_path / "heard"

    async def converse() -> None:
        section = {"command": "python3", "args": ["-S", str(program), str(heard)]}
        async with gate(tmp_path, {"it": {**section, "protocol": "legacy"}}) as it:
            await it.ready()
            async with it.modern() as client:
                uris = ["x://bad", "x://good", "x://other"]
                async with client.listening(resourceSubscriptions=uris):
                    await eventually_async(lambda: len(heard.read_text().split()) == 3)
                assert sorted(heard.read_text().split()) == uris

    run(converse())


def test_names_depend_on_the_configuration_alone(tmp_path: Path) -> None:
    """B52: the same with one server and with two; B51: each goes to its own where two meet."""
    file, other = tmp_path / "tools.json", tmp_path / "other.json"
    file.write_text(json.dumps([_tool("b__c"), _tool("x" * 80)]))
    other.write_text(json.dumps([_tool("a__b__c"), _tool("own")]))
    one, two = fake("--tools-file", file), fake("--tools-file", other, prefix="")

    async def converse() -> None:
        async with gate(tmp_path, {"a": one}) as it:
            await it.ready()
            async with it.modern() as client:
                alone = await _names(client)
        async with gate(tmp_path, {"a": one, "z": two}, policy=PATIENT) as it:
            await it.ready()
            async with it.modern() as client:
                both = await _names(client)
                assert both[: len(alone)] == alone
                assert len(set(both)) == 4
                owners = [entry.route.server for entry in _entries(it)]
                assert owners == ["a", "a", "z", "z"]
                for name in both:
                    assert (await client.call(name, {"text": name})).text == name

    run(converse())


def _tool(name: str) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}}


def _has(it: Gate, name: str) -> bool:
    return it.gateway.fleet.shelf.current.resolve(Kind.TOOL, name) is not None


def _entries(it: Gate) -> list[Entry]:
    return list(it.gateway.fleet.shelf.current.of(Kind.TOOL))


def _is_watched_anew(it: Gate, before: int) -> bool:
    """Another process than this one has confirmed what is watched."""
    connection = it.server().main.connection
    if connection is None or connection.transport.pid == before:
        return False
    outbound: Any = connection.outbound
    if connection.era is Era.LEGACY:
        return bool(outbound._watched)
    return bool(outbound._acknowledged.is_set())


async def _touch(client: Any) -> int:
    await client.call("it__touch")
    return int(json.loads((await client.call("it__whoami")).text)["pid"])


async def _names(client: Any) -> list[str]:
    answer = await client.request("tools/list")
    return [each["name"] for each in answer.result["tools"]]


SERVER = """
import json, sys
from pathlib import Path

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def tool(name):
    return {"name": name, "inputSchema": {"type": "object"}}

for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES}
    elif "id" not in message:
        continue
    else:
        result = {}
        ANSWER
    send(id=message["id"], result=result)
"""

PAGES = SERVER.replace("CAPABILITIES", '{"tools": {}}').replace(
    "ANSWER",
    """pages = {
            None: {"tools": [tool("one")], "nextCursor": ""},
            "": {"tools": [], "nextCursor": "b"},
            "b": {"tools": [tool("two")], "nextCursor": "c c"},
            "c c": {"tools": [tool("three")], "nextCursor": None},
        }
        result = pages[params.get("cursor")]""",
)

GROWING = SERVER.replace("CAPABILITIES", '{"tools": {"listChanged": True}}').replace(
    "ANSWER",
    """asked = globals().get("asked", 0) + 1
        result = {"tools": [tool("first")] + [tool("second")] * (asked > 1)}
        if asked == 1:
            send(method="notifications/tools/list_changed")""",
)

HANGING = SERVER.replace("CAPABILITIES", '{"tools": {"listChanged": True}, "prompts": {}}').replace(
    "ANSWER",
    """grown = globals().setdefault("grown", [])
        if method == "tools/list":
            result = {"tools": [tool("grow")] + [tool(f"grown_{n}") for n in grown]}
        elif method == "tools/call":
            grown.append(len(grown) + 1)
            result = {"content": []}
            send(method="notifications/tools/list_changed")
        elif method == "prompts/list":
            if Path(sys.argv[1]).exists():
                continue
            result = {"prompts": [{"name": "hello"}]}""",
)

PICKY = SERVER.replace("CAPABILITIES", '{"resources": {"subscribe": True}}').replace(
    "ANSWER",
    """uris = ["x://bad", "x://good", "x://other"]
        if method == "resources/list":
            result = {"resources": [{"uri": uri, "name": uri} for uri in uris]}
        elif method == "resources/subscribe":
            with open(sys.argv[1], "a") as heard:
                heard.write(params["uri"] + "\\n")
            if params["uri"] == "x://bad":
                send(id=message["id"], error={"code": -32602, "message": "not this one"})
                continue""",
)
