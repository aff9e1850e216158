from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.fakes import fake
from tests.kit.gateway import Gateway, running_gateway
from tests.stdio.talking import Speaker, speaking

TOOLS_WITH_HEADERS = """[{"name": "routed", "inputSchema": {"type": "object", "properties": {
    "region": {"type": "string", "x-mcp-header": "Region"}}}}]"""


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that stays as it is: a server of each era, and one that wants headers."""
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "tools.json").write_text(TOOLS_WITH_HEADERS)
    servers = {
        "old": fake("--era", "legacy", "--record", folder / "old.jsonl"),
        "new": fake("--era", "modern", "--record", folder / "new.jsonl"),
        "mapped": fake("--era", "modern", "--tools-file", folder / "tools.json"),
    }
    with running_gateway(folder, servers) as started:
        started.wait_tools("old__echo", "new__echo", "mapped__routed")
        yield started


@pytest.fixture
def client(gateway: Gateway, tmp_path: Path) -> Iterator[Speaker]:
    """A client in front of it."""
    with speaking(tmp_path, "--url", gateway.url) as speaker:
        yield speaker
