"""The gateway that most conversations share, clients of it by era, and what came of them."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.kit.fakes import fake
from tests.kit.gateway import Gateway, running_gateway
from tests.kit.http import Answer, Legacy, Modern, Stream
from tests.kit.processes import ROOT
from tests.kit.waiting import eventually, eventually_async

Message = dict[str, Any]
Client = Legacy | Modern
P = "io.modelcontextprotocol/"

ERAS = ("legacy", "modern")
SERVERS = ("old", "new", "dual")
LEGACY_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

each_era = pytest.mark.parametrize("era", ERAS)
each_server = pytest.mark.parametrize("server", SERVERS)
each_pair = pytest.mark.parametrize(
    ("era", "server"), [(era, server) for era in ERAS for server in SERVERS]
)


@dataclass(frozen=True)
class Gate:
    """A running gateway, what its servers were told, and what it wrote down."""

    gateway: Gateway
    folder: Path

    @property
    def url(self) -> str:
        return self.gateway.url

    def heard(self, server: str) -> list[Message]:
        """Every message this server has read, over all its processes, the oldest first."""
        return _lines(self.folder / f"{server}.heard")

    def records(self) -> list[Message]:
        """The record of calls so far. It is written a moment after a call has ended."""
        return _lines(self.folder / "calls.jsonl")

    def mark(self) -> "Since":
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return Since(
            self, now[:-6], {f.stem: len(self.heard(f.stem)) for f in self.folder.glob("*.heard")}
        )

    def number(self, metric: str) -> float:
        """The sum of a metric's series whose text begins so; 0 if there are none."""
        lines = self.gateway.page("/metrics").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(metric))


@dataclass(frozen=True)
class Since:
    """What happened from one moment on."""

    gate: Gate
    time: str
    """Of the mark, as the record writes it: what ended earlier may be written later."""
    heard_before: Mapping[str, int]

    def heard(self, server: str, method: str | None = None) -> list[Message]:
        news = self.gate.heard(server)[self.heard_before.get(server, 0) :]
        return [each for each in news if method is None or each.get("method") == method]

    def records(self, *, number: int) -> list[Message]:
        """At least so many new records: waits for them."""

        def written() -> list[Message]:
            news = [each for each in self.gate.records() if each["ts"] >= self.time]
            return news if len(news) >= number else []

        return eventually(written, what=f"{number} records")

    async def told(self, server: str, method: str, *, number: int = 1) -> list[Message]:
        """The messages of this method that the server has read since; waits for so many."""

        def read() -> list[Message] | None:
            found = self.heard(server, method)
            return found if len(found) >= number else None

        found: list[Message] = await eventually_async(read, what=f"{number} {method} at {server}")
        return found


def _lines(file: Path) -> list[Message]:
    if not file.exists():
        return []
    text = file.read_text()
    whole = text[: text.rfind("\n") + 1]
    return [json.loads(line) for line in whole.splitlines()]


@contextmanager
def opened_gate(folder: Path, servers: Mapping[str, Any], **config: Any) -> Iterator[Gate]:
    """A gateway of a test's own. Servers made by `recorded` can be asked what they heard."""
    told = {"calls": {"path": str(folder / "calls.jsonl")}, **config}
    with running_gateway(folder, servers, **told) as gateway:
        yield Gate(gateway, folder)


def recorded(folder: Path, server: str, *flags: object, **keys: Any) -> Message:
    """A section for a fake server that writes down what it reads."""
    return fake("--record", folder / f"{server}.heard", *flags, **keys)


def everything(era: str, **keys: Any) -> Message:
    """A section for the everything-server, in one era."""
    words = ["-m", "tests.everything.server", "--era", era]
    return {"command": sys.executable, "args": words, "cwd": str(ROOT), "protocol": era, **keys}


def usual_servers(folder: Path) -> dict[str, Any]:
    """One server of each kind: of one era, of the other, of both but one for each process."""
    return {
        "old": recorded(folder, "old", "--era", "legacy", protocol="legacy"),
        "new": recorded(folder, "new", "--era", "modern", protocol="modern"),
        "dual": recorded(folder, "dual", "--lock"),
        "every": everything("modern"),
    }


def exposed(server: str, uri: str) -> str:
    """What the usual servers' URIs are offered as: they all have the same."""
    return uri if server == "old" else f"{server}+{uri}"


@asynccontextmanager
async def client_of(
    era: str, url: str, headers: Mapping[str, str] | None = None
) -> AsyncIterator[Client]:
    """A client of an era, or of one legacy revision; ready to call. Its session ends with it."""
    if era == "modern":
        async with Modern.to(url, headers) as modern:
            yield modern
        return
    async with Legacy.to(url, headers) as legacy:
        await legacy.initialize("2025-11-25" if era == "legacy" else era)
        yield legacy
        if legacy.session:
            await legacy.delete()


@asynccontextmanager
async def begun(client: Client, message: Message) -> AsyncIterator[Stream]:
    """A request on its way, its answer read as it comes; leaving drops the connection."""
    headers = client.routing(message) if isinstance(client, Modern) else {}
    async with client.opened(message, headers) as stream:
        yield stream


def called(client: Client, name: str, id_: Any = None, **params: Any) -> Message:
    """The message of a tool call, not sent yet."""
    told = {"name": name, "arguments": {}, **params}
    return client.message("tools/call", told, id_=id_)


def echoed(answer: Answer) -> Message:
    """What the `echo` tool saw: `arguments` and `meta`."""
    seen: Message = answer.result["structuredContent"]
    return seen


@asynccontextmanager
async def heard_by(stream: Stream) -> AsyncIterator[list[Message]]:
    """What arrives on a stream while the block runs."""
    heard: list[Message] = []

    async def hear() -> None:
        while True:
            heard.append(await stream.message())

    async with asyncio.TaskGroup() as tasks:
        hearing = tasks.create_task(hear())
        yield heard
        hearing.cancel()


async def arrived(heard: list[Message], number: int = 1) -> None:
    """Wait until so many messages are there."""
    await eventually_async(lambda: len(heard) >= number, what=f"{number} messages in {heard}")
