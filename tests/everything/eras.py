"""What the two eras do differently: opening, methods, and the dress of results."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.everything import prompts, resources
from tests.everything.calls import LEVELS, Call, InputRequired, LegacyCall, ModernCall
from tests.everything.content import said
from tests.everything.offer import Offer
from tests.everything.pipe import Message, Pipe, Unanswered
from tests.everything.refusals import BadParams, NoSuchMethod, NoSuchResource, Refused

P = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
INFO: Message = {"name": "everything", "title": "Everything", "version": "1.0.0"}
INSTRUCTIONS = "Every tool here exists to be tested."
CACHEABLE = {
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
}
LIST_CHANGED: dict[str, Message] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}


async def answered(offer: Offer, method: str, call: Call) -> Message:
    """The bare result of a method that both eras have."""
    match method:
        case "tools/list":
            return {"tools": offer.tools()}
        case "tools/call":
            return await offer.call(call)
        case "prompts/list":
            return {"prompts": offer.prompts()}
        case "prompts/get":
            return await prompts.get(call)
        case "resources/list":
            return {"resources": resources.RESOURCES}
        case "resources/templates/list":
            return {"resourceTemplates": resources.TEMPLATES}
        case "resources/read":
            return resources.read(str(call.params.get("uri")))
        case "completion/complete":
            return prompts.complete(call.params)
    raise NoSuchMethod(method)


@dataclass
class Legacy:
    """The connection that `initialize` opens: it remembers capabilities, level, subscriptions."""

    pipe: Pipe
    offer: Offer
    capabilities: Message | None = None
    level: str = "info"
    subscribed: set[str] = field(default_factory=set)

    async def answer(self, method: str, params: Message, hub: "Hub") -> Message:
        match method:
            case "initialize":
                return self._initialize(params)
            case "ping":
                return {}
        if self.capabilities is None:
            raise Refused(-32600, "Not initialized")
        match method:
            case "logging/setLevel":
                self.level = _level(params.get("level"))
                return {}
            case "resources/subscribe":
                self.subscribed.add(str(params.get("uri")))
                return {}
            case "resources/unsubscribe":
                self.subscribed.discard(str(params.get("uri")))
                return {}
        return await self._common(method, params, hub, self.capabilities)

    def announce(self, method: str, uri: str | None) -> None:
        """Tell of a change unasked, except that an updated resource needs a subscription."""
        if self.capabilities is None or (uri is not None and uri not in self.subscribed):
            return
        self.pipe.notify(method, None if uri is None else {"uri": uri})

    def _initialize(self, params: Message) -> Message:
        self.capabilities = params.get("capabilities") or {}
        wanted = params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in LEGACY else LEGACY[-1],
            "capabilities": LIST_CHANGED,
            "serverInfo": INFO,
            "instructions": INSTRUCTIONS,
        }

    async def _common(
        self, method: str, params: Message, hub: "Hub", capabilities: Message
    ) -> Message:
        changed, updated = hub.changed, hub.updated
        call = LegacyCall(self.pipe, params, capabilities, self.level, changed, updated)
        try:
            return await answered(self.offer, method, call)
        except NoSuchResource as missing:
            raise Refused(-32002, str(missing), **missing.data) from None
        except Unanswered as reason:
            return said(f"The client did not answer: {reason}", failed=True)


@dataclass
class Modern:
    """Requests that stand alone, and the listen streams that are open."""

    pipe: Pipe
    offer: Offer
    listening: dict[str | int, Message] = field(default_factory=dict)

    async def answer(self, method: str, params: Message, hub: "Hub") -> Message:
        meta = _envelope(params)
        if method == "server/discover":
            found = {"supportedVersions": [MODERN], "instructions": INSTRUCTIONS}
            return _dressed(method, found | {"capabilities": LIST_CHANGED})
        level = meta.get(f"{P}logLevel")
        call = ModernCall(
            self.pipe,
            params,
            meta[f"{P}clientCapabilities"],
            None if level is None else _level(level),
            hub.changed,
            hub.updated,
            subject=f"{method} {params.get('name')}",
        )
        try:
            return _dressed(method, await answered(self.offer, method, call))
        except InputRequired as waiting:
            return waiting.as_result() | {"_meta": {f"{P}serverInfo": INFO}}

    def listen(self, request_id: str | int, params: Message) -> None:
        """Open a stream: say what it will carry, all tagged with the request's id."""
        _envelope(params)
        wanted = params.get("notifications")
        if not isinstance(wanted, dict):
            raise BadParams("notifications has to be an object")
        kinds = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
        honoured: Message = {kind: True for kind in kinds if wanted.get(kind) is True}
        if uris := wanted.get("resourceSubscriptions"):
            honoured["resourceSubscriptions"] = uris
        self.listening[request_id] = honoured
        self._tell(request_id, "notifications/subscriptions/acknowledged", notifications=honoured)

    def close(self, request_id: str | int) -> None:
        """End a stream of our own accord, with the result that says so."""
        del self.listening[request_id]
        meta = {f"{P}subscriptionId": request_id, f"{P}serverInfo": INFO}
        self.pipe.send({"id": request_id, "result": {"resultType": "complete", "_meta": meta}})

    def announce(self, method: str, wanted_as: str, uri: str | None) -> None:
        for request_id, wanted in self.listening.items():
            honoured = wanted.get(wanted_as, False)
            if honoured is True or (honoured and uri in honoured):
                self._tell(request_id, method, **({} if uri is None else {"uri": uri}))

    def _tell(self, request_id: str | int, method: str, **params: object) -> None:
        self.pipe.notify(method, {**params, "_meta": {f"{P}subscriptionId": request_id}})


@dataclass(frozen=True)
class Hub:
    """Where a call says what changed, for everybody who wants to know."""

    changed: Callable[[str], None]
    updated: Callable[[str], None]


def _envelope(params: Message) -> Message:
    """The request's `_meta`, checked in the order of the specification."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or not isinstance(meta.get(f"{P}protocolVersion"), str):
        raise BadParams(f"_meta needs {P}protocolVersion")
    if not isinstance(meta.get(f"{P}clientCapabilities"), dict):
        raise BadParams(f"_meta needs {P}clientCapabilities")
    version = meta[f"{P}protocolVersion"]
    if version != MODERN:
        raise Refused(-32022, "Unsupported version", supported=[MODERN], requested=version)
    return meta


def _dressed(method: str, result: Message) -> Message:
    hints = {"ttlMs": 0, "cacheScope": "public"} if method in CACHEABLE else {}
    meta = {**result.get("_meta", {}), f"{P}serverInfo": INFO}
    return {"resultType": "complete", **result, **hints, "_meta": meta}


def _level(level: object) -> str:
    if not isinstance(level, str) or level not in LEVELS:
        raise BadParams(f"No log level {level!r}")
    return level
