"""Speak the Model Context Protocol on standard input and output, in every revision.

There are two eras. A *legacy* client (revisions until 2025-11-25) says `initialize` once, and
what is agreed there holds for the connection. A *modern* client (2026-07-28) agrees on nothing:
each of its requests carries the revision and the client's capabilities in `params._meta`.
One process serves both, even in turns: each request shows which era it belongs to.
"""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, TypeGuard

from gateway.demo.server import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Failure,
    Method,
    Server,
    UnknownResource,
    listing,
    object_param,
    text_param,
)
from gateway.demo.tools import Json, Refused, failed, succeeded

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = ("2026-07-28",)

REVISION = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

RESOURCE_NOT_FOUND = -32002  # legacy; modern servers say INVALID_PARAMS
UNSUPPORTED_REVISION = -32022  # modern

HOUR_MS = 3_600_000
FRESH_MS = {
    "server/discover": HOUR_MS,
    "tools/list": HOUR_MS,
    "prompts/list": HOUR_MS,
    "resources/list": HOUR_MS,
    "resources/templates/list": HOUR_MS,
    "resources/read": 0,
}
"""How long a modern client may keep a result. What these servers list stays; contents may not."""


def serve(server: Server) -> None:
    """Answer on standard output what comes in on standard input, until that ends."""
    # Only messages may go out there. A print() that slipped in goes where people look instead.
    out, sys.stdout = sys.stdout.buffer, sys.stderr

    def send(message: Any) -> None:
        out.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        out.flush()

    # Ctrl-C, or a client that no longer reads, ends the conversation; neither is a fault.
    with suppress(KeyboardInterrupt, BrokenPipeError), out:
        conversation = Conversation(server, send)
        for line in sys.stdin.buffer:
            if line.strip():
                conversation.receive(line)


class Conversation:
    """What is said between one client and the server, and all that has to be remembered of it."""

    def __init__(self, server: Server, send: Callable[[Any], None]) -> None:
        self._server = server
        self._send = send
        self._tools = {tool.definition["name"]: tool for tool in server.tools}
        self._capabilities: Json = {"tools": {}, **server.capabilities}
        shared: dict[str, Method] = {
            "tools/list": listing("tools", [tool.definition for tool in server.tools]),
            "tools/call": self._call_tool,
            **server.methods,
        }
        self._modern = {**shared, "server/discover": self._discover}
        self._legacy = {**shared, "initialize": self._initialize, "ping": lambda params: {}}
        if "resources" in server.capabilities:
            self._legacy["resources/subscribe"] = self._subscribe
            self._legacy["resources/unsubscribe"] = self._unsubscribe
        self._agreed: str | None = None  # the revision that `initialize` settled on
        self._subscribed: set[str] = set()  # legacy: the URIs the client wants to hear about
        self._listening: dict[str | int, set[str]] = {}  # modern: the same, for each open listen

    def receive(self, line: bytes) -> None:
        """Take one line from the client, and send what there is to say about it."""
        try:
            # Left alone, Python would read NaN and Infinity too, which are not JSON.
            message = json.loads(str(line, "utf-8-sig"), parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            self._send(_error(None, Failure(PARSE_ERROR, "This line is not JSON")))
            return
        if isinstance(message, list) and message and self._agreed == "2025-03-26":
            # The one revision with batches. Answers to a batch go back together.
            if answers := [answer for each in message if (answer := self._answer(each))]:
                self._send(answers)
        elif answer := self._answer(message):
            self._send(answer)

    def _answer(self, message: Any) -> Json | None:
        """The response to a message. None if it needs none, or none yet."""
        if not isinstance(message, dict):
            return _error(None, Failure(INVALID_REQUEST, "A message is a JSON object"))
        if "method" not in message and ("result" in message or "error" in message):
            return None  # a response, though nothing was asked: answering it could go on for ever
        request_id, method = message.get("id"), message.get("method")
        params = message.get("params", {})
        if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
            known = request_id if _is_id(request_id) else None
            return _error(known, Failure(INVALID_REQUEST, "jsonrpc or method is not right"))
        if "id" not in message:
            self._hear(method, params)
            return None
        if not _is_id(request_id):
            return _error(None, Failure(INVALID_REQUEST, "id must be a string or an integer"))
        try:
            found = self._found(request_id, method, params)
        except Failure as refusal:
            return _error(request_id, refusal)
        return None if found is None else {"jsonrpc": "2.0", "id": request_id, "result": found}

    def _hear(self, method: str, params: Any) -> None:
        """Take a notification. Calls end before they could be cancelled, so listens remain."""
        if method == "notifications/cancelled" and isinstance(params, dict):
            cancelled = params.get("requestId")
            if _is_id(cancelled):
                self._listening.pop(cancelled, None)

    def _found(self, request_id: str | int, method: str, params: Any) -> Json | None:
        """The result of a request, in the shape its era wants. None if it stays open."""
        if not isinstance(params, dict):
            raise Failure(INVALID_PARAMS, "params must be an object")
        meta = object_param(params, "_meta")
        if REVISION not in meta and CLIENT_CAPABILITIES not in meta:
            return self._found_for_legacy(method, params)
        _check_envelope(meta)
        if method == "subscriptions/listen":
            self._listen(request_id, params)
            return None
        return self._found_for_modern(method, params)

    def _found_for_modern(self, method: str, params: Json) -> Json:
        try:
            found = _pick(self._modern, method)(params)
        except UnknownResource as unknown:
            raise _not_found(INVALID_PARAMS, unknown) from None
        if method in FRESH_MS:
            # "public": the answer is the same whoever asks.
            found = {**found, "ttlMs": FRESH_MS[method], "cacheScope": "public"}
        return {"resultType": "complete", **found, "_meta": {SERVER_INFO: self._server.info}}

    def _found_for_legacy(self, method: str, params: Json) -> Json:
        answer = _pick(self._legacy, method)
        if self._agreed is None and method not in ("initialize", "ping"):
            either_or = f"Send initialize first, or give {REVISION} and {CLIENT_CAPABILITIES}"
            raise Failure(INVALID_PARAMS, f"{either_or} in params._meta")
        try:
            return answer(params)
        except UnknownResource as unknown:
            raise _not_found(RESOURCE_NOT_FOUND, unknown) from None

    def _discover(self, params: Json) -> Json:
        return {"supportedVersions": list(MODERN), "capabilities": self._capabilities}

    def _initialize(self, params: Json) -> Json:
        wanted = text_param(params, "protocolVersion")
        self._agreed = wanted if wanted in LEGACY else LEGACY[-1]
        return {
            "protocolVersion": self._agreed,
            "capabilities": self._capabilities,
            "serverInfo": self._server.info,
        }

    def _call_tool(self, params: Json) -> Json:
        name, arguments = text_param(params, "name"), object_param(params, "arguments")
        if name not in self._tools:
            raise Failure(INVALID_PARAMS, f"Unknown tool: {name}")
        try:
            answer = self._tools[name].answer(arguments)
        except Refused as refused:
            return failed(refused)
        for uri in answer.changed:
            self._announce(uri)
        return succeeded(answer)

    def _subscribe(self, params: Json) -> Json:
        uri = text_param(params, "uri")
        if not self._server.has_resource(uri):
            raise UnknownResource(uri)
        self._subscribed.add(uri)
        return {}

    def _unsubscribe(self, params: Json) -> Json:
        self._subscribed.discard(text_param(params, "uri"))
        return {}

    def _listen(self, request_id: str | int, params: Json) -> None:
        """Open a listen: acknowledge what of it can be honoured, then leave it unanswered."""
        wanted = object_param(params, "notifications")
        uris = wanted.get("resourceSubscriptions", [])
        if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
            raise Failure(INVALID_PARAMS, "resourceSubscriptions must be an array of URIs")
        known = [uri for uri in uris if self._server.has_resource(uri)]
        self._listening[request_id] = set(known)
        honoured = {"resourceSubscriptions": known} if known else {}
        self._notify(
            "notifications/subscriptions/acknowledged",
            {"_meta": {SUBSCRIPTION: request_id}, "notifications": honoured},
        )

    def _announce(self, uri: str) -> None:
        """Tell whoever wants to hear it that a resource has changed."""
        updated = "notifications/resources/updated"
        if uri in self._subscribed:
            self._notify(updated, {"uri": uri})
        for request_id, uris in self._listening.items():
            if uri in uris:
                self._notify(updated, {"_meta": {SUBSCRIPTION: request_id}, "uri": uri})

    def _notify(self, method: str, params: Json) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})


def _check_envelope(meta: Json) -> None:
    """Raise `Failure` unless a modern request says all it has to, in a revision spoken here."""
    wanted, capabilities = meta.get(REVISION), meta.get(CLIENT_CAPABILITIES)
    if not isinstance(wanted, str) or not isinstance(capabilities, dict):
        needed = f"{REVISION} (a string) and {CLIENT_CAPABILITIES} (an object)"
        raise Failure(INVALID_PARAMS, f"params._meta must have {needed}")
    if wanted not in MODERN:
        offer = {"supported": list(MODERN), "requested": wanted}
        raise Failure(UNSUPPORTED_REVISION, "Unsupported protocol version", offer)


def _pick(methods: dict[str, Method], name: str) -> Method:
    if name not in methods:
        raise Failure(METHOD_NOT_FOUND, f"Method not found: {name}")
    return methods[name]


def _not_found(code: int, unknown: UnknownResource) -> Failure:
    return Failure(code, "Resource not found", {"uri": unknown.uri})


def _error(request_id: str | int | None, refusal: Failure) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "error": refusal.error}


def _is_id(value: Any) -> TypeGuard[str | int]:
    # To Python, `True` is an integer.
    return isinstance(value, str | int) and not isinstance(value, bool)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
