"""A client of raw lines for the everything-server: what a test writes is what goes on the pipe."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.kit.processes import ROOT

P = "io.modelcontextprotocol/"
WAIT_S = 20
Message = dict[str, Any]


class Lines:
    """The server's pipe. Messages are kept until somebody asks for one that fits."""

    def __init__(self, process: "subprocess.Popen[str]"):
        self._process = process
        self._arrived: queue.Queue[Message | None] = queue.Queue()
        self._kept: list[Message] = []
        self._last_id = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._arrived.put(json.loads(line))
        self._arrived.put(None)

    def write(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()

    def send(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}))

    def close(self) -> int:
        """Close the server's stdin and wait for its end; its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(WAIT_S)

    def wait(self, **fields: Any) -> Message:
        """The first message, kept or new, whose fields have just these values."""
        for index, message in enumerate(self._kept):
            if _fits(message, fields):
                return self._kept.pop(index)
        while (message := self._arrived.get(timeout=WAIT_S)) is not None:  # type: ignore[assignment]
            if _fits(message, fields):
                return message
            self._kept.append(message)
        raise EOFError(f"The server left without {fields}; kept: {self._kept}")

    def start(self, method: str, **params: Any) -> int:
        """Send a request and return its id."""
        self._last_id += 1
        self.send(id=self._last_id, method=method, params=params)
        return self._last_id

    def ask(self, method: str, **params: Any) -> Message:
        """Send a request and wait for its response, error or not."""
        return self.wait(id=self.start(method, **params))

    def seen(self, method: str) -> list[Message]:
        """The notifications of a method kept so far."""
        return [message for message in self._kept if message.get("method") == method]

    def initialize(
        self, capabilities: Message | None = None, version: str = "2025-11-25"
    ) -> Message:
        answer = self.ask(
            "initialize",
            protocolVersion=version,
            capabilities=capabilities or {},
            clientInfo={"name": "lines", "version": "1"},
        )
        self.send(method="notifications/initialized")
        return answer


def enveloped(capabilities: Message | None = None, **more: Any) -> Message:
    """The `_meta` of a modern request."""
    known = {f"{P}protocolVersion": "2026-07-28", f"{P}clientCapabilities": capabilities or {}}
    return known | more


@contextmanager
def everything(*options: str) -> Iterator[Lines]:
    """A running everything-server, ended with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.everything.server", *options],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    with process:
        try:
            yield Lines(process)
        finally:
            process.kill()


def _fits(message: Message, fields: Message) -> bool:
    return all(
        name in message and message[name] == value and type(message[name]) is type(value)
        for name, value in fields.items()
    )
