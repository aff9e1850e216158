"""A client that can do no more than write lines to an example server and read lines from it."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.kit.processes import ROOT

PATIENCE_S = 20.0
"""Bound of every wait. Far beyond what an answer takes, for the sake of busy machines."""

P = "io.modelcontextprotocol/"
ENVELOPE = {f"{P}protocolVersion": "2026-07-28", f"{P}clientCapabilities": {}}


class Child:
    """A server process. What it writes is read on a thread, so that each wait can be bounded."""

    def __init__(self, name: str, *, meta: dict[str, Any] | None = None) -> None:
        self.meta = meta
        self._last_id = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"gateway.demo.{name}"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def write(self, line: bytes) -> None:
        assert self._process.stdin
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def send(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def receive(self) -> Any:
        """The next message. Fails if there is none within bounds, or the line is no JSON."""
        return json.loads(self._lines.get(timeout=PATIENCE_S))

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request, and take what comes next as the response to it."""
        self._last_id += 1
        if self.meta is not None:
            params["_meta"] = self.meta
        self.send(id=self._last_id, method=method, params=params)
        response: dict[str, Any] = self.receive()
        assert response.get("id") == self._last_id, response
        return response

    def result(self, method: str, **params: Any) -> dict[str, Any]:
        response = self.ask(method, **params)
        assert "result" in response, response
        found: dict[str, Any] = response["result"]
        return found

    def error(self, method: str, **params: Any) -> dict[str, Any]:
        response = self.ask(method, **params)
        assert "error" in response, response
        found: dict[str, Any] = response["error"]
        return found

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.result("tools/call", name=tool, arguments=arguments)

    def hang_up(self) -> int:
        """Close its input, and wait until it has left. Returns the exit code."""
        assert self._process.stdin
        self._process.stdin.close()
        return self._process.wait(PATIENCE_S)

    @property
    def unread(self) -> list[bytes]:
        """What it wrote and nobody took. Only after `hang_up`."""
        self._reader.join(PATIENCE_S)
        lines = []
        while not self._lines.empty():
            lines.append(self._lines.get())
        return [line for line in lines if line]

    @property
    def complaints(self) -> str:
        """What it wrote to stderr. Only after `hang_up`."""
        assert self._process.stderr
        return self._process.stderr.read().decode()

    def end(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE_S)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream and not stream.closed:
                self._reader.join(PATIENCE_S)
                stream.close()


@contextmanager
def bare(name: str) -> Iterator[Child]:
    """A server nobody has spoken to yet."""
    child = Child(name)
    try:
        yield child
    finally:
        child.end()


@contextmanager
def legacy(name: str, revision: str = "2025-11-25") -> Iterator[Child]:
    """A server after the handshake."""
    with bare(name) as child:
        opened = child.result(
            "initialize",
            protocolVersion=revision,
            capabilities={},
            clientInfo={"name": "test", "version": "0"},
        )
        assert opened["protocolVersion"] == revision
        child.send(method="notifications/initialized")
        yield child


@contextmanager
def modern(name: str) -> Iterator[Child]:
    """A server, and a client whose requests say all there is to know about it."""
    with bare(name) as child:
        child.meta = ENVELOPE
        yield child


ERAS = {"legacy": legacy, "modern": modern}
