"""Real servers over HTTP behind the gateway: every transport they have, clients of both eras."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.kit.gateway import Gateway, running_gateway
from tests.kit.ports import free_port
from tests.kit.processes import program
from tests.kit.waiting import eventually
from tests.peers import install
from tests.peers.test_servers import asked, both_eras

pytestmark = [pytest.mark.peers, pytest.mark.timeout(900)]

START_S = 120


@dataclass(frozen=True, slots=True)
class There:
    """How to start one server, `PORT` in it; where it is then, and what it turns out to be."""

    argv: tuple[str, ...]
    path: str
    transport: str
    eras: tuple[str, ...] = ("legacy",)
    add: str = "add"
    env: tuple[str, ...] = ()


def _notes(environment: str, sdk: str, transport: str, *options: str) -> tuple[str, ...]:
    module = "tests.peers.servers.over_http"
    return (install.python(environment), "-m", module, sdk, transport, "PORT", *options)


def everything(transport: str) -> There:
    argv = (install.node(), install.npm_program("mcp-server-everything"), transport)
    way = "sse" if transport == "sse" else "http"
    return There(argv, "/sse" if way == "sse" else "/mcp", way, add="get-sum", env=("PORT",))


def servers() -> dict[str, There]:
    both = ("modern", "legacy")
    stream, stateless = "streamable-http", ("stateless_http", "json_response")
    return {
        "everything": everything("streamableHttp"),
        "everything-sse": everything("sse"),
        "mcp-1": There(_notes("mcp-1", "mcp-1", stream), "/mcp", "http"),
        "mcp-1-bare": There(_notes("mcp-1", "mcp-1", stream, *stateless), "/mcp", "http"),
        "mcp-1-sse": There(_notes("mcp-1", "mcp-1", "sse"), "/sse", "sse"),
        "mcp-old-sse": There(_notes("mcp-old", "mcp-1", "sse"), "/sse", "sse"),
        "mcp-2": There(_notes("mcp-2", "mcp-2", stream), "/mcp", "http", both),
        "mcp-2-bare": There(_notes("mcp-2", "mcp-2", stream, *stateless), "/mcp", "http", both),
        "mcp-2-sse": There(_notes("mcp-2", "mcp-2", "sse"), "/sse", "sse"),
        "fastmcp": There(_notes("mcp-2", "fastmcp", stream), "/mcp", "http", both),
        "fastmcp-sse": There(_notes("mcp-2", "fastmcp", "sse"), "/sse", "sse"),
    }


NAMES = (
    *("everything", "everything-sse", "mcp-1", "mcp-1-bare", "mcp-1-sse", "mcp-old-sse"),
    *("mcp-2", "mcp-2-bare", "mcp-2-sse", "fastmcp", "fastmcp-sse"),
)
each_server = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def there() -> dict[str, There]:
    return servers()


@pytest.fixture(scope="module")
def elsewhere(
    there: dict[str, There], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("elsewhere")
    sections: dict[str, Any] = {}
    with ExitStack() as running:
        for name, server in there.items():
            port = free_port()
            argv = [word.replace("PORT", str(port)) for word in server.argv]
            env = dict.fromkeys(server.env, str(port))
            running.enter_context(program(argv, folder / f"{name}.log", env=env))
            eventually(lambda port=port: listens(port), START_S, what=name)  # type: ignore[misc]
            sections[name] = {
                "url": f"http://127.0.0.1:{port}{server.path}",
                "start_timeout": f"{START_S}s",
            }
        gateway = running.enter_context(running_gateway(folder, sections, wait="/livez"))
        tools = [f"{name}__{server.add}" for name, server in there.items()]
        gateway.wait_tools(*tools, within_s=START_S)
        yield gateway


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@each_server
def test_transport_and_eras_are_found_out(
    elsewhere: Gateway, there: dict[str, There], name: str
) -> None:
    told = {each["name"]: each for each in json.loads(elsewhere.page("/api/servers"))["servers"]}
    assert told[name]["state"] == "ready"
    assert tuple(told[name]["eras"]) == there[name].eras
    lines = [line for line in elsewhere.text.splitlines() if "transport.changed" in line]
    turned = {json.loads(line)["server"] for line in lines}
    assert (name in turned) == (there[name].transport == "sse")


@both_eras
@each_server
def test_a_tool_answers(elsewhere: Gateway, there: dict[str, There], name: str, era: str) -> None:
    params = {"name": f"{name}__{there[name].add}", "arguments": {"a": 2, "b": 3}}
    answer = asked(elsewhere, era, "tools/call", params)
    assert "5" in answer.text


@both_eras
@pytest.mark.parametrize("name", [name for name in NAMES if "everything" not in name])
def test_a_failing_tool_a_resource_and_a_prompt(elsewhere: Gateway, name: str, era: str) -> None:
    failed = asked(elsewhere, era, "tools/call", {"name": f"{name}__fail", "arguments": {}})
    assert failed.result["isError"] is True
    prompt = {"name": f"{name}__greet", "arguments": {"name": "Ada"}}
    messages = asked(elsewhere, era, "prompts/get", prompt).result["messages"]
    assert "Please greet Ada." in json.dumps(messages)
    read = asked(elsewhere, era, "resources/read", {"uri": "notes://monday/note"}).result
    assert read["contents"][0]["text"] == "The note of monday."


@both_eras
@each_server
def test_progress_arrives_under_the_clients_token(elsewhere: Gateway, name: str, era: str) -> None:
    tool, arguments = "slow", {"seconds": 0.5}
    if name.startswith("everything"):
        tool, arguments = "trigger-long-running-operation", {"duration": 1.0, "steps": 4}
    params = {
        "name": f"{name}__{tool}",
        "arguments": arguments,
        "_meta": {"progressToken": "mine"},
    }
    answer = asked(elsewhere, era, "tools/call", params)
    told = [each["params"] for each in answer.notices if each["method"].endswith("/progress")]
    if name.endswith("-bare"):  # one JSON body holds no progress
        assert told == []
    else:
        assert len(told) >= 4
        assert {each["progressToken"] for each in told} == {"mine"}


def test_the_gateway_itself_is_a_server_like_others(tmp_path: Path) -> None:
    """One gateway behind another, in both eras."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "outer").mkdir()
    server = {"command": install.python("mcp-2"), "args": ["-m", "tests.peers.servers.with_mcp_2"]}
    notes = {"notes": {**server, "start_timeout": f"{START_S}s"}}
    with running_gateway(tmp_path / "inner", notes, wait="/livez") as inner:
        inner.wait_tools("notes__add", within_s=START_S)
        with running_gateway(
            tmp_path / "outer", {"far": {"url": inner.url, "prefix": ""}}, wait="/livez"
        ) as outer:
            outer.wait_tools("notes__add", within_s=START_S)
            for era in ("modern", "legacy"):
                params = {"name": "notes__add", "arguments": {"a": 2, "b": 3}}
                assert asked(outer, era, "tools/call", params).text == "5"
