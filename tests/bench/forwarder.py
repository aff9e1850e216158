"""The floors: the smallest forwarder that can be, and aiohttp answering a constant.

The forwarder passes the body of a call over the pipe of its server and back, under an id of its own
and with the server's name taken off the tool's. It keeps no sessions, relays nothing, bounds
nothing and writes nothing down: no gateway, but what a gateway on aiohttp can't be faster than.

`python forwarder.py PORT SERVERS.json`, or `python forwarder.py PORT` for the constant.
"""

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from aiohttp import web

JSON_HEADERS = {"Content-Type": "application/json"}
PIPE_BYTES = 1 << 20
SET_PIPE_SIZE = 1031
INIT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "forwarder", "version": "1"},
}
CONSTANT = (
    b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}],'
    b'"isError":false}}'
)


class Request(msgspec.Struct):
    method: str
    id: int | str | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")


class Call(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class Sent(msgspec.Struct):
    jsonrpc: str
    id: int
    method: str
    params: Call | dict[str, Any]


class Answer(msgspec.Struct, omit_defaults=True):
    jsonrpc: str = ""
    id: int | str | None = None
    method: str = ""
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


encode = msgspec.json.Encoder().encode
read_request = msgspec.json.Decoder(Request).decode
read_call = msgspec.json.Decoder(Call).decode
read_answer = msgspec.json.Decoder(Answer).decode


def spawn(section: Mapping[str, Any]) -> subprocess.Popen[bytes]:
    argv = [section["command"], *section["args"]]
    environment, pipe = {**os.environ, **section["env"]}, subprocess.PIPE
    return subprocess.Popen(argv, stdin=pipe, stdout=pipe, bufsize=0, env=environment)


class Server(asyncio.Protocol):
    """Both ends of one server's pipes."""

    def __init__(self) -> None:
        self.pending: dict[int | str | None, asyncio.Future[Answer]] = {}
        self._parts: list[bytes] = []
        self._calls = 0

    async def start(self, section: Mapping[str, Any]) -> None:
        self.process = spawn(section)
        loop = asyncio.get_running_loop()
        for end in (self.process.stdin, self.process.stdout):
            if end is not None and sys.platform == "linux":
                fcntl.fcntl(end, SET_PIPE_SIZE, PIPE_BYTES)
        await loop.connect_read_pipe(lambda: self, self.process.stdout)
        self.writer, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, self.process.stdin)
        offer = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}}
        await self.ask("initialize", offer)
        self.writer.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def ask(self, method: str, params: Call | dict[str, Any]) -> asyncio.Future[Answer]:
        self._calls += 1
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.pending[self._calls] = future
        self.writer.write(encode(Sent("2.0", self._calls, method, params)) + b"\n")
        return future

    def data_received(self, data: bytes) -> None:
        if b"\n" not in data:
            self._parts.append(data)
            return
        if self._parts:
            data = b"".join([*self._parts, data])
            self._parts.clear()
        *lines, rest = data.split(b"\n")
        if rest:
            self._parts.append(rest)
        for line in lines:
            answer = read_answer(line)
            future = self.pending.pop(answer.id, None)
            if future is not None and not future.done():
                future.set_result(answer)


class Forwarder:
    """The handler: the servers' lists are asked for once, a call goes to its server."""

    def __init__(self, servers: Mapping[str, Server]) -> None:
        self.servers = servers
        self.list: bytes | None = None

    async def answer(self, http: web.Request) -> web.StreamResponse:
        request = read_request(await http.read())
        if request.method == "tools/call":
            call = read_call(request.params)
            server, _, call.name = call.name.partition("__")
            answer = await self.servers[server].ask("tools/call", call)
            answer.id = request.id
            return web.Response(body=encode(answer), headers=JSON_HEADERS)
        if request.id is None:
            return web.Response(status=202)
        if request.method == "initialize":
            headers = {**JSON_HEADERS, "Mcp-Session-Id": uuid.uuid4().hex}
            return web.Response(body=self.result(request, encode(INIT)), headers=headers)
        self.list = self.list or encode({"tools": await self.tools()})
        return web.Response(body=self.result(request, self.list), headers=JSON_HEADERS)

    def result(self, request: Request, result: bytes) -> bytes:
        return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (encode(request.id), result)

    async def tools(self) -> list[dict[str, Any]]:
        asked = {name: server.ask("tools/list", {}) for name, server in self.servers.items()}
        return [
            {**tool, "name": f"{name}__{tool['name']}"}
            for name, answer in asked.items()
            for tool in msgspec.json.decode((await answer).result or b"")["tools"]
        ]


async def answer_constant(http: web.Request) -> web.StreamResponse:
    await http.read()
    return web.Response(body=CONSTANT, headers=JSON_HEADERS)


async def serve(port: int, sections: Mapping[str, Any]) -> None:
    servers = {name: Server() for name in sections}
    await asyncio.gather(*(servers[name].start(sections[name]) for name in sections))
    app = web.Application()
    app.router.add_post("/mcp", Forwarder(servers).answer if servers else answer_constant)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    for each in servers.values():
        each.process.terminate()
    await runner.cleanup()


def main() -> None:
    port, *files = sys.argv[1:]
    sections = json.loads(Path(files[0]).read_text())["mcpServers"] if files else {}
    uvloop.run(serve(int(port), sections))


if __name__ == "__main__":
    main()
