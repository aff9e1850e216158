"""Call a server that speaks a revision up to 2025-11-25.

A connection that everybody shares is opened without client capabilities: the server has
nobody to ask, and is refused at once if it asks all the same. One opened with a profile
belongs to one client; a question then interrupts the call that caused it (`parked`).
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import structlog
from msgspec.structs import replace

from gateway.calls.call import Call, Caller, Completed, Outcome, TaskRef
from gateway.calls.notices import (
    LEVELS,
    Elicited,
    ListChanged,
    Notice,
    ResourceUpdated,
    TaskChanged,
)
from gateway.catalog.entries import Kind, Listing
from gateway.eras.calling import deliver, downward, listing
from gateway.eras.legacy.leg import Leg
from gateway.eras.legacy.legs import Legs
from gateway.eras.legacy.parked import Parked
from gateway.eras.legacy.tasking import (
    TASK,
    TASKS,
    InItsStead,
    begun_in,
    is_asked_for,
    makes_tasks,
    tasked,
)
from gateway.eras.profile import Profile, refusal_of
from gateway.eras.questions import ANSWERED, STATE, is_question
from gateway.eras.shapes import without
from gateway.eras.sides import Answered, Channel, Greeting, OpenRequest, Outbound
from gateway.protocol import methods
from gateway.protocol.errors import BadAnswer, GatewayError, ServerFailure
from gateway.protocol.jsonrpc import Fields, Notification, Request, shallow, value
from gateway.protocol.revisions import BY_NAME, NEWEST, OF_ERA, Era, Revision

log = structlog.get_logger()

NEWEST_LEGACY = NEWEST[Era.LEGACY]

WATCHES_AT_ONCE, WATCH_S = 16, 10.0
"""Subscriptions a server is asked for at a time, and how long it may take over each."""


@dataclass(slots=True)
class LegacyOutbound:
    """Implements `eras.sides.Outbound`."""

    channel: Channel
    us: Fields
    """Our own `clientInfo`."""
    offer: Revision = NEWEST_LEGACY
    """What to propose; older for servers that refuse rather than negotiate."""
    profile: Profile | None = None
    """What the one client behind this connection can answer; None: shared by everybody."""
    parked: Parked | None = None
    """Where interrupted calls wait; there if there is a profile."""
    _legs: Legs = field(init=False)
    _revision: Revision = NEWEST_LEGACY
    _capabilities: Fields = field(default_factory=dict)
    _tasks: bool = False
    """It may be called so that it answers with a task."""
    _watched: frozenset[str] = frozenset()
    _watching: asyncio.Lock = field(default_factory=asyncio.Lock)
    _level: str | None = None

    def __post_init__(self) -> None:
        self._legs = Legs(self.channel.refuse)

    async def start(self) -> Greeting:
        declared = self.profile.capabilities if self.profile else {}
        params = {
            "protocolVersion": self.offer.name,
            "capabilities": declared,
            "clientInfo": self.us,
        }
        opened = await self.channel.open(methods.INITIALIZE, params)
        result = (await opened.answer).result  # never cancelled towards the server: spec, lifecycle
        greeting = _greeting(self.channel.server, result)
        self._capabilities, self._revision = greeting.capabilities, greeting.revision
        self._tasks = makes_tasks(greeting.capabilities)
        self.channel.tell(methods.INITIALIZED, {})
        return greeting

    def succeed(self, before: Outbound) -> None:
        """Nothing to do: in this era servers tell of all tasks."""

    async def list(self, kinds: frozenset[Kind]) -> Listing:
        server, able = self.channel.server, self._capabilities
        return await listing(server, self._ask, kinds, able, self.offers)

    @property
    def offers(self) -> frozenset[str]:
        return frozenset(c for c in self._capabilities if c != TASKS or self._tasks)

    def call(self, call: Call) -> Coroutine[Any, Any, Outcome]:
        if call.method == methods.TASK_RESULT:
            return self._sent(call, call.method, call.params)
        params = without(downward(call), (ANSWERED, STATE))
        if self._tasks or TASK in params:
            return self._maybe_tasked(call, tasked(call, params, possible=self._tasks))
        return self._sent(call, call.method, params)

    async def _maybe_tasked(self, call: Call, params: Fields) -> Outcome:
        outcome = await self._sent(call, call.method, params)
        if TASK not in params or not isinstance(outcome, Completed):
            return outcome
        own = begun_in(outcome.result)
        if own is None:
            return outcome
        if is_asked_for(call):
            return replace(outcome, task=TaskRef(self, own, self.channel.server))
        return await self._awaited(call, own)

    async def _awaited(self, call: Call, task: str) -> Outcome:
        """The tool makes tasks alone, and this client knows none: wait in its stead."""
        try:
            opened = await self._opened(call, methods.TASK_RESULT, {"taskId": task})
        except asyncio.CancelledError:
            self.channel.bid(methods.CANCEL_TASK, {"taskId": task})
            raise
        return await self._answered(InItsStead(opened, self.channel, task), call)

    async def ask(self, method: str, params: Fields, caller: Caller) -> Fields:
        """Implements `calls.call.Host`."""
        return (await self._ask(method, params)).result

    async def follow(self, tasks: frozenset[str]) -> None:
        """Nothing to do: in this era servers tell of all."""

    async def _sent(self, call: Call, method: str, params: Fields) -> Outcome:
        return await self._answered(await self._opened(call, method, params), call)

    async def _opened(self, call: Call, method: str, params: Fields) -> OpenRequest:
        if call.meta:
            params = {**params, "_meta": call.meta}
        return await self.channel.open(method, params, call)

    async def _answered(self, opened: OpenRequest, call: Call) -> Outcome:
        if self.parked is not None and call.method != methods.COMPLETE:
            leg = self.parked.begin(opened, self.channel, call, self._revision)
            return await self._interruptible(leg, call)
        try:
            answered = await opened.answer
        except asyncio.CancelledError:
            opened.cancel("The client or its time limit gave up")
            raise
        except GatewayError:
            del opened  # it holds the error, which holds this frame and with it the request
            raise
        return Completed(answered.result, answered.size)

    async def _interruptible(self, leg: Leg, call: Call) -> Outcome:
        self._legs.add(leg)
        try:
            return await leg.wait(call)
        finally:
            self._legs.prune()

    async def watch(self, uris: frozenset[str]) -> None:
        offered = shallow(self._capabilities.get("resources")) or {}
        if value(offered, "subscribe") is not True:
            return
        async with self._watching, asyncio.TaskGroup() as tasks:
            turns = asyncio.Semaphore(WATCHES_AT_ONCE)
            for uri in uris - self._watched:
                tasks.create_task(self._subscribe(uri, turns))
            for uri in self._watched - uris:
                self._watched -= {uri}
                tasks.create_task(self._is_told(methods.UNSUBSCRIBE, uri, turns))

    async def _subscribe(self, uri: str, turns: asyncio.Semaphore) -> None:
        if await self._is_told(methods.SUBSCRIBE, uri, turns):
            self._watched |= {uri}

    async def _is_told(self, method: str, uri: str, turns: asyncio.Semaphore) -> bool:
        """One resource a server will not have watched must not keep it from others."""
        why = f"not answered within {WATCH_S:g} s"
        async with turns:
            with suppress(TimeoutError):
                async with asyncio.timeout(WATCH_S):
                    try:
                        await self._ask(method, {"uri": uri})
                        return True
                    except GatewayError as error:
                        why = error.message
        log.info("watch.refused", server=self.channel.server, uri=uri, why=why)
        return False

    async def wish_level(self, level: str) -> None:
        if "logging" not in self._capabilities:
            return
        if self._level is None or LEVELS.index(level) < LEVELS.index(self._level):
            self._level = level
            await self._ask(methods.SET_LEVEL, {"level": level})

    def asked(self, request: Request) -> None:
        if request.method == methods.PING:
            self.channel.answer(request, {})
        elif self.profile is None or not is_question(request.method):
            self.channel.refuse(request, -32601, "No client can be asked over this connection")
        elif not self.profile.allows(request.method, request.params):
            self.channel.refuse(request, *refusal_of(request.method))
        else:
            self._legs.asked(request, self.channel.about)

    def roots_changed(self) -> None:
        """The client's roots are others now; only legacy revisions tell so."""
        self.channel.tell(methods.ROOTS_CHANGED, {})

    def told(self, notification: Notification) -> Notice | None:
        method, params = notification.method, notification.params
        if method == methods.MESSAGE:
            hearers = (
                self._legs.hearers(self.channel.about) if self.parked else self.channel.calls()
            )
            deliver(self.channel, params, hearers)
        elif method == methods.CANCELLED:
            self._legs.withdrawn(value(params, "requestId"))
        elif method == methods.TASK_STATUS and isinstance(id_ := value(params, "taskId"), str):
            return TaskChanged(self, id_, params)
        elif method == methods.ELICITED:
            return Elicited(params)
        elif method in methods.LIST_CHANGED:
            return ListChanged(Kind(methods.LIST_CHANGED[method]))
        elif method == methods.UPDATED and isinstance(uri := value(params, "uri"), str):
            return ResourceUpdated(uri, params)
        return None

    async def _ask(self, method: str, params: Fields) -> Answered:
        opened = await self.channel.open(method, params)
        try:
            return await opened.answer
        except asyncio.CancelledError:
            opened.cancel("No longer needed")
            raise


def is_about_version(error: ServerFailure) -> bool:
    """The server refused the handshake, maybe for the version: an older one may do.
    Not if it names what it supports, and nothing of that has this handshake."""
    supported = value(shallow(error.data) or {}, "supported")
    if isinstance(supported, list):
        return any(known.name in supported for known in OF_ERA[Era.LEGACY])
    return error.own_code in (-32602, -32022) or "version" in error.message.lower()


def _greeting(server: str, result: Fields) -> Greeting:
    version = value(result, "protocolVersion")
    if not isinstance(version, str):
        raise BadAnswer(f"{server} answered initialize without a protocolVersion")
    info = shallow(result.get("serverInfo")) or {}
    instructions = value(result, "instructions")
    known = BY_NAME.get(version)
    return Greeting(
        # A revision nobody knows, or one that has no handshake: read it as the nearest we have.
        revision=known if known and known.era is Era.LEGACY else NEWEST_LEGACY,
        capabilities=shallow(result.get("capabilities")) or {},
        name=str(value(info, "name") or ""),
        version=str(value(info, "version") or ""),
        instructions=instructions if isinstance(instructions, str) else None,
    )
