"""Tasks of a server elsewhere: of 2025-11-25, or of the extension for 2026-07-28.

A task goes on until the test says that it is done. Tools: `work` (as a task or not) and `only`
(as a task, nothing else). Task ids are t1, t2, ...
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.remote.far import EVENTS, PREFIX, Far, Message, Told, refusal, text_of

EXTENSION = f"{PREFIX}tasks"
RELATED = f"{PREFIX}related-task"
QUESTION: Message = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
LEGACY: Message = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}


@dataclass(eq=False)
class Task:
    id: str
    asks: bool
    status: str = "working"
    over: asyncio.Event = field(default_factory=asyncio.Event)
    answer: "asyncio.Future[Message]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def become(self, status: str) -> None:
        self.status = status
        self.over.set()


class Tasker:
    """A `Far` with tasks, and what has become of them."""

    def __init__(self, era: str, **more: Any) -> None:
        self.is_modern = era == "modern"
        tasks: Message = {"extensions": {EXTENSION: {}}} if self.is_modern else {"tasks": LEGACY}
        support = {"work": "optional", "only": "required"}
        extras = {name: {"execution": {"taskSupport": how}} for name, how in support.items()}
        self.far = Far(
            eras=(era,),
            tools=dict.fromkeys(support, plainly),
            extras={} if self.is_modern else extras,
            capabilities={"tools": {}, **tasks},
            before=self.serve,
            **more,
        )
        self.held: dict[str, Task] = {}
        self.polls = False
        """Whether `tasks/result` is cut off once, to be taken up again."""

    async def serve(self, request: web.Request, message: Message) -> web.StreamResponse | None:
        if "method" not in message:
            self.held[message["id"]].answer.set_result(message["result"])
            return web.Response(status=202)
        known = request.headers.get("Mcp-Session-Id") in self.far.known
        if not (self.is_modern or known):
            return None
        match message["method"]:
            case "tools/call" if self._wants_task(message["params"]):
                return self._begin(message)
            case "tasks/result":
                return await self._result(request, message)
            case "tasks/get" | "tasks/cancel" | "tasks/update" as method:
                return self._about(method.removeprefix("tasks/"), message)
        return None

    def shown(self, task: Task) -> Message:
        ttl = "ttlMs" if self.is_modern else "ttl"
        now = "2026-11-30T12:00:00Z"
        shown = {"taskId": task.id, "status": task.status, "createdAt": now, ttl: 60000}
        if self.is_modern and task.status == "completed":
            shown["result"] = {"resultType": "complete", **text_of(f"{task.id} done")}
        return {**shown, "lastUpdatedAt": now}

    async def finish(self, id_: str) -> None:
        """A task is done, and whoever wants to know is told."""
        task = self.held[id_]
        task.become("completed")
        if self.is_modern:
            listen = self.far.posts("subscriptions/listen")[-1]
            wanted = listen.message["params"]["notifications"].get("taskIds", [])
            if id_ in wanted:
                meta = {f"{PREFIX}subscriptionId": listen.message["id"]}
                await self.far.tell("notifications/tasks", **self.shown(task), _meta=meta)
        elif self.far.streams:
            await self.far.tell("notifications/tasks/status", **self.shown(task))

    def _wants_task(self, params: Message) -> bool:
        capabilities = params.get("_meta", {}).get(f"{PREFIX}clientCapabilities", {})
        declared = EXTENSION in capabilities.get("extensions", {})
        return declared if self.is_modern else "task" in params

    def _begin(self, message: Message) -> web.Response:
        arguments = message["params"].get("arguments") or {}
        task = Task(f"t{len(self.held) + 1}", bool(arguments.get("ask")))
        self.held[task.id] = task
        shown = self.shown(task)
        result = {**shown, "resultType": "task"} if self.is_modern else {"task": shown}
        return self._json(message, result)

    def _about(self, method: str, message: Message) -> web.Response:
        task = self.held.get(message["params"]["taskId"])
        if task is None:
            return refusal(message, -32602, "No such task", 200)
        if method == "cancel":
            task.become("cancelled")
        if method == "get" or not self.is_modern:
            return self._json(message, self.shown(task))
        return self._json(message, {})

    async def _result(self, request: web.Request, message: Message) -> web.StreamResponse:
        task = self.held[message["params"]["taskId"]]
        http = web.StreamResponse(headers={"Content-Type": EVENTS})
        await http.prepare(request)
        told = Told(http)
        if self.polls:
            self.polls = False
            self.far.resumed = lambda _, again: self._answer(again, message, task)
            await told.event(id="1", retry=20)
            return http
        await self._answer(told, message, task)
        return http

    async def _answer(self, told: Told, message: Message, task: Task) -> None:
        text = f"{task.id} done"
        if task.asks:
            params = {**QUESTION, "_meta": {RELATED: {"taskId": task.id}}}
            asked = {"jsonrpc": "2.0", "id": task.id, "method": "elicitation/create"}
            await told.event({**asked, "params": params})
            text = f"{text} for {(await task.answer)['content']['name']}"
        else:
            await task.over.wait()
        await told.answer(message["id"], {**text_of(text), "_meta": {RELATED: {"taskId": task.id}}})

    def _json(self, message: Message, result: Message) -> web.Response:
        full = {"jsonrpc": "2.0", "id": message["id"], "result": self.far.finished(message, result)}
        return web.json_response(full)


async def plainly(asked: Any) -> web.StreamResponse:
    return asked.text("done plainly")  # type: ignore[no-any-return]  # as `Asked` says
