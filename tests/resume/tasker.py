"""A server whose tools run as tasks: of 2025-11-25, or of the extension for 2026-07-28.

`python tasker.py legacy|modern|both [FILE]`, standard library only; the file gets all it reads. Of
both eras a process serves the one it is asked in first. Tools: `work` (as a task or not) and `only`
(as a task, nothing else), both with the arguments ms (100), ask (false: asks for a name on the way)
and fail (false). Task ids are t1, t2, ...
"""

import json
import os
import sys
import threading
from typing import Any

P = "io.modelcontextprotocol/"
EXTENSION = f"{P}tasks"
RELATED = f"{P}related-task"
NOW = "2026-11-30T12:00:00Z"
ENDED = ("completed", "failed", "cancelled")
Message = dict[str, Any]
QUESTION: Message = {
    "mode": "form",
    "message": "Who?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
}


class Task:
    def __init__(self, number: int, arguments: Message) -> None:
        self.id = f"t{number}"
        self.arguments = arguments
        self.status = "working"
        self.result: Message = {}
        self.answer: Message | None = None
        self.stop = threading.Event()
        self.moved = threading.Condition()

    def become(self, status: str) -> None:
        with self.moved:
            if self.status not in ENDED:
                self.status = status
            self.moved.notify_all()

    def given(self, answer: Message) -> None:
        with self.moved:
            self.answer = answer
            self.moved.notify_all()


class Server:
    def __init__(self, era: str) -> None:
        self.is_modern: bool = era == "modern"
        self.is_open = era == "both"
        self.tasks: dict[str, Task] = {}
        self.asked: dict[int, Task] = {}
        self.listening: dict[Any, list[str]] = {}
        self.writing = threading.Lock()

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if len(sys.argv) > 2:
                with open(sys.argv[2], "a") as heard:
                    heard.write(json.dumps({"pid": os.getpid(), "line": message}) + "\n")
            if self.is_open:
                self.is_open, self.is_modern = False, message["method"] != "initialize"
            if "method" not in message:
                self.answered(message)
            elif "id" in message:
                threading.Thread(target=self.serve, args=(message,), daemon=True).start()

    def send(self, message: Message) -> None:
        with self.writing:
            print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def serve(self, message: Message) -> None:
        name = message["method"].replace("/", "_")
        serve = getattr(self, name, None)
        if serve is None:
            self.refuse(message, -32601, "No such method")
        else:
            serve(message, message.get("params", {}))

    def reply(self, message: Message, result: Message) -> None:
        if self.is_modern:
            meta = {f"{P}serverInfo": {"name": "tasker", "version": "1"}}
            result = {"resultType": "complete", "_meta": meta, **result}
        self.send({"id": message["id"], "result": result})

    def refuse(self, message: Message, code: int, words: str) -> None:
        self.send({"id": message["id"], "error": {"code": code, "message": words}})

    # -- opening ----------------------------------------------------------------------------

    def initialize(self, message: Message, params: Message) -> None:
        if self.is_modern:
            self.refuse(message, -32022, "Modern only")
            return
        tasks: Message = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        self.reply(
            message,
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, "tasks": tasks},
                "serverInfo": {"name": "tasker", "version": "1"},
            },
        )

    def server_discover(self, message: Message, params: Message) -> None:
        if not self.is_modern:
            self.refuse(message, -32601, "No such method")
            return
        capabilities: Message = {"tools": {}, "extensions": {EXTENSION: {}}}
        found = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
        self.reply(message, {**found, "ttlMs": 0, "cacheScope": "private"})

    def tools_list(self, message: Message, params: Message) -> None:
        tools: list[Message] = [
            {"name": name, "inputSchema": {"type": "object"}} for name in ("work", "only")
        ]
        if not self.is_modern:
            for tool, support in zip(tools, ("optional", "required"), strict=True):
                tool["execution"] = {"taskSupport": support}
        self.reply(message, {"tools": tools, "ttlMs": 0, "cacheScope": "private"})

    def subscriptions_listen(self, message: Message, params: Message) -> None:
        wanted = params["notifications"]
        self.listening[message["id"]] = wanted.get("taskIds", [])
        meta = {f"{P}subscriptionId": message["id"]}
        told = {"notifications": wanted, "_meta": meta}
        self.send({"method": "notifications/subscriptions/acknowledged", "params": told})

    # -- calls and tasks --------------------------------------------------------------------

    def tools_call(self, message: Message, params: Message) -> None:
        arguments = params.get("arguments", {})
        capabilities = params.get("_meta", {}).get(f"{P}clientCapabilities", {})
        declared = EXTENSION in capabilities.get("extensions", {})
        task = Task(len(self.tasks) + 1, arguments)
        if declared if self.is_modern else "task" in params:
            self.tasks[task.id] = task
            threading.Thread(target=self.work, args=(task,), daemon=True).start()
            begun = self.shown(task)
            if self.is_modern:
                self.reply(message, {**begun, "resultType": "task"})
            else:
                self.reply(message, {"task": begun})
        elif params["name"] == "only":
            self.refuse(message, -32601, "This tool runs as a task alone")
        else:
            self.work(task)
            self.reply(message, task.result)

    def work(self, task: Task) -> None:
        task.stop.wait(task.arguments.get("ms", 100) / 1000)
        if task.arguments.get("ask") and not task.stop.is_set():
            self.become(task, "input_required")
            with task.moved:
                task.moved.wait_for(lambda: task.answer is not None or task.stop.is_set(), 20)
            self.become(task, "working")
        who = ((task.answer or {}).get("content") or {}).get("name", "nobody")
        failed = bool(task.arguments.get("fail"))
        text = {"type": "text", "text": f"{task.id} done for {who}"}
        task.result = {"content": [text], "isError": failed}
        self.become(task, "cancelled" if task.stop.is_set() else "completed")

    def become(self, task: Task, status: str) -> None:
        task.become(status)
        if not self.is_modern:
            self.send({"method": "notifications/tasks/status", "params": self.shown(task)})
        for subscription, ids in list(self.listening.items()):
            if task.id in ids:
                meta = {f"{P}subscriptionId": subscription}
                params = {**self.detailed(task), "_meta": meta}
                self.send({"method": "notifications/tasks", "params": params})

    def shown(self, task: Task) -> Message:
        ttl = "ttlMs" if self.is_modern else "ttl"
        poll = "pollIntervalMs" if self.is_modern else "pollInterval"
        times = {"createdAt": NOW, "lastUpdatedAt": NOW}
        return {"taskId": task.id, "status": task.status, **times, ttl: 60000, poll: 50}

    def detailed(self, task: Task) -> Message:
        shown = self.shown(task)
        if task.status == "input_required":
            shown["inputRequests"] = {"who": {"method": "elicitation/create", "params": QUESTION}}
        if task.status == "completed":
            shown["result"] = {"resultType": "complete", **task.result}
        return shown

    def found(self, message: Message, params: Message) -> Task | None:
        task = self.tasks.get(params.get("taskId", ""))
        if task is None:
            self.refuse(message, -32602, "No such task")
        return task

    def tasks_get(self, message: Message, params: Message) -> None:
        if task := self.found(message, params):
            self.reply(message, self.detailed(task) if self.is_modern else self.shown(task))

    def tasks_cancel(self, message: Message, params: Message) -> None:
        if task := self.found(message, params):
            task.stop.set()
            task.given({})
            self.become(task, "cancelled")
            self.reply(message, {} if self.is_modern else self.shown(task))

    def tasks_update(self, message: Message, params: Message) -> None:
        if task := self.found(message, params):
            task.given(params["inputResponses"]["who"])
            self.reply(message, {})

    def tasks_list(self, message: Message, params: Message) -> None:
        self.reply(message, {"tasks": [self.shown(task) for task in self.tasks.values()]})

    def tasks_result(self, message: Message, params: Message) -> None:
        task = self.found(message, params)
        if task is None:
            return
        while task.status not in ENDED:
            with task.moved:
                task.moved.wait_for(lambda: task.status != "working", 20)
            if task.status == "input_required" and task.answer is None:
                self.ask(task)
                with task.moved:
                    task.moved.wait_for(lambda: task.answer is not None, 20)
        if task.status == "cancelled":
            self.refuse(message, -32603, "The task was cancelled")
        else:
            self.reply(message, {**task.result, "_meta": {RELATED: {"taskId": task.id}}})

    def ask(self, task: Task) -> None:
        number = len(self.asked) + 1
        self.asked[number] = task
        params = {**QUESTION, "_meta": {RELATED: {"taskId": task.id}}}
        self.send({"id": number, "method": "elicitation/create", "params": params})

    def answered(self, message: Message) -> None:
        task = self.asked.get(message["id"])
        if task is not None:
            task.given(message.get("result", {}))


if __name__ == "__main__":
    Server(sys.argv[1]).run()
