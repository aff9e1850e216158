"""Streams read event by event, and left in the middle."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.kit.http import Legacy, Stream
from tests.kit.sse import Event

Message = dict[str, Any]


@dataclass(slots=True)
class Seen:
    """What a client has seen of one stream."""

    events: list[Event] = field(default_factory=list)

    @property
    def last_id(self) -> str:
        return [each.id for each in self.events if each.id][-1] or ""

    @property
    def data(self) -> list[str]:
        return [each.data for each in self.events if each.data]

    @property
    def ids(self) -> list[str]:
        """Of events with a message; the first event without one has an id of its own."""
        return [str(each.id) for each in self.events if each.data]


async def read_events(stream: Stream, count: int | None = None) -> Seen:
    """The next `count` events with a message, and whatever comes between; None: to the end."""
    seen = Seen()
    async for event in stream.events:
        if event.comment is None:
            seen.events.append(event)
        if count is not None and len(seen.data) >= count:
            break
    return seen


@asynccontextmanager
async def session_of(
    url: str, revision: str = "2025-11-25", headers: dict[str, str] | None = None
) -> AsyncIterator[Legacy]:
    async with Legacy.to(url, headers) as client:
        await client.initialize(revision)
        yield client


def long_call(client: Legacy, steps: int = 8, ms: int = 40) -> Message:
    """A call with so many reports of progress before its answer."""
    params = {
        "name": "old__progress",
        "arguments": {"steps": steps, "ms": ms},
        "_meta": {"progressToken": "p"},
    }
    return client.message("tools/call", params)


async def broken_off(client: Legacy, message: Message, after: int) -> Seen:
    """Send it, read so many events with a message, and lose the connection."""
    async with client.opened(message) as stream:
        seen = await read_events(stream, after)
        stream.response.close()
    return seen


async def resumed(client: Legacy, last_id: str, count: int | None = None) -> Seen:
    async with client.listening(last_id) as stream:
        return await read_events(stream, count)
