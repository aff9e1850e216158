"""Lists that no honest server has: what becomes of them, and of everything beside them."""

from pathlib import Path

import pytest

from tests.kit.fakes import fake
from tests.kit.waiting import eventually_async, run
from tests.questions.talking import client_of
from tests.servers.gate import gate
from tests.servers.test_lists import SERVER


@pytest.mark.parametrize("page", ["[tool(f't{at}_{n}') for n in range(9_000)]", "[large(at)]"])
def test_a_list_without_end_is_cut_with_a_warning(tmp_path: Path, page: str) -> None:
    """Whatever one server lists, it fills no memory and keeps nobody waiting."""
    program = tmp_path / "endless.py"
    program.write_text(ENDLESS.replace("PAGE", page))

    async def converse() -> None:
        section = {"command": "python3", "args": ["-S", str(program)], "protocol": "legacy"}
        async with gate(tmp_path, {"it": section}) as it:
            await it.ready()
            async with it.modern() as client:
                listed = (await client.request("tools/list")).result["tools"]
                assert 8 <= len(listed) <= 20_000
            (cut,) = it.said("list.cut")
            assert (cut["server"], cut["items"]) == ("it", len(listed))
            assert cut["bytes"] < 80 * 2**20

    run(converse())


def test_what_is_said_of_odd_entries_fills_no_log(tmp_path: Path) -> None:
    """However many there are, and however often they are others."""
    program = tmp_path / "renaming.py"
    program.write_text(RENAMING)

    async def converse() -> None:
        section = {"command": "python3", "args": ["-S", str(program)], "protocol": "legacy"}
        other = fake("--only", "echo,whoami", "--malformed")
        async with gate(tmp_path, {"it": section, "other": other}) as it:
            await it.ready()
            async with it.modern() as client:

                async def listed() -> list[str]:
                    tools = (await client.request("tools/list")).result["tools"]
                    return [tool["name"] for tool in tools]

                for _ in range(3):
                    before = await listed()
                    await client.call(before[0])

                    async def others(before: list[str] = before) -> bool:
                        return await listed() != before

                    await eventually_async(others, what="other names")
            renamed = [one for one in it.said("entry.renamed") if one["server"] == "it"]
            assert 100 < len(renamed) <= 200 + 20
            dropped = it.said("notes.dropped")
            assert {one["server"] for one in dropped} == {"it"}
            assert dropped[0]["notes"] >= 1_500 - 200
            assert it.said("entry.left_out")

    run(converse())


def test_an_entry_without_a_readable_name_hides_none_of_these_tools(tmp_path: Path) -> None:
    program = tmp_path / "nameless.py"
    program.write_text(NAMELESS)
    section = {"command": "python3", "args": ["-S", str(program)], "protocol": "legacy"}

    async def conversation() -> None:
        async with gate(tmp_path, {"it": section}) as it, client_of("legacy", it.url) as client:
            await it.ready()

            async def offered() -> list[str]:
                return [
                    each["name"] for each in (await client.request("tools/list")).result["tools"]
                ]

            assert (await client.call("it__known")).text == "asked"

            async def grown() -> bool:
                return await offered() == ["it__known", "it__for_askable"]

            await eventually_async(grown, what="what the private process lists to be offered")
            assert not it.said("work.crashed")

    run(conversation())


ENDLESS = SERVER.replace("CAPABILITIES", '{"tools": {}}').replace(
    "ANSWER",
    """at = int(params.get("cursor", 0))
        def large(at):
            return {**tool(f"t{at}"), "description": "x" * 9_000_000}
        result = {"tools": PAGE, "nextCursor": str(at + 1)}""",
)

NAMELESS = """
import json, sys

def tool(name):
    return {"name": name, "inputSchema": {"type": "object"}}

for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if "id" not in message:
        continue
    if method == "initialize":
        tools = [tool(["no", "text"]), tool({}), tool(None), tool("known")]
        tools += [tool("for_askable")] * bool(params["capabilities"])
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
    elif method == "tools/list":
        result = {"tools": tools}
    else:
        result = {"content": [{"type": "text", "text": "asked"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""

RENAMING = SERVER.replace("CAPABILITIES", '{"tools": {"listChanged": True}}').replace(
    "ANSWER",
    """asked = globals().setdefault("asked", [])
        if method == "tools/list":
            result = {"tools": [tool(f"no name/{len(asked)}/{n}") for n in range(1_500)]}
        else:
            asked.append(1)
            send(method="notifications/tools/list_changed")
            result = {"content": []}""",
)
