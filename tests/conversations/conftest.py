from collections.abc import Iterator

import pytest

from tests.conversations.talking import Gate, opened_gate, usual_servers


@pytest.fixture(scope="session")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    """A gateway for all conversations that leave it and its servers as they were."""
    folder = tmp_path_factory.mktemp("conversations")
    with opened_gate(folder, usual_servers(folder)) as gate:
        gate.gateway.wait_tools("old__echo", "new__echo", "dual__echo", "every__test_simple_text")
        yield gate
