"""How the fake server converses: lines, both eras, and every way to get them wrong."""

import argparse
import json
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any

from tests.kit.servers.fake_listings import Listings, Refused
from tests.kit.servers.fake_tools import TOOLS, Running

PREFIX = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
NOISE = ("\x1b[32mready!\x1b[0m", "", "[]", "123", "{broken", '"text"', "null")
CACHED = ("list", "server/discover", "resources/read")
Message = dict[str, Any]


class Conversation:
    """One client on stdin and stdout, from the first line to the last."""

    def __init__(self, told: argparse.Namespace) -> None:
        self.told = told
        self.listings = Listings(told)
        self.era: str | None = None  # the first one used; matters only with --lock
        self.revision: str | None = None
        self.client: Message = {}
        self.poisoned = False
        self.running: dict[str, Running] = {}
        self.listens: dict[str, tuple[Any, Message]] = {}
        self.watched: set[str] = set()
        self.calls = 0
        self.reading = threading.Event()
        self.reading.set()
        self._asked: dict[str, tuple[threading.Event, list[Message]]] = {}
        self._next_ask = 0  # from 0, as TypeScript servers do
        self._writing = threading.Lock()
        self._out: int | None = sys.stdout.fileno()
        self._record = told.record.open("ab", buffering=0) if told.record else None

    # -- lines ------------------------------------------------------------------------------

    def run(self) -> None:
        """Read and answer until stdin ends."""
        if self.told.bom:
            self.write(b"\xef\xbb\xbf")
        if self.told.banner:
            self.write("".join(f"{line}\n" for line in NOISE).encode())
        for line in sys.stdin.buffer:
            self.reading.wait()
            if self._record:
                self._record.write(line)
            if self.poisoned:
                os._exit(1)
            try:
                message = json.loads(line)
            except ValueError:
                self.send({"id": None, "error": {"code": -32700, "message": "Parse error"}})
                continue
            self.receive(message)

    def send(self, message: Mapping[str, Any], *, whole: bool = False) -> None:
        """Write one message. `whole`: as it is, else `jsonrpc` is added."""
        body = dict(message) if whole else {"jsonrpc": "2.0", **message}
        line = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        self.write_line(line)

    def write_line(self, line: str) -> None:
        noise = "".join(f"{each}\n" for each in NOISE) if self.told.noise else ""
        end = "\r\n" if self.told.crlf else "\n"
        self.write(f"{noise}{line}{end}".encode())

    def write(self, data: bytes) -> None:
        piece = self.told.chunk or len(data)
        with self._writing:
            for at in range(0, len(data), piece):
                rest = memoryview(data)[at : at + piece]
                while rest and self._out is not None:
                    rest = rest[os.write(self._out, rest) :]

    def close_stdout(self) -> None:
        with self._writing:
            self._out = None
            os.close(sys.stdout.fileno())

    # -- messages ---------------------------------------------------------------------------

    def receive(self, message: Message) -> None:
        method = message.get("method")
        if method is None:
            self._answered(message)
        elif "id" not in message:
            self._told(method, message.get("params") or {})
        elif self._misbehaves(method):
            return
        elif method == "tools/call":
            self._call(message)
        else:
            self.reply(message, lambda: self._result(message))

    def reply(self, message: Message, work: Any) -> None:
        """Answer with what `work` returns, or with what it raises; nothing if it returns None."""
        try:
            result = work()
        except Refused as refused:
            self.send({"id": message["id"], "error": refused.error()})
            return
        if result is not None:
            shaped = self.shaped(message, result) if is_modern(message) else result
            self.send({"id": message["id"], "result": shaped})
        if message["method"] == "tools/list" and self.told.exit_after_list:
            threading.Timer(0.05, os._exit, (0,)).start()

    def shaped(self, message: Message, result: Message) -> Message:
        """What every modern result carries."""
        meta = {f"{PREFIX}serverInfo": self._info(), **result.get("_meta", {})}
        shaped = {"resultType": "complete", **result, "_meta": meta}
        if message["method"].endswith(CACHED):
            shaped |= {"ttlMs": 0, "cacheScope": "private"}
        return shaped

    def notify(self, method: str, params: Message | None = None) -> None:
        self.send({"method": method, "params": params or {}})

    def announce(self, method: str, params: Message | None = None) -> None:
        """Tell of a change: unsolicited in legacy, on the streams that asked for it in modern."""
        if self.revision is not None:
            self.notify(method, params)
        for subscription, wanted in list(self.listens.values()):
            if wants(wanted, method, params or {}):
                meta = {"_meta": {f"{PREFIX}subscriptionId": subscription}}
                self.notify(method, {**(params or {}), **meta})

    def ask(self, method: str, params: Message) -> Message:
        """Send a request and wait for its answer: the whole message."""
        number, self._next_ask = self._next_ask, self._next_ask + 1
        waiting: tuple[threading.Event, list[Message]] = (threading.Event(), [])
        self._asked[key_of(number)] = waiting
        self.send({"id": number, "method": method, "params": params})
        waiting[0].wait()
        return waiting[1][0]

    def _answered(self, message: Message) -> None:
        waiting = self._asked.pop(key_of(message.get("id")), None)
        if waiting:
            waiting[1].append(message)
            waiting[0].set()

    def _told(self, method: str, params: Message) -> None:
        if method == "notifications/cancelled":
            key = key_of(params.get("requestId"))
            self.listens.pop(key, None)
            if running := self.running.get(key):
                running.cancelled.set()

    def _misbehaves(self, method: str) -> bool:
        """Silence or departure, where the flags ask for it."""
        named = {"initialize": self.told.initialize, "server/discover": self.told.discover}
        how = named.get(method)
        known = KNOWN - MODERN_ONLY if self.told.era == "legacy" else KNOWN
        if how is None and method not in known:
            how = self.told.unknown
        if how == "exit":
            os._exit(1)
        self.poisoned = how == "poison"
        return how in ("silent", "poison")

    def _call(self, message: Message) -> None:
        try:
            self._check(message)
        except Refused as refused:
            self.send({"id": message["id"], "error": refused.error()})
            return
        self.calls += 1
        running = Running(self, message, modern=is_modern(message))
        self.running[key_of(message["id"])] = running
        threading.Thread(target=running.run, daemon=True).start()

    def _check(self, message: Message) -> None:
        """Refuse what comes in an era, or at a time, that this server does not serve."""
        method, modern = message["method"], is_modern(message)
        era = "modern" if modern else "legacy"
        locked = self.told.lock and self.era not in (None, era)
        if modern and (locked or self.told.era == "legacy"):
            raise Refused(-32600, "This connection speaks an older revision")
        if not modern and (locked or self.told.era == "modern"):
            if method == "initialize":
                data = {"supported": [MODERN], "requested": message["params"]["protocolVersion"]}
                raise Refused(-32022, "Unsupported protocol version", data)
            raise Refused(-32602, "The request carries no envelope")
        if modern:
            meta = message["params"]["_meta"]
            if (asked := meta[f"{PREFIX}protocolVersion"]) != MODERN:
                data = {"supported": [MODERN], "requested": asked}
                raise Refused(-32022, "Unsupported protocol version", data)
            if f"{PREFIX}clientCapabilities" not in meta:
                raise Refused(-32602, "The envelope lacks clientCapabilities")
        elif self.revision is None and method not in ("initialize", "ping"):
            raise Refused(-32602, "Received a request before initialize")
        self.era = self.era or era

    def _result(self, message: Message) -> Message | None:
        method, params = message["method"], message.get("params") or {}
        if method == "server/discover" and self._hides_discover():
            raise Refused(-32601, "Method not found")
        self._check(message)
        modern = is_modern(message)
        removed = LEGACY_ONLY if modern else MODERN_ONLY
        if method in removed or method not in KNOWN:
            raise Refused(-32601, f"Method not found: {method}")
        match method:
            case "initialize":
                return self._initialize(params)
            case "server/discover":
                return {"supportedVersions": [MODERN], **self._self_description()}
            case "subscriptions/listen":
                self._listen(message["id"], params)
                return None
            case "resources/subscribe" | "resources/unsubscribe":
                change = self.watched.add if method.endswith("/subscribe") else self.watched.discard
                change(params["uri"])
                return {}
            case "ping" | "logging/setLevel":
                return {}
        return self.listings.answer(method, params, modern=modern)

    def _hides_discover(self) -> bool:
        return self.told.discover == "error" or (
            self.told.discover is None and self.told.era == "legacy"
        )

    def _initialize(self, params: Message) -> Message:
        asked = params.get("protocolVersion")
        if self.told.initialize == "error":
            raise Refused(-32603, "This server refuses to initialize")
        if asked not in self.told.versions and self.told.picky:
            raise Refused(-32602, f"Unsupported protocol version: {asked}")
        self.revision = asked if asked in self.told.versions else self.told.versions[-1]
        self.client = params
        if self.told.early_log:
            self.notify("notifications/message", {"level": "info", "data": "about to answer"})
        about = self._self_description()
        return {"protocolVersion": self.revision, "serverInfo": self._info(), **about}

    def _self_description(self) -> Message:
        about: Message = {"capabilities": self.listings.capabilities()}
        if self.told.instructions:
            about["instructions"] = self.told.instructions
        return about

    def _listen(self, number: Any, params: Message) -> None:
        wanted = params.get("notifications", {})
        self.listens[key_of(number)] = (number, wanted)
        meta = {f"{PREFIX}subscriptionId": number}
        honoured = {"notifications": wanted, "_meta": meta}
        self.notify("notifications/subscriptions/acknowledged", honoured)

    def _info(self) -> Message:
        return {"name": self.told.name, "version": "1.0.0"}


SHARED = {
    *("tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list"),
    *("resources/read", "resources/templates/list", "completion/complete"),
}
LEGACY_ONLY = {
    *("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"),
}
MODERN_ONLY = {"server/discover", "subscriptions/listen"}
KNOWN = SHARED | LEGACY_ONLY | MODERN_ONLY
assert TOOLS  # the tools register themselves by name


def key_of(number: object) -> str:
    """Ids as keys: 1 and "1" are different ids."""
    return json.dumps(number)


def is_modern(message: Message) -> bool:
    meta = (message.get("params") or {}).get("_meta") or {}
    return f"{PREFIX}protocolVersion" in meta


def wants(wanted: Message, method: str, params: Message) -> bool:
    """Whether a listen filter asked for this notification."""
    if method == "notifications/resources/updated":
        return params.get("uri") in wanted.get("resourceSubscriptions", [])
    kind = method.removeprefix("notifications/").removesuffix("/list_changed")
    return bool(wanted.get(f"{kind}ListChanged"))
