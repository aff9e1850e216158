"""Real servers behind the gateway: what they offer arrives at clients of both eras."""

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.gateway import Gateway
from tests.kit.http import Answer, Legacy, Modern
from tests.kit.processes import ROOT
from tests.kit.waiting import run
from tests.peers import install

pytestmark = [pytest.mark.peers, pytest.mark.timeout(900)]
both_eras = pytest.mark.parametrize("era", ["legacy", "modern"])

THOUGHT = {"thought": "Hm", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
ENTITY = {"name": "Ada", "entityType": "person", "observations": ["counts"]}

# What to call with what, and words that the answer holds. FILES stands for the folder of files.
CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("everything__echo", {"message": "hello"}, "hello"),
    ("everything__get-sum", {"a": 2, "b": 3}, "5"),
    ("files__read_text_file", {"path": "FILES/note.txt"}, "A note."),
    ("files__list_directory", {"path": "FILES"}, "note.txt"),
    ("memory__create_entities", {"entities": [ENTITY]}, "["),
    ("memory__read_graph", {}, "entities"),
    ("thinking__sequentialthinking", THOUGHT, "thoughtNumber"),
    ("time__get_current_time", {"timezone": "UTC"}, "UTC"),
    ("git__git_log", {"repo_path": "FILES/repository"}, "The first commit"),
    ("sqlite__read_query", {"query": "SELECT 40 + 2 AS answer"}, "42"),
    ("notes-1__add", {"a": 2, "b": 3}, "5"),
    ("notes-2__add", {"a": 2, "b": 3}, "5"),
    ("notes-fast__add", {"a": 2, "b": 3}, "5"),
    ("notes-old__add", {"a": 2, "b": 3}, "5"),
]
READS = [
    ("demo://resource/static/document/features.md", "Everything"),
    ("demo://resource/dynamic/text/1", "1"),
    ("memory://knowledge-graph", "entities"),
    ("memo://insights", "insights"),
    ("notes://today", "Buy milk."),
    ("notes://monday/note", "The note of monday."),
]
PROMPTS = [
    ("everything__args-prompt", {"city": "Bern"}, "Bern"),
    ("sqlite__mcp-demo", {"topic": "whales"}, "whales"),
    ("notes-1__greet", {"name": "Ada"}, "Please greet Ada."),
    ("notes-2__greet", {"name": "Ada"}, "Please greet Ada."),
    ("notes-fast__greet", {"name": "Ada"}, "Please greet Ada."),
    ("notes-old__greet", {"name": "Ada"}, "Please greet Ada."),
]


@asynccontextmanager
async def client_of(era: str, gateway: Gateway) -> AsyncIterator[Legacy | Modern]:
    if era == "modern":
        async with Modern.to(gateway.url) as modern:
            yield modern
        return
    async with Legacy.to(gateway.url) as legacy:
        await legacy.initialize()
        yield legacy
        await legacy.delete()


def asked(gateway: Gateway, era: str, method: str, params: dict[str, Any]) -> Answer:
    async def conversation() -> Answer:
        async with client_of(era, gateway) as client:
            return await client.request(method, params)

    return run(conversation(), within_s=60)


@both_eras
@pytest.mark.parametrize(("tool", "arguments", "words"), CALLS, ids=[call[0] for call in CALLS])
def test_a_tool_of_a_real_server_answers(
    gateway: Gateway, files: Path, era: str, tool: str, arguments: dict[str, Any], words: str
) -> None:
    placed = json.loads(json.dumps(arguments).replace("FILES", str(files)))
    answer = asked(gateway, era, "tools/call", {"name": tool, "arguments": placed})
    assert answer.result.get("isError", False) is False, answer.result
    assert words in answer.text


@both_eras
@pytest.mark.parametrize(("uri", "words"), READS, ids=[read[0] for read in READS])
def test_a_resource_of_a_real_server_reads(
    gateway: Gateway, era: str, uri: str, words: str
) -> None:
    contents = asked(gateway, era, "resources/read", {"uri": uri}).result["contents"]
    assert words.lower() in contents[0]["text"].lower()


@both_eras
@pytest.mark.parametrize(("name", "arguments", "words"), PROMPTS, ids=[ask[0] for ask in PROMPTS])
def test_a_prompt_of_a_real_server_is_given(
    gateway: Gateway, era: str, name: str, arguments: dict[str, str], words: str
) -> None:
    result = asked(gateway, era, "prompts/get", {"name": name, "arguments": arguments}).result
    assert words in json.dumps(result["messages"])


@both_eras
@pytest.mark.parametrize("server", ["notes-1", "notes-2", "notes-fast", "notes-old"])
def test_a_failing_tool_is_an_error_that_the_model_sees(
    gateway: Gateway, era: str, server: str
) -> None:
    answer = asked(gateway, era, "tools/call", {"name": f"{server}__fail", "arguments": {}})
    assert answer.result["isError"] is True
    assert "fail" in answer.text


@both_eras
@pytest.mark.parametrize(
    ("tool", "arguments", "least"),
    [
        ("everything__trigger-long-running-operation", {"duration": 1, "steps": 4}, 4),
        ("notes-1__slow", {"seconds": 0.5}, 9),
        ("notes-2__slow", {"seconds": 0.5}, 9),
        ("notes-fast__slow", {"seconds": 0.5}, 9),
        ("notes-old__slow", {"seconds": 0.5}, 9),
    ],
)
def test_progress_of_a_real_server_arrives_under_the_clients_token(
    gateway: Gateway, era: str, tool: str, arguments: dict[str, Any], least: int
) -> None:
    meta = {"progressToken": "mine"}
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    answer = asked(gateway, era, "tools/call", params)
    told = [each["params"] for each in answer.notices]
    assert len(told) >= least
    assert {each["progressToken"] for each in told} == {"mine"}
    assert "isError" not in answer.result or answer.result["isError"] is False


def test_the_old_server_is_one_that_a_probe_kills() -> None:
    """So that the gateway, which asks each server for its era, has been careful with it above."""
    probe = '{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}\n'
    follow = '{"jsonrpc":"2.0","id":2,"method":"ping"}\n'
    done = subprocess.run(
        [install.python("mcp-old"), "-m", "tests.peers.servers.with_mcp_1"],
        cwd=ROOT,
        input=probe + follow,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
