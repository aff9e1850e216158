"""The two ends of stdio: JSON-RPC lines in, lines out, and questions to the client."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any, BinaryIO

Message = dict[str, Any]


class Unanswered(Exception):
    """The client answered a question with an error; the argument is what it said."""


class Pipe:
    """One line a message. Only legacy servers ask; a modern one never writes a request."""

    def __init__(self, source: BinaryIO = sys.stdin.buffer, sink: BinaryIO = sys.stdout.buffer):
        self._source = source
        self._sink = sink
        self._questions: dict[int, asyncio.Future[Message]] = {}
        self._last_question = -1

    async def messages(self) -> AsyncIterator[object]:
        """Each line as JSON until the client closes the pipe; a line that is none is refused."""
        while line := await asyncio.to_thread(self._source.readline):
            if not line.strip():
                continue
            try:
                yield json.loads(line)
            except ValueError:
                self.fail(None, {"code": -32700, "message": "Not JSON"})

    def send(self, message: Message) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))
        self._sink.write(line.encode() + b"\n")
        self._sink.flush()

    def notify(self, method: str, params: Message | None = None) -> None:
        self.send({"method": method} if params is None else {"method": method, "params": params})

    def fail(self, request_id: object, error: Message) -> None:
        self.send({"id": request_id, "error": error})

    async def ask(self, method: str, params: Message) -> Message:
        """Send a request of our own and wait for its result.

        Ids start at 0, as those of TypeScript servers do: a client that takes 0 for "no id" shows.
        """
        self._last_question += 1
        number = self._last_question
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._questions[number] = answer
        self.send({"id": number, "method": method, "params": params})
        try:
            return await answer
        except asyncio.CancelledError:
            self.notify("notifications/cancelled", {"requestId": number})
            raise
        finally:
            del self._questions[number]

    def take_answer(self, message: Message) -> None:
        """Hand a response to whoever asked; one that nobody waits for is dropped."""
        number = message.get("id")
        waiting = self._questions.get(number) if type(number) is int else None
        if waiting is None or waiting.done():
            return
        if "error" in message:
            waiting.set_exception(Unanswered(str(message["error"].get("message", "no reason"))))
        else:
            waiting.set_result(message.get("result") or {})
