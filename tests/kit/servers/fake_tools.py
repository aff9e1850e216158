"""The fake server's tools: a function for each, named as the tool."""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.kit.servers.fake_wire import Conversation

Message = dict[str, Any]
PREFIX = "io.modelcontextprotocol/"


class Running:
    """One call while it runs, in a thread of its own."""

    def __init__(self, conversation: "Conversation", message: Message, *, modern: bool) -> None:
        params = message.get("params") or {}
        self.talk = conversation
        self.message = message
        self.id = message["id"]
        self.modern = modern
        self.params: Message = params
        self.meta: Message = params.get("_meta") or {}
        self.arguments: Message = params.get("arguments") or {}
        self.cancelled = threading.Event()

    def run(self) -> None:
        name = self.params.get("name")
        listed = {each.get("name") for each in self.talk.listings.tools if isinstance(each, dict)}
        work = TOOLS.get(str(name)) or (echo if name in listed else None)
        try:
            if work is None:
                error = {"code": -32602, "message": f"Unknown tool: {name}"}
                self.talk.send({"id": self.id, "error": error})
            elif (result := work(self)) is not None:
                self.answer(result)
        except BrokenPipeError:
            return
        finally:
            self.talk.running.pop(json.dumps(self.id), None)

    def answer(self, result: Message) -> None:
        self.talk.send({"id": self.id, "result": self.shaped(result)})

    def shaped(self, result: Message) -> Message:
        return self.talk.shaped(self.message, result) if self.modern else result

    def pause(self, ms: float) -> bool:
        """Wait. Returns whether the call was cancelled meanwhile."""
        return self.cancelled.wait(ms / 1000)


def text(words: str, **more: Any) -> Message:
    return {"content": [{"type": "text", "text": words}], **more}


def spawn_sleeper(*, ignore_term: bool, inherit: bool) -> int:
    """Start a program that sleeps for an hour in our group. `inherit`: it holds our pipes too."""
    script = "trap '' TERM; sleep 3600 & wait; wait" if ignore_term else "exec sleep 3600"
    quiet = None if inherit else subprocess.DEVNULL
    return subprocess.Popen(["sh", "-c", script], stdin=quiet, stdout=quiet).pid


def echo(call: Running) -> Message:
    """Says what it was told."""
    words = call.arguments.get("text")
    said = words if isinstance(words, str) else json.dumps(call.arguments, ensure_ascii=False)
    return text(said, structuredContent={"arguments": call.arguments, "meta": call.meta})


def whoami(call: Running) -> Message:
    """Says which process this is and whom it talks to."""
    me = {
        "pid": os.getpid(),
        "pgid": os.getpgid(0),
        "sid": os.getsid(0),
        "cwd": os.getcwd(),
        "argv": sys.argv,
        "era": "modern" if call.modern else "legacy",
        "revision": call.talk.revision,
        "client": call.talk.client,
        "calls": call.talk.calls,
    }
    return text(json.dumps(me))


def env(call: Running) -> Message:
    """Says what is in its environment."""
    names = call.arguments.get("names") or list(os.environ)
    return text(json.dumps({name: os.environ.get(name) for name in names}))


def sleep(call: Running) -> Message | None:
    """Answers later."""
    ms = call.arguments.get("ms", 100)
    if call.arguments.get("stubborn"):
        time.sleep(ms / 1000)
    elif call.pause(ms):
        return None
    return text(f"slept {ms} ms")


def hang(call: Running) -> None:
    """Never answers."""
    call.cancelled.wait()


def progress(call: Running) -> Message | None:
    """Reports progress, if asked to."""
    steps, ms = call.arguments.get("steps", 3), call.arguments.get("ms", 10)
    token = call.meta.get("progressToken")
    for step in range(1, steps + 1):
        if call.pause(ms):
            return None
        if token is not None:
            told = {"progressToken": token, "progress": step, "total": steps}
            call.talk.notify("notifications/progress", {**told, "message": f"step {step}"})
    if call.arguments.get("hang"):
        hang(call)
        return None
    return text(f"{steps} steps")


def log(call: Running) -> Message:
    """Writes to the protocol's log."""
    for number in range(call.arguments.get("count", 1)):
        line = {
            "level": call.arguments.get("level", "info"),
            "logger": "fake",
            "data": call.arguments.get("text", f"line {number}"),
        }
        call.talk.notify("notifications/message", line)
    return text("logged")


def fail(call: Running) -> Message:
    """Ends as a tool error."""
    return text(call.arguments.get("text", "it failed"), isError=True)


def error(call: Running) -> None:
    """Ends as a JSON-RPC error."""
    told = {"code": -32000, "message": "an error", **call.arguments}
    call.talk.send({"id": call.id, "error": told})


def crash(call: Running) -> None:
    """Leaves in the middle of the call."""
    if words := call.arguments.get("stderr"):
        print(words, file=sys.stderr, flush=True)
    if number := call.arguments.get("signal"):
        number = number if isinstance(number, int) else signal.Signals[number]
        os.kill(os.getpid(), number)
        time.sleep(5)
    os._exit(call.arguments.get("code", 1))


def huge(call: Running) -> Message | None:
    """Answers with a long text."""
    if call.pause(call.arguments.get("ms", 0)):
        return None
    return text("x" * call.arguments.get("bytes", 1 << 20))


def endless(call: Running) -> Message:
    """Writes a line without end."""
    left = call.arguments.get("bytes", 40 << 20)
    while left > 0:
        call.talk.write(b"y" * min(left, 1 << 16))
        left -= 1 << 16
    call.talk.write(b"\n")
    return text("done")


def rich(call: Running) -> Message:
    """Answers with every kind of content."""
    pixel = base64.b64encode(b"\x89PNG").decode()
    content: list[Message] = [
        {"type": "text", "text": "naïve \u2028 \U0001f3b2", "annotations": {"priority": 0.5}},
        {"type": "image", "data": pixel, "mimeType": "image/png"},
        {"type": "audio", "data": pixel, "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "fake://plain", "name": "plain"},
        {"type": "resource", "resource": {"uri": "fake://plain", "text": "plain text"}},
    ]
    return {
        "content": content,
        "structuredContent": {"b": 1, "a": [1.0, 1e2, None, 12345678901234567890]},
        "_meta": {"example.com/kept": {"z": 1, "a": 2}},
        "x-kept": "unknown fields come through",
    }


def raw(call: Running) -> Message:
    """Writes a line of its own first."""
    call.talk.write_line(call.arguments.get("text", "not a message"))
    return text("written")


def odd(call: Running) -> Message | None:
    """Answers in a wrong shape first."""
    good = call.shaped(text("odd"))
    failure = {"code": -32000, "message": "odd"}
    full = {"jsonrpc": "2.0", "id": call.id, "result": good}
    shapes: dict[str, Any] = {
        "unknown_id": {**full, "id": 999_999},
        "string_id": {**full, "id": str(call.id)},
        "null_id": {"jsonrpc": "2.0", "id": None, "error": failure},
        "no_id": {"jsonrpc": "2.0", "result": good},
        "both": {**full, "error": failure},
        "neither": {"jsonrpc": "2.0", "id": call.id},
        "null_result": {**full, "result": None},
        "no_jsonrpc": {"id": call.id, "result": good},
        "array": [full],
        "twice": full,
        "request_like": {**full, "method": "tools/call"},
    }
    call.talk.write_line(json.dumps(shapes[call.arguments["shape"]]))
    return text("odd") if call.arguments.get("right", True) else None


def ask(call: Running) -> Message:
    """Asks the client in the middle of the call."""
    method = call.arguments.get("method", "ping")
    params = call.arguments.get("params", {})
    call.pause(call.arguments.get("ms", 0))
    if not call.modern or method == "ping":
        return text(json.dumps(call.talk.ask(method, params)))
    if "inputResponses" in call.params:
        got = {key: call.params.get(key) for key in ("inputResponses", "requestState")}
        return text(json.dumps(got))
    question = {"q1": {"method": method, "params": params}}
    return {
        "resultType": "input_required",
        "inputRequests": question,
        "requestState": "c3RhdGU=.\u00e9",
    }


def add_tool(call: Running) -> Message:
    """Offers one tool more."""
    call.talk.listings.add(call.arguments.get("name", "added"))
    call.talk.announce("notifications/tools/list_changed")
    return text("added")


def remove_tool(call: Running) -> Message:
    """Offers one tool less."""
    call.talk.listings.remove(call.arguments.get("name", "added"))
    call.talk.announce("notifications/tools/list_changed")
    return text("removed")


def notify(call: Running) -> Message:
    """Sends the notification it is given."""
    call.talk.notify(call.arguments["method"], call.arguments.get("params", {}))
    return text("sent")


def touch(call: Running) -> Message:
    """Says that a resource was updated, if anyone subscribed to it."""
    uri = call.arguments.get("uri", "fake://plain")
    params = {"uri": uri}
    if uri in call.talk.watched or call.modern or call.talk.listens:
        call.talk.announce("notifications/resources/updated", params)
    return text(json.dumps(sorted(call.talk.watched)))


def stderr(call: Running) -> Message:
    """Writes to stderr."""
    words = call.arguments.get("text", "a line on stderr")
    count = call.arguments.get("lines", 1)
    if size := call.arguments.get("bytes"):
        count = size // (len(words) + 1) + 1
    sys.stderr.write(f"{words}\n" * count)
    sys.stderr.flush()
    return text("written")


def close_stdout(call: Running) -> None:
    """Answers, closes its stdout and lives on."""
    call.answer(text("closing"))
    call.talk.close_stdout()
    threading.Event().wait()


def stop_reading(call: Running) -> Message:
    """Answers and never reads again."""
    call.talk.reading.clear()
    return text("reading no more")


def spawn(call: Running) -> Message:
    """Starts a program of its own."""
    ignore = bool(call.arguments.get("ignore_term"))
    return text(str(spawn_sleeper(ignore_term=ignore, inherit=False)))


TOOLS: dict[str, Callable[[Running], Message | None]] = {
    work.__name__: work
    for work in (
        *(echo, whoami, env, sleep, hang, progress, log, fail, error, crash, huge, endless),
        *(rich, raw, odd, ask, add_tool, remove_tool, notify, touch, stderr),
        *(close_stdout, stop_reading, spawn),
    )
}
"""Every tool by name, in the order they are listed."""
