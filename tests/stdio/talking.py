"""A client that starts `onegate stdio` and talks to it over pipes, in either era."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.kit.gateway import Gateway, running_gateway
from tests.kit.http import MODERN, Envelope, Message
from tests.kit.processes import ROOT, kill_tree
from tests.kit.waiting import eventually

WAIT_S = 20.0
"""For what has no bound of its own: CI machines are slow."""


class Speaker:
    """Writes messages; keeps every line that comes back."""

    def __init__(self, process: "subprocess.Popen[bytes]", errors: Path) -> None:
        self.process = process
        self.lines: list[bytes] = []
        self.envelope = Envelope()
        self._errors = errors
        self._next_id = 0
        self._reads = threading.Event()
        self._reads.set()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    # --- what it says ---

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: object) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def begin(self, method: str, params: Message | None = None, id_: Any = None) -> Any:
        """Send a legacy request. Returns its id."""
        self._next_id += 1
        id_ = self._next_id if id_ is None else id_
        self.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}})
        return id_

    def begin_modern(self, method: str, params: Message | None = None, id_: Any = None) -> Any:
        told = dict(params or {})
        told["_meta"] = {**self.envelope.meta(), **told.get("_meta", {})}
        return self.begin(method, told, id_)

    def notify(self, method: str, params: Message | None = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def request(self, method: str, params: Message | None = None) -> Message:
        return self.answer(self.begin(method, params))

    def request_modern(self, method: str, params: Message | None = None) -> Message:
        return self.answer(self.begin_modern(method, params))

    def initialize(self, version: str = "2025-11-25", **capabilities: Any) -> Message:
        """Returns the result; says `initialized`."""
        told = {
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "speaker", "version": "1"},
        }
        result: Message = self.request("initialize", told)["result"]
        self.notify("notifications/initialized")
        return result

    def call(self, name: str, arguments: Message | None = None, **params: Any) -> Message:
        """The result of a legacy call."""
        told = {"name": name, "arguments": arguments or {}, **params}
        result: Message = self.request("tools/call", told)["result"]
        return result

    def call_modern(self, name: str, arguments: Message | None = None, **params: Any) -> Message:
        told = {"name": name, "arguments": arguments or {}, **params}
        result: Message = self.request_modern("tools/call", told)["result"]
        return result

    def tool_names(self) -> list[str]:
        return [each["name"] for each in self.request("tools/list")["result"]["tools"]]

    # --- what it hears ---

    @property
    def heard(self) -> list[Message]:
        return [json.loads(line) for line in tuple(self.lines)]

    @property
    def errors(self) -> str:
        """What the program has written to stderr."""
        return self._errors.read_text(errors="replace")

    def answer(self, id_: Any, within_s: float = WAIT_S) -> Message:
        return self.hear(lambda m: m.get("id") == id_ and "method" not in m, within_s)

    def notice(self, method: str, since: int = 0) -> Message:
        """The first message of this method from the `since`-th line on."""
        return self.hear(lambda m: m.get("method") == method, since=since)

    def hear(
        self, fits: Callable[[Message], bool], within_s: float = WAIT_S, since: int = 0
    ) -> Message:
        def found() -> Message | None:
            return next((m for m in self.heard[since:] if fits(m)), None)

        message = eventually(found, within_s, what=f"a message among {self.lines[-5:]}")
        assert message is not None
        return message

    def stop_reading(self) -> None:
        self._reads.clear()

    def go_on_reading(self) -> None:
        self._reads.set()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            self._reads.wait()

    # --- the end ---

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait_exit(self, within_s: float = WAIT_S) -> int:
        code = self.process.wait(within_s)
        self._thread.join(within_s)
        return code


@contextmanager
def speaking(folder: Path, *words: str, env: Mapping[str, str] | None = None) -> Iterator[Speaker]:
    """`onegate stdio` with these words, state kept in `folder`; killed at the end."""
    errors = folder / "stdio.log"
    clean = {key: text for key, text in os.environ.items() if not key.startswith("ONEGATE_")}
    with errors.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "stdio", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
            env={**clean, "ONEGATE_STATE": str(folder / "bridged"), **(env or {})},
            start_new_session=True,
        )
    speaker = Speaker(process, errors)
    try:
        yield speaker
    finally:
        kill_tree(process.pid)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


@contextmanager
def gateway_at(
    folder: Path, port: int, servers: Mapping[str, Any], **config: Any
) -> Iterator[Gateway]:
    """A gateway at a port known before: so that it can come back."""
    with running_gateway(folder, servers, listen=f"127.0.0.1:{port}", **config) as gateway:
        yield replace(gateway, url=url_of(port))


def url_of(port: int) -> str:
    return f"http://127.0.0.1:{port}/mcp"


def sessions(gateway: Gateway) -> str:
    """What the gateway says of its sessions: their number is in it."""
    return next(line for line in gateway.page("/metrics").splitlines() if "_sessions{" in line)


def seconds(what: Callable[[], object]) -> float:
    started = time.monotonic()
    what()
    return time.monotonic() - started


__all__ = ["MODERN", "Speaker", "gateway_at", "seconds", "sessions", "speaking", "url_of"]
