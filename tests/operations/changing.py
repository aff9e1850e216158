"""A gateway in the test's own process whose configuration is changed while it runs."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from gateway.app.reload import Reloader
from tests.kit.http import Wire
from tests.servers.gate import Gate, gate

Message = dict[str, Any]


@dataclass(slots=True)
class Changing:
    """`config` is what the file says now; `change` writes and reloads."""

    gate: Gate
    file: Path
    reloader: Reloader
    config: Message = field(default_factory=dict)

    async def change(self, **keys: Any) -> Message:
        """Give these top-level keys other values. What the operator is answered."""
        self.config = {**self.config, **keys}
        return await self.write(json.dumps(self.config, indent=2))

    async def change_server(self, name: str, section: Message) -> Message:
        return await self.change(servers={**self.config["servers"], name: section})

    async def write(self, text: str) -> Message:
        self.file.write_text(text)
        return (await self.reload())[1]

    async def reload(self) -> tuple[int, Message]:
        async with (
            aiohttp.ClientSession() as http,
            http.post(f"{self.gate.admin}/-/reload") as answer,
        ):
            return answer.status, await answer.json()

    async def metric(self, name: str) -> float:
        _, text = await self.gate.page("/metrics")
        (value,) = (line.split()[-1] for line in text.splitlines() if line.startswith(name + " "))
        return float(value)


@asynccontextmanager
async def changing(
    folder: Path, servers: Mapping[str, Any], **config: Any
) -> AsyncIterator[Changing]:
    """A gateway in front of these servers, once all of them are ready."""
    async with gate(folder, servers, **config) as it:
        reloader = Reloader(it.gateway, it.gateway.assembly.environ, folder, look_every_s=0.05)
        it.gateway.operator.reloader = reloader
        file = folder / "onegate.json"
        await it.ready()
        yield Changing(it, file, reloader, json.loads(file.read_text()))


async def who(client: Wire, server: str) -> Message:
    """Which process of a server answers: what its tool `whoami` says."""
    told: Message = json.loads((await client.call(f"{server}__whoami")).text)  # type: ignore[attr-defined]
    return told


async def tool_names(client: Wire) -> list[str]:
    answer = await client.request("tools/list")  # type: ignore[attr-defined]
    return [each["name"] for each in answer.result["tools"]]
