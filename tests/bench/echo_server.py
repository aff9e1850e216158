"""The same as echo_server.c for machines without a C compiler: slower, standard library only."""

import heapq
import json
import os
import select
import time
from typing import Any

REVISIONS = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}
MODERN = "2026-07-28"
LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-+"
Json = dict[str, Any]


def tool(name: str, description: str, needed: str, **properties: Json) -> Json:
    schema = {"type": "object", "properties": properties, "required": [needed]}
    return {"name": name, "description": description, "inputSchema": schema}


def described(kind: str, description: str, **more: object) -> Json:
    return {"type": kind, "description": description, **more}


def filler(number: int) -> Json:
    return tool(
        f"tool_{number:03}",
        f"Filler tool {number}: searches the records of the project for entries that match a "
        "query and returns the best of them in order.",
        "query",
        query=described("string", "What to look for"),
        limit=described("integer", "How many entries at most", default=10),
        include_archived=described("boolean", "Search archived records too"),
    )


class EchoServer:
    """Answers requests; a `sleep` is a timer, so that no call waits for another."""

    def __init__(self, name: str, tools: int, dual: bool) -> None:
        self.info = {"name": name, "version": "1.0.0"}
        self.dual = dual
        self.tools = [
            tool(
                "echo",
                "Returns the given text unchanged.",
                "text",
                text=described("string", "Text to return"),
            ),
            tool(
                "sleep",
                "Answers after the given number of milliseconds.",
                "ms",
                ms=described("integer", "Milliseconds"),
            ),
            tool(
                "blob",
                "Returns a text of the given number of KiB.",
                "kib",
                kib=described("integer", "KiB"),
            ),
            *(filler(number) for number in range(3, tools)),
        ]
        self.timers: list[tuple[float, int, Json]] = []
        self.started = 0

    def answer(self, message: Json) -> Json | None:
        """The answer, or None for a notification and for what is answered later."""
        if "id" not in message or "method" not in message:
            return None
        params = message.get("params") or {}
        meta = params.get("_meta") or {}
        modern = self.dual and "io.modelcontextprotocol/protocolVersion" in meta
        end = self.end(message["method"], params, modern, message["id"])
        return end and {"jsonrpc": "2.0", "id": message["id"], **end}

    def end(self, method: str, params: Json, modern: bool, number: object) -> Json | None:
        mark = {"resultType": "complete"} if modern else {}
        cached = {"ttlMs": 60000, "cacheScope": "public"}
        match method:
            case "tools/call":
                return self.call(params, mark, number)
            case "tools/list":
                return {"result": {**mark, "tools": self.tools, **(cached if modern else {})}}
            case "initialize":
                wanted = params.get("protocolVersion")
                revision = wanted if wanted in REVISIONS else "2025-06-18"
                about = {"capabilities": {"tools": {}}, "serverInfo": self.info}
                return {"result": {"protocolVersion": revision, **about}}
            case "ping":
                return {"result": {}}
            case "server/discover" if self.dual:
                about = {"_meta": {"io.modelcontextprotocol/serverInfo": self.info}}
                versions = [MODERN, "2025-11-25", "2025-06-18"]
                offer = {"supportedVersions": versions, "capabilities": {"tools": {}}}
                return {"result": {"resultType": "complete", **offer, **about, **cached}}
        return {"error": {"code": -32601, "message": "Method not found"}}

    def call(self, params: Json, mark: Json, number: object) -> Json | None:
        arguments = params.get("arguments") or {}
        match str(params.get("name")):
            case "echo":
                return text(arguments.get("text", ""), mark)
            case "blob":
                return text(LETTERS * (16 * int(arguments.get("kib", 1))), mark)
            case "sleep":
                ms = int(arguments.get("ms", 0))
                self.started += 1
                later = {"jsonrpc": "2.0", "id": number, **text(f"slept {ms}", mark)}
                due = time.monotonic() + ms / 1000
                heapq.heappush(self.timers, (due, self.started, later))
                return None
            case name if name.startswith("tool_"):
                return text("ok", mark)
        return {"error": {"code": -32602, "message": "Unknown tool"}}

    def due(self) -> list[Json]:
        """The answers of timers that have run out."""
        ready = []
        while self.timers and self.timers[0][0] <= time.monotonic():
            ready.append(heapq.heappop(self.timers)[2])
        return ready

    def wait_ms(self) -> int | None:
        if not self.timers:
            return None
        return max(0, int((self.timers[0][0] - time.monotonic()) * 1000 + 0.999))


def text(words: str, mark: Json) -> Json:
    return {"result": {**mark, "content": [{"type": "text", "text": words}], "isError": False}}


def write(messages: list[Json]) -> None:
    lines = [json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in messages]
    data = memoryview("".join(f"{line}\n" for line in lines).encode())
    while data:
        data = data[os.write(1, data) :]


def main() -> None:
    time.sleep(int(os.environ.get("ECHO_START_MS", "0")) / 1000)
    tools = int(os.environ.get("ECHO_TOOLS", "3"))
    dual = os.environ.get("ECHO_ERA") == "dual"
    server = EchoServer(os.environ.get("ECHO_NAME", "echo"), tools, dual)
    poll, buffer = select.poll(), b""
    poll.register(0, select.POLLIN)
    while True:
        readable = poll.poll(server.wait_ms())
        answers = server.due()
        if readable:
            chunk = os.read(0, 1 << 18)
            if not chunk:
                return
            *lines, buffer = (buffer + chunk).split(b"\n")
            ended = (server.answer(json.loads(line)) for line in lines if line.strip())
            answers += [each for each in ended if each]
        write(answers)


if __name__ == "__main__":
    main()
