"""A server of 2026-07-28 on stdin and stdout with the tools the suite's `tasks-*` scenarios want.

`python -m tests.conformance.tasks_server`. Source: SEP-2663 (ext-tasks).
"""

import itertools
import json
import sys
import threading
import time
from datetime import UTC, datetime
from typing import Any

Message = dict[str, Any]
P = "io.modelcontextprotocol/"
EXTENSION = f"{P}tasks"
ENDED = ("completed", "failed", "cancelled")
TASKS = ("slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input")
TOOLS = ("greet", *TASKS, "test_tool_with_task")


class Refused(Exception):
    def __init__(self, code: int, words: str, data: Message | None = None) -> None:
        super().__init__(words)
        self.error = {"code": code, "message": words, **({"data": data} if data else {})}


def said(text: str, **more: Any) -> Message:
    return {"content": [{"type": "text", "text": text}], **more}


def question(text: str) -> Message:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"mode": "form", "message": text, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Task:
    def __init__(self, id_: str) -> None:
        self.id, self.status, self.more, self.began = id_, "working", Message(), now()
        self.changed = self.began
        self.asks: Message = {}
        self.stop, self.answered = threading.Event(), threading.Event()

    def shown(self) -> Message:
        times = {"createdAt": self.began, "lastUpdatedAt": self.changed}
        shown = {"taskId": self.id, "status": self.status, **times}
        return {**shown, "ttlMs": 60000, "pollIntervalMs": 100}

    def detailed(self) -> Message:
        asks = {"inputRequests": self.asks} if self.status == "input_required" else {}
        return {**self.shown(), **self.more, **asks}


class Server:
    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.listening: dict[Any, list[str]] = {}
        self.ids, self.writing = itertools.count(1), threading.Lock()

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "id" in message and "method" in message:
                work = threading.Thread(
                    target=self.serve, args=(message, message.get("params", {})), daemon=True
                )
                work.start()

    def send(self, **message: Any) -> None:
        with self.writing:
            print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def serve(self, message: Message, params: Message) -> None:
        serve = getattr(self, message["method"].replace("/", "_"), None)
        try:
            if serve is None:
                raise Refused(-32601, "No such method")
            result = serve(params) if serve != self.subscriptions_listen else serve(message)
        except Refused as refused:
            self.send(id=message["id"], error=refused.error)
            return
        if result is not None:
            self.send(id=message["id"], result={"resultType": "complete", **result})

    def server_discover(self, _: Message) -> Message:
        capabilities: Message = {"tools": {}, "extensions": {EXTENSION: {}}}
        found = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
        return {**found, "ttlMs": 0, "cacheScope": "private"}

    def tools_list(self, _: Message) -> Message:
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
        return {"tools": tools, "ttlMs": 0, "cacheScope": "private"}

    def subscriptions_listen(self, message: Message) -> None:
        wanted = message["params"]["notifications"]
        self.listening[message["id"]] = wanted.get("taskIds", [])
        told = {"notifications": wanted, "_meta": {f"{P}subscriptionId": message["id"]}}
        self.send(method="notifications/subscriptions/acknowledged", params=told)

    def tools_call(self, params: Message) -> Message:
        name, arguments = params["name"], params.get("arguments") or {}
        if name == "greet":
            return said(f"Hello, {arguments.get('name', 'you')}!")
        capabilities = params["_meta"][f"{P}clientCapabilities"]
        if EXTENSION not in capabilities.get("extensions", {}):
            if name == "slow_compute":
                time.sleep(arguments.get("seconds", 1))
                return said("computed")
            needed: Message = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
            raise Refused(-32021, f"{name} runs as a task", needed)
        who = params.get("inputResponses", {}).get("user_name")
        if name == "test_tool_with_task" and who is None:
            asked = {"inputRequests": {"user_name": question("Your name?")}}
            return {**asked, "resultType": "input_required"}
        id_ = f"t{next(self.ids)}"
        task = self.tasks[id_] = Task(id_)
        if who is not None:
            arguments = {"name": (who.get("content") or {}).get("name")}
        threading.Thread(target=self.work, args=(task, name, arguments), daemon=True).start()
        return {**task.shown(), "resultType": "task"}

    def work(self, task: Task, name: str, arguments: Message) -> None:
        wait_s = arguments.get("seconds", 1) if name == "slow_compute" else 0.3
        if task.stop.wait(wait_s):
            return
        if name in ("confirm_delete", "multi_input"):
            keys = ("confirm",) if name == "confirm_delete" else ("one", "two")
            task.asks = {key: question(f"{key}?") for key in keys}
            self.become(task, "input_required")
            task.answered.wait(60)
        match name:
            case "failing_job":
                self.become(task, "completed", result=said("it failed", isError=True))
            case "protocol_error_job":
                self.become(task, "failed", error={"code": -32603, "message": "it broke"})
            case _:
                text = f"{name} is done for {arguments.get('name', 'you')}"
                self.become(task, "completed", result=said(text))

    def become(self, task: Task, status: str, **more: Any) -> None:
        if task.status in ENDED:
            return
        if "result" in more:
            more["result"]["resultType"] = "complete"
        task.status, task.more, task.changed = status, more, now()
        for subscription, ids in list(self.listening.items()):
            if task.id in ids:
                told = {**task.detailed(), "_meta": {f"{P}subscriptionId": subscription}}
                self.send(method="notifications/tasks", params=told)

    def named(self, params: Message) -> Task:
        found = self.tasks.get(params.get("taskId", ""))
        if found is None:
            raise Refused(-32602, "No such task")
        return found

    def tasks_get(self, params: Message) -> Message:
        return self.named(params).detailed()

    def tasks_cancel(self, params: Message) -> Message:
        task = self.named(params)
        task.stop.set()
        self.become(task, "cancelled")
        return {}

    def tasks_update(self, params: Message) -> Message:
        task = self.named(params)
        for key in params.get("inputResponses", {}):
            task.asks.pop(key, None)
        if task.status == "input_required" and not task.asks:
            self.become(task, "working")
            task.answered.set()
        return {}


if __name__ == "__main__":
    Server().run()
