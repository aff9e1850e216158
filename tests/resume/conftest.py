from collections.abc import Iterator

import pytest

from tests.conversations.talking import Gate, opened_gate, recorded


@pytest.fixture(scope="session")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    """A gateway whose streams break and are resumed; its clients are told apart by token."""
    folder = tmp_path_factory.mktemp("resume")
    servers = {"old": recorded(folder, "old", "--era", "legacy", protocol="legacy")}
    with opened_gate(folder, servers) as gate:
        gate.gateway.wait_tools("old__echo")
        yield gate
