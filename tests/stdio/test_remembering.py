"""What is kept on disk of a gateway that is away: shared by clients, and never trusted blindly."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.fakes import fake
from tests.kit.ports import free_port
from tests.kit.waiting import eventually
from tests.stdio.talking import gateway_at, speaking, url_of

LISTED = "2025-11-25 tools/list"


def kept_in(folder: Path) -> Path | None:
    return next(iter((folder / "bridged" / "bridge").glob("*.json")), None)


def of(**results: object) -> bytes:
    return json.dumps({"format": 1, "results": results}).encode()


@pytest.mark.parametrize(
    "damage",
    [
        lambda good: good[:-50],
        lambda good: good.replace(b"echo", b"\xff\xfeho"),
        lambda good: of(**{LISTED: {"tools": 5}, "2025-11-25 initialize": {"capabilities": 3}}),
        lambda good: of(**{LISTED: 5, "2025-11-25 initialize": [], "x": {}}),
        lambda good: good.replace(b'"format":1', b'"format":2'),
        lambda good: b"[1]",
    ],
    ids=["cut", "not UTF-8", "foreign", "no objects", "another format", "no mapping"],
)
def test_a_damaged_file_is_as_good_as_none(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    port = free_port()
    with (
        gateway_at(tmp_path, port, {"old": fake()}) as gateway,
        speaking(tmp_path, "--url", url_of(port)) as client,
    ):
        gateway.wait_tools("old__echo")
        client.initialize()
        client.tool_names()
        file = eventually(lambda: kept_in(tmp_path))
        assert file is not None
        eventually(lambda: LISTED.encode() in file.read_bytes())
        client.close()
        client.wait_exit()
    file.write_bytes(damage(file.read_bytes()))

    with speaking(tmp_path, "--url", url_of(port)) as client:
        assert client.initialize()["capabilities"]["tools"] == {"listChanged": True}
        assert client.tool_names() == []
        client.close()
        assert client.wait_exit() == 0


def test_what_clients_at_the_same_time_have_seen_is_kept_of_each(tmp_path: Path) -> None:
    """Both begin before anything is known; the one writes first, the other last."""
    port = free_port()
    with (
        gateway_at(tmp_path, port, {"old": fake()}) as gateway,
        speaking(tmp_path, "--url", url_of(port)) as one,
        speaking(tmp_path, "--url", url_of(port)) as other,
    ):
        gateway.wait_tools("old__echo")
        for client in (one, other):
            client.initialize()
        for client, method in ((one, "tools/list"), (other, "prompts/list")):
            assert client.request(method)["result"]
            client.close()
            client.wait_exit()
    with speaking(tmp_path, "--url", url_of(port)) as client:
        client.initialize()
        assert "old__echo" in client.tool_names()
        assert client.request("prompts/list")["result"]["prompts"]
    assert not list((tmp_path / "bridged").rglob("*.new"))
