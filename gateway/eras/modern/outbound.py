"""Call a server that speaks 2026-07-28: every request carries its own envelope."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from gateway.calls.call import Call, Caller, Completed, InputRequired, Outcome, TaskRef
from gateway.calls.notices import ListChanged, Notice, ResourceUpdated, TaskChanged
from gateway.catalog.entries import Kind, Listing
from gateway.eras.calling import deliver, downward, listing
from gateway.eras.modern.tasks import declares_tasks
from gateway.eras.sides import Answered, Channel, Greeting, OpenRequest, Outbound
from gateway.protocol import meta, methods
from gateway.protocol.errors import BadAnswer, GatewayError, ServerFailure, UnsupportedVersion
from gateway.protocol.jsonrpc import Fields, Json, Notification, Raw, Request, raw, shallow, value
from gateway.protocol.revisions import NEWEST, Era

log = structlog.get_logger()

SPOKEN = NEWEST[Era.MODERN]
NOTHING = Raw(b"{}")
ACKNOWLEDGED_WITHIN_S = 2.0
"""How long a watch waits to be confirmed, so that a change right after it is not missed."""

COMPLETE, INPUT_REQUIRED, TASK = "complete", "input_required", "task"
FOLLOWS = raw({"extensions": {meta.TASKS: {}}})
"""What we declare to hear of tasks."""
ALL_CHANGES: Fields = dict.fromkeys(
    ("toolsListChanged", "promptsListChanged", "resourcesListChanged"), True
)


@dataclass(slots=True)
class ModernOutbound:
    """Implements `eras.sides.Outbound`."""

    channel: Channel
    us: Fields
    """Our own `clientInfo`."""
    default_level: str = "info"
    """Log level for clients that set none: legacy servers would log on their own."""
    _capabilities: Fields = field(default_factory=dict)
    _tasks: bool = False
    """It has the extension for tasks."""
    _watched: frozenset[str] = frozenset()
    _followed: frozenset[str] = frozenset()
    _listening: OpenRequest | None = None
    _watching: asyncio.Lock = field(default_factory=asyncio.Lock)
    _acknowledged: asyncio.Event = field(default_factory=asyncio.Event)
    _envelope: dict[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._envelope = {
            meta.VERSION: raw(SPOKEN.name),
            meta.CLIENT_INFO: raw(self.us),
            meta.CAPABILITIES: NOTHING,
        }

    async def start(self) -> Greeting:
        try:
            result = (await self._ask(methods.DISCOVER, {})).result
        except ServerFailure as error:
            if not _lists_what_it_refuses(error):
                raise
            result = (await self._ask(methods.DISCOVER, {})).result
        greeting = greeting_of(self.channel.server, result)
        self._capabilities = greeting.capabilities
        self._tasks = declares_tasks(greeting.capabilities)
        return greeting

    def succeed(self, before: Outbound) -> None:
        if isinstance(before, ModernOutbound):
            self._followed = before._followed

    async def list(self, kinds: frozenset[Kind]) -> Listing:
        server, able = self.channel.server, self._capabilities
        return await listing(server, self._ask, kinds, able, self.offers)

    @property
    def offers(self) -> frozenset[str]:
        return frozenset(self._capabilities) | ({meta.TASKS} if self._tasks else set())

    async def call(self, call: Call) -> Outcome:
        envelope = dict(self._envelope)
        if call.caller.capabilities is not None:
            envelope[meta.CAPABILITIES] = self._carried(call.caller.capabilities)
        if call.log_level is not None:
            envelope[meta.LOG_LEVEL] = call.log_level
        params = {**downward(call), "_meta": {**call.meta, **envelope}}
        opened = await self.channel.open(call.method, params, call)
        try:
            answered = await opened.answer
        except asyncio.CancelledError:
            opened.cancel("The client or its time limit gave up")
            raise
        except GatewayError:
            del opened  # it holds the error, which holds this frame and with it the request
            raise
        return self._outcome(answered)

    def _outcome(self, answered: Answered) -> Outcome:
        held = answered.result.get("resultType")
        kind = COMPLETE if held is None else value(answered.result, "resultType")
        if kind == COMPLETE:
            return Completed(answered.result, answered.size)
        if kind == INPUT_REQUIRED:
            return InputRequired(answered.result, answered.size)
        if kind == TASK and isinstance(id_ := value(answered.result, "taskId"), str):
            task = TaskRef(self, id_, self.channel.server)
            return Completed(answered.result, answered.size, task)
        raise BadAnswer(f"{self.channel.server} answered with an unknown resultType: {kind!r:.40}")

    async def ask(self, method: str, params: Fields, caller: Caller) -> Fields:
        """Implements `calls.call.Host`."""
        declared = self._carried(caller.capabilities or NOTHING)
        envelope = {**self._envelope, meta.CAPABILITIES: declared}
        return (await self._answered(method, {**params, "_meta": envelope})).result

    async def follow(self, tasks: frozenset[str]) -> None:
        if tasks != self._followed:
            self._followed = tasks
            await self.watch(self._watched)

    async def watch(self, uris: frozenset[str]) -> None:
        """Listen anew for all list changes and these resources; the old ear closes after."""
        async with self._watching:
            self._watched = uris
            before = self._listening
            wanted = {**ALL_CHANGES, "resourceSubscriptions": sorted(uris)}
            if self._followed:
                wanted["taskIds"] = sorted(self._followed)
            self._acknowledged.clear()
            envelope = {**self._envelope, meta.CAPABILITIES: FOLLOWS}
            params = {
                "notifications": wanted,
                "_meta": envelope if self._followed else self._envelope,
            }
            self._listening = await self.channel.open(methods.LISTEN, params)
            self._listening.answer.add_done_callback(self._stopped_listening)
            with suppress(TimeoutError):  # a server that never says so may still keep its word
                async with asyncio.timeout(ACKNOWLEDGED_WITHIN_S):
                    await self._acknowledged.wait()
            if before is not None:
                before.cancel("Replaced by another listen")

    async def wish_level(self, level: str) -> None:
        """Nothing to set: each request carries its own level."""

    def roots_changed(self) -> None:
        """Nothing to tell: each request carries what it needs."""

    def asked(self, request: Request) -> None:
        self.channel.refuse(request, -32601, "A server sends no requests in this revision")

    def told(self, notification: Notification) -> Notice | None:
        method, params = notification.method, notification.params
        if method == methods.MESSAGE:
            owners = [call for call in self.channel.calls() if call.log_level is not None]
            deliver(self.channel, params, owners)
        elif method == methods.ACKNOWLEDGED:
            self._acknowledged.set()
        elif method == methods.TASKS_TOLD and isinstance(id_ := value(params, "taskId"), str):
            return TaskChanged(self, id_, {k: v for k, v in params.items() if k != "_meta"})
        elif method in methods.LIST_CHANGED:
            return ListChanged(Kind(methods.LIST_CHANGED[method]))
        elif method == methods.UPDATED and isinstance(uri := value(params, "uri"), str):
            return ResourceUpdated(uri, {k: v for k, v in params.items() if k != "_meta"})
        return None

    def _stopped_listening(self, answer: "asyncio.Future[Answered]") -> None:
        self._acknowledged.set()  # there is nothing more to wait for
        if answer.cancelled():
            return
        why = answer.exception()
        if not isinstance(why, GatewayError):
            log.info("listen.ended", server=self.channel.server)
        elif why.kind != "unavailable":  # many servers simply have no listen
            log.info("listen.refused", server=self.channel.server, why=why.message)

    async def _ask(self, method: str, params: Fields) -> Answered:
        return await self._answered(method, {**params, "_meta": self._envelope})

    def _carried(self, capabilities: Raw) -> Json:
        return carried(capabilities, frozenset({meta.TASKS}) if self._tasks else frozenset())

    async def _answered(self, method: str, params: Fields) -> Answered:
        opened = await self.channel.open(method, params)
        try:
            return await opened.answer
        except asyncio.CancelledError:
            opened.cancel("No longer needed")
            raise


def _lists_what_it_refuses(error: ServerFailure) -> bool:
    """-32022 though the revision asked for is in `supported`: taken at its list."""
    supported = value(shallow(error.data) or {}, "supported")
    is_refusal = error.own_code == UnsupportedVersion.code
    return is_refusal and isinstance(supported, list) and SPOKEN.name in supported


def carried(capabilities: Raw, extensions: frozenset[str]) -> Json:
    """What of a client's capabilities the server may count on: of the extensions only those
    that the server has, and the gateway can carry."""
    if b"extensions" not in bytes(capabilities):
        return capabilities
    declared = dict(shallow(capabilities) or {})
    wanted = shallow(declared.pop("extensions", None)) or {}
    kept = {name: held for name, held in wanted.items() if name in extensions}
    return {**declared, "extensions": kept} if kept else declared


def greeting_of(server: str, result: Fields) -> Greeting:
    """What a DiscoverResult says. Raises if the server lacks the one modern revision."""
    versions = value(result, "supportedVersions")
    if not isinstance(versions, list) or SPOKEN.name not in versions:
        raise UnsupportedVersion(f"{server} does not offer {SPOKEN.name} but {versions!r:.200}")
    identity = shallow((shallow(result.get("_meta")) or {}).get(meta.SERVER_INFO)) or {}
    instructions = value(result, "instructions")
    return Greeting(
        revision=SPOKEN,
        capabilities=shallow(result.get("capabilities")) or {},
        name=str(value(identity, "name") or ""),
        version=str(value(identity, "version") or ""),
        instructions=instructions if isinstance(instructions, str) else None,
    )
