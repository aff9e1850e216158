"""A gateway in the test's own process: real sockets in front, real child processes behind.

It is composed as the product composes it. Only the waits between two starts are shorter,
so that a test may see many of them, and what it logs is kept as data.
"""

import json
import os
import shlex
from asyncio import TaskGroup
from collections.abc import AsyncIterator, Iterator, Mapping, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import structlog

from gateway.app.compose import compose
from gateway.app.gateway import Gateway
from gateway.config.load import load
from gateway.downstream.backoff import RestartPolicy
from gateway.downstream.server import Downstream
from tests.kit.fakes import fake_argv
from tests.kit.http import Answer, Legacy, Modern
from tests.kit.waiting import eventually_async

Message = dict[str, Any]
Log = list[MutableMapping[str, Any]]

PATIENT = RestartPolicy(first_wait_s=30.0)
"""One look at what comes after an exit."""

BRISK = RestartPolicy(first_wait_s=0.02, longest_wait_s=0.1, exits_allowed=100)
"""Never gives up and hardly waits."""

UP_WITHIN_S = 20.0
"""For a server to start, on a machine that has other things to do."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A gateway that listens."""

    gateway: Gateway
    url: str
    admin: str
    log: Log

    def server(self, name: str = "it") -> Downstream:
        return self.gateway.fleet.servers[name]

    def said(self, event: str) -> Log:
        """What was logged under this event, oldest first."""
        return [entry for entry in self.log if entry["event"] == event]

    async def reports(self) -> dict[str, Message]:
        """`/api/servers`, by name."""
        status, body = await self.page("/api/servers")
        assert status == 200, body
        return {each["name"]: each for each in json.loads(body)["servers"]}

    async def report(self, name: str = "it") -> Message:
        return (await self.reports())[name]

    async def page(self, path: str) -> tuple[int, str]:
        """Status and body of an admin path."""
        async with aiohttp.ClientSession() as http, http.get(f"{self.admin}{path}") as answer:
            return answer.status, await answer.text()

    async def becomes(self, state: str, name: str = "it", within_s: float = UP_WITHIN_S) -> Message:
        """The report of a server once it is in this state."""

        await eventually_async(
            lambda: self.server(name).main.phase == state, within_s, what=f"{name} to be {state}"
        )
        return await self.report(name)

    async def ready(self, *names: str) -> None:
        for name in names or tuple(self.gateway.fleet.servers):
            await self.becomes("ready", name)

    @asynccontextmanager
    async def modern(self) -> AsyncIterator[Modern]:
        async with Modern.to(self.url) as client:
            yield client

    @asynccontextmanager
    async def legacy(self) -> AsyncIterator[Legacy]:
        async with Legacy.to(self.url) as client:
            await client.initialize()
            yield client


@asynccontextmanager
async def gate(
    folder: Path,
    servers: Mapping[str, Any],
    *,
    policy: RestartPolicy = BRISK,
    environ: Mapping[str, str] | None = None,
    **config: Any,
) -> AsyncIterator[Gate]:
    """A gateway in front of these servers, which start as the block does. Its state is kept
    in `folder`, so a second one there finds the first one's."""
    written = {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "servers": dict(servers), **config}
    file = folder / "onegate.json"
    file.write_text(json.dumps(written))
    around = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "ONEGATE_STATE": str(folder / "state"),
        **(environ or {}),
    }
    loaded = load(file, around, folder)
    with kept_log() as log:
        async with TaskGroup() as tasks:
            gateway = compose(loaded, around, tasks)
            for server in gateway.fleet.servers.values():
                server.policy = policy
            gateway.watch_over()
            gateway.fleet.start()
            try:
                await gateway.listen()
                yield Gate(
                    gateway,
                    f"http://{gateway.listening[0]}/mcp",
                    f"http://{gateway.admin}",
                    log,
                )
            finally:
                await gateway.stop()


@contextmanager
def kept_log() -> Iterator[Log]:
    with structlog.testing.capture_logs() as entries:
        yield entries


def model_text(answer: Answer) -> str:
    """What the model reads of a call that failed."""
    assert answer.result["isError"] is True, answer.result
    return answer.text


def failure(answer: Answer) -> Message:
    """The gateway's own account of a failed call."""
    return dict(answer.result["_meta"]["onegate/error"])


def starts(file: Path) -> list[int]:
    """Pids that a fake server with `--starts` has written down."""
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def alive(pids: list[int]) -> list[int]:
    """Those that still run; a zombie counts: somebody has to wait for it."""
    return [pid for pid in pids if psutil.pid_exists(pid)]


def scripted(folder: Path, *flags: object, before: str = ":", **keys: Any) -> dict[str, Any]:
    """The fake server behind a shell script, so that what is started can change while the
    configuration stays the same. `before` is what the shell does first."""
    script = folder / "server.sh"
    command = shlex.join(fake_argv(*flags))
    script.write_text(f"{before}\nexec {command}\n")
    return {"command": "/bin/sh", "args": [str(script)], **keys}


async def remembered(it: Gate, name: str = "it") -> dict[str, Any]:
    """What is on disk about a server, once it is."""

    def found() -> dict[str, Any] | None:
        server = it.server(name)
        assert server.memory.folder is not None
        file = server.memory.folder / "servers" / f"{server.key}.json"
        return dict(json.loads(file.read_bytes())) if file.exists() else None

    return dict(await eventually_async(found, what=f"{name} to be remembered"))
