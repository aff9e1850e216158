"""The kit's gateway and clients work together: what every test over real HTTP leans on."""

from pathlib import Path

import pytest

from tests.kit.fakes import fake
from tests.kit.gateway import running_gateway
from tests.kit.http import Legacy, Modern, raw_http
from tests.kit.processes import is_alive
from tests.kit.waiting import eventually, run

SERVERS = {"demo": fake("--only", "echo,progress,add_tool,crash")}


def test_a_client_of_each_era_lists_and_calls(tmp_path: Path) -> None:
    async def converse(url: str) -> None:
        async with Modern.to(url) as client:
            assert (await client.call("demo__echo", {"text": "modern"})).text == "modern"
        async with Legacy.to(url) as client:
            await client.initialize()
            assert (await client.call("demo__echo", {"text": "legacy"})).text == "legacy"
            assert await client.delete() in (200, 204)

    with running_gateway(tmp_path, SERVERS) as gateway:
        gateway.wait_tools("demo__echo")
        run(converse(gateway.url))


def test_progress_comes_while_the_call_runs(tmp_path: Path) -> None:
    async def converse(url: str) -> list[object]:
        async with Modern.to(url) as client:
            told = {"_meta": {"progressToken": "mine"}}
            answer = await client.call("demo__progress", {"steps": 2}, **told)
            return [each["params"]["progressToken"] for each in answer.notices]

    with running_gateway(tmp_path, SERVERS) as gateway:
        gateway.wait_tools("demo__progress")
        assert run(converse(gateway.url)) == ["mine", "mine"]


def test_a_change_reaches_listeners_of_both_eras(tmp_path: Path) -> None:
    async def converse(url: str) -> None:
        async with Modern.to(url) as modern, Legacy.to(url) as legacy:
            await legacy.initialize()
            async with modern.listening(toolsListChanged=True) as new, legacy.listening() as old:
                await modern.call("demo__add_tool", {"name": "fresh"})
                for stream in (new, old):
                    told = await stream.message()
                    assert told["method"] == "notifications/tools/list_changed"

    with running_gateway(tmp_path, SERVERS) as gateway:
        gateway.wait_tools("demo__add_tool")
        run(converse(gateway.url))


def test_malformed_http_is_answered_and_the_gateway_lives_on(tmp_path: Path) -> None:
    with running_gateway(tmp_path, SERVERS) as gateway:
        gateway.wait_tools("demo__echo")
        assert raw_http(*gateway.host_port, b"NONSENSE\r\n\r\n").startswith(b"HTTP/1.")
        assert gateway.status("/livez") == 200


def test_stopping_takes_the_servers_along(tmp_path: Path) -> None:
    with running_gateway(tmp_path, {"demo": fake("--stubborn", stop_grace="200ms")}) as gateway:
        gateway.wait_tools("demo__echo")
        pids = gateway.server_pids()
        assert pids
    assert not any(map(is_alive, pids))


@pytest.mark.parametrize("flags", [(), ("--start-delay", 30), ("--stubborn", "--start-delay", 30)])
def test_a_gateway_can_be_stopped_while_its_servers_start(
    tmp_path: Path, flags: tuple[object, ...]
) -> None:
    with running_gateway(tmp_path, {"demo": fake(*flags, stop_grace="200ms")}, wait="/livez") as it:
        eventually(it.server_pids)


def test_a_gateway_that_cannot_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match="the gateway left"),
        running_gateway(tmp_path, {}, no_such_key=1),
    ):
        eventually(lambda: False, 0)
