"""A request that is held, and whole requests as bytes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.eras.sides import Answer, Posted, Reply
from tests.edge.serving import OK, FakeEntrance, Raw, Served, connected, head, progress, serving

BOTH = pytest.mark.parametrize("direct", [True, False], ids=["direct", "handled"])
"""With and without aiohttp's handler."""


@dataclass
class Held:
    """An entrance's `post` that holds one request until told, and answers all others."""

    says: int = 0
    ends_with_client: bool = False
    answer: Answer = OK
    started: asyncio.Event = field(default_factory=asyncio.Event)
    finish: asyncio.Event = field(default_factory=asyncio.Event)
    ended: list[str] = field(default_factory=list)

    async def __call__(self, posted: Posted, reply: Reply) -> Answer:
        if posted.body != b'"held"':
            return OK
        if self.ends_with_client:
            reply.end_with_client()
        for number in range(self.says):
            reply.push(progress(number))
        self.started.set()
        try:
            await self.finish.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("finished")
        return self.answer


@asynccontextmanager
async def holding(work: Held, **setting: Any) -> AsyncIterator[tuple[Served, Raw]]:
    """A client whose request is being held."""
    async with serving(FakeEntrance(work), **setting) as served, connected(served) as client:
        client.post(b'"held"')
        await work.started.wait()
        yield served, client


def post(served: Served, body: bytes = b"{}", **headers: str) -> bytes:
    usual = {
        "Host": f"127.0.0.1:{served.port}",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
    }
    return head("POST", "/mcp", usual | headers) + body
