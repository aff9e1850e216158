"""Every real client with every real server: each step passes in each pair, questions included, or
shows that it is what the specification forbids.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.kit.gateway import Gateway, running_gateway
from tests.kit.http import Legacy
from tests.kit.ports import free_port
from tests.kit.processes import ROOT, program
from tests.kit.waiting import eventually, run
from tests.peers import install
from tests.peers.callers import CALLERS, Caller
from tests.peers.conftest import START_S
from tests.peers.test_clients import home
from tests.peers.test_elsewhere import everything, listens

pytestmark = [pytest.mark.peers, pytest.mark.timeout(900)]

WAIT_S = 180
CAPABILITIES: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
Step = tuple[str, Any, Any]

# What to do with each kind of server: the name without its prefix, the arguments, what shows then.
NOTES: dict[str, Step] = {
    "list": ("add", {}, "add"),
    "call": ("add", {"a": 2, "b": 3}, "5"),
    "progress": ("slow", {"seconds": 0.2}, 9),
    "read": ("notes://monday/note", {}, "The note of monday."),
    "subscribe": ("notes://today", {}, "subscribed"),
    "prompt": ("greet", {"name": "Ada"}, "Please greet Ada."),
}
ASKING: dict[str, Step] = {
    **NOTES,
    "complete": ("greet", {"name": "name", "value": "A"}, "Ada"),
    "elicit": ("ask_name", {}, "Hello, Ada!"),
    "sample": ("ask_model", {}, "The model says Bern."),
    "roots": ("ask_roots", {}, "file:///home/ada"),
}
EVERYTHING: dict[str, Step] = {
    "list": ("echo", {}, "echo"),
    "call": ("echo", {"message": "hello"}, "hello"),
    "progress": ("trigger-long-running-operation", {"duration": 0.2, "steps": 4}, 4),
    "read": ("demo://resource/dynamic/text/1", {}, "1"),
    "subscribe": ("demo://resource/dynamic/text/1", {}, "subscribed"),
    "prompt": ("args-prompt", {"city": "Bern"}, "Bern"),
    "complete": ("completable-prompt", {"name": "department", "value": "E"}, "Engineering"),
    "elicit": ("trigger-elicitation-request", {}, "provided the requested information"),
    "sample": ("trigger-sampling-request", {"prompt": "Which city?", "maxTokens": 10}, "Bern"),
    "roots": ("get-roots-list", {}, "file:///home/ada"),
}
SERVERS = {
    "everything": EVERYTHING,
    "everything-http": EVERYTHING,
    "everything-sse": EVERYTHING,
    "mcp-1": ASKING,
    "mcp-2": ASKING,
    "fastmcp": NOTES,
}
CELLS = [(server, what) for server, steps in SERVERS.items() for what in steps]


def plan() -> list[tuple[str, str, str, Any]]:
    """Every step with every server, under the names that clients see."""
    return [
        (server, what, target if "://" in target else f"{server}__{target}", arguments)
        for server, steps in SERVERS.items()
        for what, (target, arguments, _) in steps.items()
    ]


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with all of these servers, on pipes and elsewhere."""
    folder = tmp_path_factory.mktemp("matrix")
    sections: dict[str, Any] = {
        "everything": _piped(install.node(), install.npm_program("mcp-server-everything")),
        "mcp-1": _piped(install.python("mcp-1"), "-m", "tests.peers.servers.asking_1"),
        "mcp-2": _piped(install.python("mcp-2"), "-m", "tests.peers.servers.asking_2"),
        "fastmcp": _piped(install.python("mcp-2"), "-m", "tests.peers.servers.with_fastmcp"),
    }
    with ExitStack() as running:
        for name, transport in (("everything-http", "streamableHttp"), ("everything-sse", "sse")):
            there, port = everything(transport), free_port()
            log, env = folder / f"{name}.log", dict.fromkeys(there.env, str(port))
            running.enter_context(program(list(there.argv), log, env=env))
            eventually(lambda port=port: listens(port), START_S, what=name)  # type: ignore[misc]
            url = f"http://127.0.0.1:{port}{there.path}"
            sections[name] = {"url": url, "start_timeout": f"{START_S}s"}
        servers = {name: sections[name] for name in SERVERS}
        gateway = running.enter_context(
            running_gateway(folder, servers, wait="/livez", legacy_sse=True)
        )
        gateway.wait_tools(
            *(f"{name}__{steps['call'][0]}" for name, steps in SERVERS.items()), within_s=START_S
        )
        run(_show_who_can_be_asked(gateway), within_s=START_S)
        yield gateway


async def _show_who_can_be_asked(gateway: Gateway) -> None:
    """Some tools are listed once a client has come that can be asked."""
    async with Legacy.to(gateway.url) as client:
        await client.initialize(capabilities=CAPABILITIES)
        for name, steps in SERVERS.items():
            target, arguments, _ = steps["call"]
            await client.call(f"{name}__{target}", arguments)
    asking = [f"{name}__{steps['roots'][0]}" for name, steps in SERVERS.items() if "roots" in steps]
    gateway.wait_tools(*asking, within_s=START_S)


def _piped(command: str, *arguments: str) -> dict[str, Any]:
    words = {"command": command, "args": list(arguments), "cwd": str(ROOT)}
    return {**words, "start_timeout": f"{START_S}s"}


@pytest.fixture(scope="module", params=list(CALLERS))
def caller(request: pytest.FixtureRequest) -> Caller:
    return CALLERS[request.param]


@pytest.fixture(scope="module")
def seen(
    caller: Caller, matrix: Gateway, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], dict[str, Any]]:
    """What one client saw, by server and step: it starts once, and takes them all."""
    done = subprocess.run(
        caller.command(matrix.url),
        cwd=ROOT,
        env=os.environ | home(tmp_path_factory.mktemp("home")),
        input=json.dumps(plan()),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == len(CELLS), done.stderr[-3000:]
    assert {line["version"] for line in lines} == {caller.revision}
    return {(line["server"], line["what"]): line for line in lines}


@pytest.mark.parametrize(("server", "what"), CELLS)
def test_the_step_shows_what_it_has_to(
    caller: Caller, seen: dict[tuple[str, str], dict[str, Any]], server: str, what: str
) -> None:
    expected, saw = SERVERS[server][what][2], seen[server, what]["saw"]
    if what in caller.cannot:
        assert caller.cannot[what].instead[server] in saw, caller.cannot[what].because
    elif isinstance(expected, int):
        assert isinstance(saw, int), saw
        assert saw >= expected
    else:
        assert expected in json.dumps(saw, ensure_ascii=False)
