"""The load client for HTTP+SSE (2024-11-05), all that some gateways speak.

Requests are posted to the address the stream names, and answered on the stream.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from urllib.parse import urljoin

from tests.bench.answers import Answers
from tests.bench.asking import CLIENT, Asker, Json, Refused, Session, Target, Work, fault
from tests.bench.figures import Figures
from tests.bench.load import DRAIN_S, Run, Window, measured

REVISION = "2024-11-05"
MOST_BYTES = 1 << 26
ID = re.compile(rb'"id":\s*"?(\d+)')
HEAD_END = b"\r\n\r\n"


@dataclass(slots=True)
class Stream:
    """One client: its stream of answers, and where to post."""

    target: Target
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    session: Session = field(default_factory=Session)
    awaited: dict[int, asyncio.Future[bytes]] = field(default_factory=dict)

    async def pump(self, endpoint: asyncio.Future[str]) -> None:
        """Read events until the end of the stream."""
        head = await self.reader.readuntil(HEAD_END)
        if not head.startswith(b"HTTP/1.1 200"):
            raise Refused(f"no stream: {head[:200]!r}")
        is_chunked = b"chunked" in head.lower()
        buffer = bytearray()
        while piece := await self._piece(is_chunked):
            buffer += piece
            while (end := buffer.find(b"\n\n")) >= 0:
                event = bytes(buffer[:end])
                del buffer[: end + 2]
                data = event[event.find(b"data:") + 5 :].strip()
                if event.startswith((b"event: endpoint", b"event:endpoint")):
                    endpoint.set_result(data.decode())
                else:
                    self._arrived(data)

    async def _piece(self, is_chunked: bool) -> bytes:
        if not is_chunked:
            return await self.reader.read(1 << 18)
        size = int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16)
        return (await self.reader.readexactly(size + 2))[:size]

    def _arrived(self, data: bytes) -> None:
        # The id stands at one of the ends; a MiB of text between them is not searched.
        found = ID.search(data[-60:]) or ID.search(data[:2000]) or ID.search(data)
        future = self.awaited.pop(int(found[1]), None) if found else None
        if future is not None and not future.done():
            future.set_result(data)

    def await_answer(self, number: int) -> asyncio.Future[bytes]:
        self.awaited[number] = asyncio.get_running_loop().create_future()
        return self.awaited[number]


class Poster:
    """A connection over which messages are posted, one after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer, self.answers = reader, writer, Answers()

    @classmethod
    async def to(cls, target: Target) -> "Poster":
        return cls(*await asyncio.open_connection(*target.address))

    async def post(self, raw: bytes) -> None:
        self.writer.write(raw)
        while data := await self.reader.read(1 << 16):
            if found := self.answers.feed(data):
                if found[0].status not in (200, 202):
                    raise Refused(f"HTTP {found[0].status}")
                return
        raise ConnectionError("closed in the middle of an answer")


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[tuple[Stream, Poster]]:
    """A client after its handshake."""
    target = Target(url, REVISION)
    reader, writer = await asyncio.open_connection(*target.address, limit=MOST_BYTES)
    stream = Stream(target, reader, writer)
    writer.write(target.head("GET"))
    endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as tasks:
        pump = tasks.create_task(stream.pump(endpoint))
        try:
            async with asyncio.timeout(DRAIN_S):
                stream.target = replace(target, url=urljoin(url, await endpoint))
                poster = await Poster.to(target)
                offer = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": CLIENT}
                await ask(stream, poster, "initialize", offer)
                told = stream.target.request("notifications/initialized", None, None, Session())
                await poster.post(told)
            yield stream, poster
            poster.writer.close()
        finally:
            pump.cancel()
            writer.close()


async def ask(stream: Stream, poster: Poster, method: str, params: Json) -> Json:
    """One request and its result."""
    stream.session.requests += 1
    number = stream.session.requests
    future = stream.await_answer(number)
    await poster.post(stream.target.request(method, params, number, stream.session))
    answer: Json = json.loads(await future)
    if "result" not in answer:
        raise Refused(str(answer)[:300])
    found: Json = answer["result"]
    return found


async def tool_names(url: str) -> list[str]:
    async with opened(url) as (stream, poster), asyncio.timeout(DRAIN_S):
        listed = await ask(stream, poster, "tools/list", {})
        return [each["name"] for each in listed["tools"]]


async def _call_on(run: Run, stream: Stream, asker: Asker) -> None:
    poster = await Poster.to(stream.target)
    while not run.is_over:
        asked = asker.next()
        future = stream.await_answer(int(asked.number))
        at = time.perf_counter()
        try:
            async with asyncio.timeout(DRAIN_S):
                await poster.post(asked.raw)
                body = await future
        except (OSError, TimeoutError, Refused) as error:
            run.fail(repr(error))
            continue
        took = time.perf_counter() - at
        if wrong := fault(run.work, asked, 200, body):
            run.fail(wrong)
        elif run.is_measuring:
            run.figures.latencies_s.append(took)
    poster.writer.close()


async def in_flight(url: str, work: Work, sessions: int, count: int, window: Window) -> Figures:
    """`count` requests at a time, spread over so many streams."""
    run = Run(work)
    async with _all_opened(url, sessions) as streams:
        tokens = [0]
        callers = []
        for number in range(count):
            stream = streams[number % sessions]
            asker = Asker(stream.target, work, stream.session, tokens)
            callers.append(_call_on(run, stream, asker))
        return await measured(run, callers, window)


@asynccontextmanager
async def _all_opened(url: str, count: int) -> AsyncIterator[Sequence[Stream]]:
    if not count:
        yield []
        return
    async with opened(url) as (stream, _), _all_opened(url, count - 1) as others:
        yield [stream, *others]
