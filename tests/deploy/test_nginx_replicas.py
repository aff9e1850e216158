"""Two gateways behind a real nginx, on the shipped site: sessions stay where they were opened."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.nginx import NAME, Proxy, nginx
from tests.kit.fakes import fake
from tests.kit.gateway import Gateway, running_gateway, stop
from tests.kit.http import Legacy, Modern
from tests.kit.waiting import run

pytestmark = pytest.mark.timeout(180)
A, B = "127.0.0.1:8765", "127.0.0.1:8775"
SERVERS = {"demo": fake("--only", "whoami,add_tool,ask", "--era", "legacy")}
CALLERS = [{"Authorization": f"Bearer {name}"} for name in "abcdefghijklmnop"]
"""So many that with any two addresses some go to each replica. (All the same would be one in
2^15.)"""


@dataclass(frozen=True, slots=True)
class Pair:
    proxy: Proxy
    a: Gateway
    b: Gateway

    def replica(self, pid: int) -> str:
        """The mark of the replica that a server's process belongs to."""
        (mark,) = (mark for mark, one in (("a-", self.a), ("b-", self.b))
                   if pid in one.server_pids())  # fmt: skip
        return mark


@contextmanager
def two_replicas(folder: Path) -> Iterator[Pair]:
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    with (
        running_gateway(folder / "a", SERVERS, allowed_hosts=[NAME]) as a,
        running_gateway(folder / "b", SERVERS, allowed_hosts=[NAME]) as b,
    ):
        for one in (a, b):
            one.wait_tools("demo__whoami")
        with nginx(folder, "onegate-replicas.conf", {A: a, B: b}) as proxy:
            yield Pair(proxy, a, b)


async def home(client: Legacy | Modern) -> int:
    """The pid of the server's process that the client's calls reach."""
    answer = await client.call("demo__whoami")
    return int(json.loads(answer.text)["pid"])


def test_sessions_stay_on_the_replica_that_opened_them_and_both_replicas_get_some(
    tmp_path: Path,
) -> None:
    async def marks(pair: Pair) -> set[str]:
        seen = set[str]()
        for caller in CALLERS:
            async with pair.proxy.client(Legacy, caller) as client:
                await client.initialize()
                assert client.session is not None
                # Whatever else tells clients apart: a laptop's address changes, say.
                pids = set[int]()
                for other in CALLERS[:8]:
                    client.headers |= other
                    pids.add(await home(client))
                assert [pair.replica(pid) for pid in pids] == [client.session[:2]]
                seen.add(client.session[:2])
                assert await client.delete() in (200, 204)
                assert (await client.request("tools/list")).status == 404
        return seen

    with two_replicas(tmp_path) as pair:
        assert run(marks(pair), within_s=90) == {"a-", "b-"}


def test_a_session_hears_what_happens_on_its_own_replica(tmp_path: Path) -> None:
    async def converse(pair: Pair) -> None:
        for caller in CALLERS[:6]:
            async with (
                pair.proxy.client(Legacy, caller) as client,
                pair.proxy.client(Legacy, caller) as listener,
            ):
                await client.initialize()
                listener.headers |= {
                    key: client.headers[key] for key in ("Mcp-Session-Id", "MCP-Protocol-Version")
                }
                async with listener.listening() as stream:
                    name = f"for_{caller['Authorization'][-1]}"
                    await client.call("demo__add_tool", {"name": name})
                    told = await stream.message()
                    assert told["method"] == "notifications/tools/list_changed"
                    await client.delete()  # ends the stream

    with two_replicas(tmp_path) as pair:
        run(converse(pair), within_s=90)


def test_a_modern_client_comes_back_to_where_its_call_waits_for_an_answer(tmp_path: Path) -> None:
    """The server asks in the middle of its call, in the older way: the call is kept open at one
    replica, and only there can the client's answer be put in."""
    question = {"message": "sure?", "requestedSchema": {"type": "object", "properties": {}}}
    arguments = {"method": "elicitation/create", "params": question}

    async def converse(pair: Pair) -> None:
        for caller in CALLERS:
            async with pair.proxy.client(Modern, caller) as client:
                client.envelope.capabilities = {"elicitation": {}}
                asked = (await client.call("demo__ask", arguments)).result
                assert asked["resultType"] == "input_required", asked
                answers = {key: {"action": "decline"} for key in asked["inputRequests"]}
                more = {"inputResponses": answers, "requestState": asked["requestState"]}
                done = await client.call("demo__ask", arguments, **more)
                assert json.loads(done.text)["result"] == {"action": "decline"}

    with two_replicas(tmp_path) as pair:
        run(converse(pair), within_s=90)


def test_when_a_replica_stops_its_sessions_are_told_to_open_new_ones(tmp_path: Path) -> None:
    async def converse(pair: Pair) -> None:
        async with pair.proxy.client(Legacy) as client:
            await client.initialize()
            assert client.session is not None
            lost, left = (pair.a, "b-") if client.session[:2] == "a-" else (pair.b, "a-")
            stop(lost)
            assert (await client.request("tools/list")).status == 404
            del client.headers["Mcp-Session-Id"]
            await client.initialize()
            assert client.session[:2] == left
            assert pair.replica(await home(client)) == left
        async with pair.proxy.client(Modern) as client:
            assert pair.replica(await home(client)) == left

    with two_replicas(tmp_path) as pair:
        run(converse(pair), within_s=90)


def test_an_id_nobody_gave_out_is_unknown_wherever_it_leads(tmp_path: Path) -> None:
    async def converse(pair: Pair) -> None:
        for made_up in ("a-made-up", "b-made-up", "c-made-up", "made-up", "a-", "-"):
            async with pair.proxy.client(Legacy, {"Mcp-Session-Id": made_up}) as client:
                assert (await client.request("tools/list")).status in (400, 404)

    with two_replicas(tmp_path) as pair:
        run(converse(pair), within_s=90)
