"""A relay between client and gateway that cuts a connection in the middle of a streamed answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Relay:
    cuts: int = 0
    """How many connections were cut so far."""


@asynccontextmanager
async def relay(own: int, port: int, *, cut_at: bytes, times: int) -> AsyncIterator[Relay]:
    """From port `own` to `port`. Whatever comes is passed on, until these bytes come from the
    gateway: what was before them goes on, and then the connection is gone, without a word.
    Only so many times."""
    state = Relay()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", port)
        serving.add(task := asyncio.current_task())
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_pass_on(reader, outer))
                tasks.create_task(_pass_back(inner, writer, state, cut_at, times))
        except* ConnectionError:
            pass  # one of the two has gone, which is what this is about
        finally:
            for each in (writer, outer):
                each.transport.abort()
            serving.discard(task)

    serving: set[asyncio.Task[None] | None] = set()
    server = await asyncio.start_server(serve, "127.0.0.1", own)
    try:
        yield state
    finally:
        server.close()
        left = [task for task in serving if task is not None]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0)  # what was aborted is closed in the next turn


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()


async def _pass_back(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    state: Relay,
    cut_at: bytes,
    times: int,
) -> None:
    while data := await reader.read(1 << 16):
        at = data.find(cut_at)
        if at >= 0 and state.cuts < times:
            state.cuts += 1
            writer.write(data[:at])
            await writer.drain()
            writer.transport.abort()
            return
        writer.write(data)
        await writer.drain()
    writer.close()
