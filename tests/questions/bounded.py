"""A gateway whose bounds of questions are set, and changed, by its configuration."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.kit.http import Answer, Modern
from tests.operations.changing import Changing, changing
from tests.questions.inside import bearer
from tests.questions.talking import Message, asker, client_of, retry_of
from tests.questions.test_parked import WORDS
from tests.servers.gate import failure, model_text


@asynccontextmanager
async def bounded(
    folder: Path, limits: Message | None = None, **config: Any
) -> AsyncIterator[Changing]:
    """A gateway in front of an asking server, unless `config` has other `servers`."""
    servers = config.pop("servers", {"it": asker("legacy")})
    async with changing(folder, servers, limits=limits or {}, **config) as it:
        yield it


@asynccontextmanager
async def modern(it: Changing, token: str | None = None) -> AsyncIterator[Modern]:
    headers = bearer(token) if token else None
    async with client_of("modern", it.gate.url, headers=headers) as client:
        assert isinstance(client, Modern)
        yield client


async def metrics(it: Changing) -> dict[str, float]:
    _, text = await it.gate.page("/metrics")
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


async def events(it: Changing) -> dict[str, float]:
    """What became of parked calls, so far as anything did."""
    begin = 'onegate_parked_events_total{event="'
    found = {k: v for k, v in (await metrics(it)).items() if k.startswith(begin) and v}
    return {name.removeprefix(begin).partition('"')[0]: count for name, count in found.items()}


def refusal(answer: Answer, limit: str) -> str:
    """What the model reads of a call that ended at this bound."""
    text = model_text(answer)
    assert failure(answer)["limit"] == limit
    assert f"`{limit}`" in text
    return text


async def answered(client: Modern, asked: Message, tool: str = "it__q_ask") -> Answer:
    return await client.request("tools/call", {"name": tool, "arguments": WORDS, **retry_of(asked)})
