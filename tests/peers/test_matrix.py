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
from tests.peers import offers
from tests.peers.callers import CALLERS, Caller
from tests.peers.conftest import START_S
from tests.peers.offers import SERVERS, CannotBe
from tests.peers.test_clients import home
from tests.peers.test_elsewhere import everything, listens

pytestmark = [pytest.mark.peers, pytest.mark.timeout(900)]

WAIT_S = 180
CAPABILITIES: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
CALLS = "calls.jsonl"
CELLS = [(server, what) for server, steps in SERVERS.items() for what in steps]


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with all of these servers, on pipes and elsewhere."""
    folder = tmp_path_factory.mktemp("matrix")
    cancelled = folder / "cancelled"
    cancelled.mkdir()
    sections = offers.piped(cancelled)
    with ExitStack() as running:
        for name, transport in (("everything-http", "streamableHttp"), ("everything-sse", "sse")):
            there, port = everything(transport), free_port()
            env = dict.fromkeys(there.env, str(port))
            env |= offers.writing(cancelled, name) | offers.watched()
            running.enter_context(program(list(there.argv), folder / f"{name}.log", env=env))
            eventually(lambda port=port: listens(port), START_S, what=name)  # type: ignore[misc]
            url = f"http://127.0.0.1:{port}{there.path}"
            sections[name] = {"url": url, "start_timeout": f"{START_S}s"}
        servers = {name: sections[name] for name in SERVERS}
        calls = {"path": str(folder / CALLS)}
        gateway = running.enter_context(
            running_gateway(folder, servers, wait="/livez", legacy_sse=True, calls=calls)
        )
        gateway.wait_tools(
            *(f"{name}__{steps['call'][0]}" for name, steps in SERVERS.items()), within_s=START_S
        )
        run(_have_news_told(gateway), within_s=START_S)
        run(_show_who_can_be_asked(gateway), within_s=START_S)
        yield gateway


async def _have_news_told(gateway: Gateway) -> None:
    """Some servers tell what changes once they are told to, of the conversation they hear it in:
    a client that cannot be asked anything shares that one with everybody's subscriptions."""
    async with Legacy.to(gateway.url) as client:
        await client.initialize()
        for name in offers.NEWS_ON_DEMAND:
            await client.call(f"{name}__toggle-subscriber-updates", {})


async def _show_who_can_be_asked(gateway: Gateway) -> None:
    """Some tools are listed once a client has come that can be asked."""
    async with Legacy.to(gateway.url) as client:
        await client.initialize(capabilities=CAPABILITIES)
        for name, steps in SERVERS.items():
            target, arguments, _ = steps["call"]
            await client.call(f"{name}__{target}", arguments)
    asking = [f"{name}__{steps['roots'][0]}" for name, steps in SERVERS.items()]
    gateway.wait_tools(*asking, within_s=START_S)


@pytest.fixture(scope="module", params=list(CALLERS))
def caller(request: pytest.FixtureRequest) -> Caller:
    return CALLERS[request.param]


@pytest.fixture(scope="module")
def before(caller: Caller, matrix: Gateway) -> int:
    """How many calls had been recorded when this client came."""
    return len(_recorded(matrix))


@pytest.fixture(scope="module")
def seen(
    caller: Caller, before: int, matrix: Gateway, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], dict[str, Any]]:
    """What one client saw, by server and step: it starts once, and takes them all."""
    done = subprocess.run(
        caller.command(matrix.url),
        cwd=ROOT,
        env=os.environ | home(tmp_path_factory.mktemp("home")),
        input=json.dumps(offers.plan()),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == len(CELLS), done.stderr[-3000:]
    assert {line["version"] for line in lines} == {caller.revision}
    return {(line["server"], line["what"]): line for line in lines}


@pytest.mark.parametrize("server", SERVERS)
def test_the_eras_of_a_server_are_found_out(matrix: Gateway, server: str) -> None:
    told = {each["name"]: each for each in json.loads(matrix.page("/api/servers"))["servers"]}
    both = server in offers.OF_BOTH_ERAS
    assert tuple(told[server]["eras"]) == (("modern", "legacy") if both else ("legacy",))


@pytest.mark.parametrize(("server", "what"), CELLS)
def test_the_step_shows_what_it_has_to(
    caller: Caller, seen: dict[tuple[str, str], dict[str, Any]], server: str, what: str
) -> None:
    expected, saw = SERVERS[server][what][2], seen[server, what]["saw"]
    cannot = caller.cannot.get(what)
    if cannot is not None and server in cannot.instead:
        assert cannot.instead[server] in saw, cannot.because
    elif isinstance(expected, CannotBe):
        assert saw == expected.shows, expected.because
    elif isinstance(expected, int):
        assert isinstance(saw, int), saw
        assert saw >= expected
    else:
        assert expected in json.dumps(saw, ensure_ascii=False)


@pytest.mark.parametrize("server", SERVERS)
def test_a_cancelled_call_is_recorded_as_such_and_nothing_is_left_of_it(
    seen: dict[tuple[str, str], dict[str, Any]], before: int, matrix: Gateway, server: str
) -> None:
    calls = [each for each in _recorded(matrix)[before:] if each["server"] == server]
    tool = SERVERS[server]["cancel"][0]
    assert [each["tool"] for each in calls if each["outcome"] == "cancelled"] == [tool]
    eventually(lambda: _in_flight(matrix, server) == 0, what="no call to be in flight")


def _recorded(gateway: Gateway) -> list[dict[str, Any]]:
    file = gateway.file.parent / CALLS
    return [json.loads(line) for line in file.read_text().splitlines()]


def _in_flight(gateway: Gateway, server: str) -> float:
    line = f'onegate_calls_in_flight{{server="{server}"}} '
    found = [each for each in gateway.page("/metrics").splitlines() if each.startswith(line)]
    return float(found[0].removeprefix(line))
