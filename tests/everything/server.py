"""Serve MCP on stdin and stdout in both eras at once: `python -m tests.everything.server`."""

import argparse
import asyncio
from typing import Any

from tests.everything.eras import MODERN, Hub, Legacy, Modern, P
from tests.everything.offer import Offer
from tests.everything.pipe import Message, Pipe
from tests.everything.refusals import Refused

Key = tuple[type, str | int]


class Server:
    """Gives each message to its era. No message decides the era of the ones after it."""

    def __init__(self, pipe: Pipe, eras: frozenset[str]):
        offer = Offer()
        self._pipe = pipe
        self._eras = eras
        self._legacy = Legacy(pipe, offer)
        self._modern = Modern(pipe, offer)
        self._hub = Hub(self._changed, self._updated)
        self._running: dict[Key, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Serve until the client closes the pipe; what still runs then is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            async for message in self._pipe.messages():
                self._take(message, tasks)
            for task in self._running.values():
                task.cancel()
        for request_id in list(self._modern.listening):
            self._modern.close(request_id)

    def _take(self, message: object, tasks: asyncio.TaskGroup) -> None:
        if not isinstance(message, dict) or not isinstance(message.get("params", {}), dict):
            self._pipe.fail(None, {"code": -32600, "message": "Not one JSON-RPC message"})
        elif "method" not in message:
            self._pipe.take_answer(message)
        elif "id" not in message:
            self._notified(message)
        else:
            key = _key(message["id"])
            self._running[key] = tasks.create_task(self._answer(message))
            self._running[key].add_done_callback(lambda task: self._forget(key, task))

    def _forget(self, key: Key, task: asyncio.Task[None]) -> None:
        if self._running.get(key) is task:
            del self._running[key]

    def _notified(self, message: Message) -> None:
        if message["method"] != "notifications/cancelled":
            return
        request_id = message.get("params", {}).get("requestId")
        self._modern.listening.pop(request_id, None)
        if task := self._running.get(_key(request_id)):
            task.cancel()

    async def _answer(self, message: Message) -> None:
        request_id, method = message["id"], message["method"]
        params = message.get("params", {})
        try:
            if method == "subscriptions/listen" and "modern" in self._eras:
                self._modern.listen(request_id, params)
                return
            result = await self._era(method, params).answer(method, params, self._hub)
        except Refused as refused:
            self._pipe.fail(request_id, refused.as_error())
        else:
            self._pipe.send({"id": request_id, "result": result})

    def _era(self, method: str, params: Message) -> Legacy | Modern:
        """The era that this one request is in."""
        meta: Any = params.get("_meta")
        enveloped = isinstance(meta, dict) and f"{P}protocolVersion" in meta
        if "modern" not in self._eras:
            return self._legacy
        if enveloped or method == "server/discover":
            return self._modern
        if "legacy" in self._eras:
            return self._legacy
        if method == "initialize":
            wanted = str(params.get("protocolVersion"))
            raise Refused(-32022, "Modern only", supported=[MODERN], requested=wanted)
        return self._modern

    def _changed(self, kind: str) -> None:
        method = f"notifications/{kind}/list_changed"
        self._legacy.announce(method, None)
        self._modern.announce(method, f"{kind}ListChanged", None)

    def _updated(self, uri: str) -> None:
        method = "notifications/resources/updated"
        self._legacy.announce(method, uri)
        self._modern.announce(method, "resourceSubscriptions", uri)


def _key(request_id: object) -> Key:
    """Ids of different JSON types never meet: 1 is not "1", and True is not 1."""
    return type(request_id), request_id if isinstance(request_id, str | int) else str(request_id)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--era", choices=("legacy", "modern", "both"), default="both")
    era = options.parse_args().era
    eras = frozenset({"legacy", "modern"} if era == "both" else {era})
    asyncio.run(Server(Pipe(), eras).run())


if __name__ == "__main__":
    main()
