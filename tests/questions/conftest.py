from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.gateway import Gateway, running_gateway
from tests.questions.talking import Heard, asker


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("questions")


@pytest.fixture(scope="session")
def gateway(folder: Path) -> Iterator[Gateway]:
    """A gateway for all conversations that leave it as it was; a server of each era behind it."""
    servers = {era: asker(era, "--record", folder / f"{era}.heard") for era in ("legacy", "modern")}
    with running_gateway(folder, servers, calls={"path": str(folder / "calls.jsonl")}) as gateway:
        gateway.wait_tools("legacy__q_who", "modern__q_who")
        yield gateway


@pytest.fixture
def heard(folder: Path, gateway: Gateway) -> Heard:
    """What the legacy server has read."""
    return Heard(folder / "legacy.heard")
