from collections.abc import Iterator

import pytest

from tests.conversations.talking import Gate, opened_gate, recorded, usual_servers


@pytest.fixture(scope="session")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    """A gateway for all conversations that leave it and its servers as they were."""
    folder = tmp_path_factory.mktemp("conversations")
    with opened_gate(folder, usual_servers(folder)) as gate:
        gate.gateway.wait_tools("old__echo", "new__echo", "dual__echo", "every__test_simple_text")
        yield gate


@pytest.fixture(scope="session")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    """A gateway with rules and narrow bounds, and with servers that come to harm: `fragile` may
    crash, `mute` answers nothing from the first test on that says so."""
    folder = tmp_path_factory.mktemp("strict")
    rules = [
        {"match": "fragile__sleep", "timeout": "300ms"},
        {"match": "*__rich", "decision": "deny"},
        {"match": "fragile__hang", "concurrency": 1, "queue": 0},
    ]
    servers = {
        "one": recorded(folder, "one", "--lock"),
        "two": recorded(folder, "two", protocol="legacy", concurrency=1),
        "fragile": recorded(folder, "fragile", "--lock"),
        "mute": recorded(folder, "mute", protocol="legacy", stop_grace="200ms"),
    }
    limits = {"line": "256KiB", "body": "64KiB"}
    with opened_gate(folder, servers, tools=rules, limits=limits) as gate:
        gate.gateway.wait_tools(*(f"{server}__echo" for server in servers))
        yield gate
