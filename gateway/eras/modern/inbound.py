"""Serve a modern client: one request in, what is said about it, and one answer out."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec
import structlog
from msgspec.structs import replace

from gateway.calls.call import Call, Caller, Completed, Emit, InputRequired, Outcome, silent
from gateway.calls.notices import LEVELS, Emitted, LogLine, Progress
from gateway.catalog.entries import Kind
from gateway.eras.lists import LISTED, Lists
from gateway.eras.middle import Middle, error_result, failure_data, subject
from gateway.eras.modern.envelope import SUPPORTED, Claimed, Envelope, claimed, read_envelope
from gateway.eras.modern.listen import listen
from gateway.eras.modern.sealing import opened, sealed
from gateway.eras.modern.tasks import METHODS, TASK, TaskMethods
from gateway.eras.questions import ASKED, STATE, as_modern, for_modern
from gateway.eras.shapes import without
from gateway.eras.sides import Answer, Headers, Posted, Reply
from gateway.policy.going_on import GoingOn
from gateway.protocol import meta, methods
from gateway.protocol.errors import (
    HTTP_STATUS,
    GatewayError,
    MissingCapability,
    NotAcceptable,
    ServerFailure,
    UnknownEntry,
    UnknownMethod,
    wire_code,
)
from gateway.protocol.headers import check_params
from gateway.protocol.jsonrpc import (
    Failure,
    Fields,
    Json,
    Notification,
    Raw,
    Request,
    as_bytes,
    elements,
    encode,
    raw,
    shallow,
    value,
)
from gateway.protocol.recall import Recall

log = structlog.get_logger()

URL_ELICITATION_REQUIRED = -32042
"""2025-11-25; forbidden here, where a server asks by `input_required`."""
RESOURCE_NOT_FOUND = -32002
"""Up to 2025-11-25; forbidden here."""
FOR_US = frozenset({-32020, -32022})
"""What a server may hold against our own request: no fault of this client's."""

CACHE: Fields = {"ttlMs": 0, "cacheScope": "private"}

Served = Callable[["Asked"], Awaitable[bytes]]


class Asked(msgspec.Struct, frozen=True):
    """One request with all that was read of it."""

    request: Request
    envelope: Envelope
    posted: Posted
    reply: Reply


@dataclass(slots=True)
class ModernInbound:
    """Holds nothing about any client."""

    middle: Middle
    _identity: dict[str, Json] = field(init=False)
    _stamp: Fields = field(init=False)
    _tail: bytes = field(init=False)
    """How the JSON of a plain result ends."""
    _lists: Lists = field(init=False)
    _tasks: TaskMethods = field(init=False)
    _methods: dict[str, Served] = field(init=False)
    _claims: Recall[Fields, Claimed] = field(init=False)
    _callers: Recall[Envelope, Caller] = field(init=False)

    def __post_init__(self) -> None:
        self._claims = Recall(claimed)
        self._callers = Recall(self._described, lambda envelope: envelope.comes_again)
        self._tasks = TaskMethods(self.middle, self._ended)
        identity = {meta.SERVER_INFO: raw(self.middle.us)}
        self._stamp = {"resultType": raw("complete"), "_meta": raw(identity)}
        self._identity = identity
        self._tail = b"," + as_bytes(self._stamp)[1:]
        self._lists = Lists(self.middle.offered, {**CACHE, **self._stamp})
        self._methods = {
            methods.DISCOVER: self._discover,
            methods.LISTEN: self._listen,
            methods.CALL_TOOL: self._call,
            methods.GET_PROMPT: self._call,
            methods.READ_RESOURCE: self._call,
            methods.COMPLETE: self._complete,
            **dict.fromkeys(METHODS, self._task),
            **dict.fromkeys(LISTED, self._list),
        }

    async def post(self, request: Request, posted: Posted, reply: Reply) -> Answer:
        """Serve one request. The client's going away ends it."""
        reply.end_with_client()
        started = self.middle.clock()
        try:
            envelope = read_envelope(request, posted.headers, self._claims)
            serve = self._methods.get(request.method)
            if serve is None:
                raise UnknownMethod(f"Unknown method: {request.method!r:.80}")
            result = await serve(Asked(request, envelope, posted, reply))
        except GatewayError as error:
            return self._failed(request, error)
        if serve != self._call:
            self.middle.timed(request.method, self.middle.clock() - started)
        return Answer(200, _framed(request, result))

    # --- methods ---

    async def _discover(self, _asked: Asked) -> bytes:
        changing = {"listChanged": True}
        capabilities: dict[str, Json] = {
            "tools": changing,
            "prompts": changing,
            "resources": {"subscribe": True, **changing},
        }
        known = self.middle.capabilities()
        capabilities |= {name: {} for name in ("completions", "logging") if name in known}
        if meta.TASKS in known:
            capabilities["extensions"] = {meta.TASKS: {}}
        found = {"supportedVersions": SUPPORTED, "capabilities": capabilities}
        instructions = self.middle.instructions()
        told = {"instructions": instructions} if instructions else {}
        return as_bytes({**found, **told, **CACHE, **self._stamp})

    async def _list(self, asked: Asked) -> bytes:
        return self._lists.result(
            asked.request.method, asked.envelope.revision, asked.request.params
        )

    async def _listen(self, asked: Asked) -> bytes:
        if not asked.posted.accepts_stream:
            raise NotAcceptable("A subscription is a stream: accept text/event-stream")
        caller = self._caller(asked)
        closing = await listen(self.middle, self._tasks, asked.request, caller, asked.reply)
        told = {**self._identity, **closing["_meta"]}
        return as_bytes({**closing, **self._stamp, "_meta": told})

    async def _call(self, asked: Asked) -> bytes:
        request, envelope = asked.request, asked.envelope
        if request.method == methods.CALL_TOOL:
            self._check_params(request, asked.posted.headers)
        emit, caller = emitter(envelope, asked.reply), self._caller(asked)
        handle = self.middle.handle
        if STATE in request.params:
            mine = opened(request, caller, self.middle.seals)
            request, handle = (mine, handle) if mine else (request, self.middle.refuse)
        size = len(asked.posted.body)
        call = self.middle.call(request, caller, size, emit, envelope.log_level)
        if envelope.log_level is not None:
            self.middle.wish_level(envelope.log_level)
        try:
            outcome = await handle(call)
        except asyncio.CancelledError:
            if STATE in call.params:
                self.middle.abandon(call)
            raise
        except GatewayError as error:
            if error.for_the_model and request.method == methods.CALL_TOOL:
                entry = self.middle.offered().resolve(call.kind, call.name)
                told = error_result(error, entry.route.server if entry else None)
                told["_meta"] = {**told["_meta"], **self._identity}
                return as_bytes({**told, "resultType": "complete"})
            if (visit := _to_visit(error, envelope.capabilities)) is not None:
                return as_bytes({**visit, **self._stamp, "resultType": "input_required"})
            # Mostly the same, and a cause of itself would keep its request.
            raise _readable(error, call.name) from None
        if isinstance(outcome, InputRequired) or outcome.task or outcome.background:
            outcome = self._kept(call, outcome)
        return self._shaped(outcome, request.method)

    def _kept(self, call: Call, outcome: Outcome) -> Outcome:
        """One that is not the end, so that its client alone can go on with it."""
        if isinstance(outcome, InputRequired):
            return sealed(call, outcome, self.middle.seals)
        return self._tasks.adopted(call, outcome)

    async def _task(self, asked: Asked) -> bytes:
        answered = await self._tasks.ask(asked.request, self._caller(asked))
        return self._shaped(answered, asked.request.method)

    def _ended(self, going: GoingOn) -> dict[str, Json]:
        """What a call that went on has ended with, as `tasks/get` tells it."""
        try:
            return {"result": Raw(self._shaped(going.outcome(), methods.CALL_TOOL))}
        except GatewayError as error:
            if error.for_the_model:
                entry = self.middle.offered().resolve(Kind.TOOL, going.call.name)
                told = error_result(error, entry.route.server if entry else None)
                return {"result": {**told, "resultType": "complete"}}
            data = error.data if isinstance(error, ServerFailure) else failure_data(error)
            return {"error": {"code": wire_code(error), "message": error.message, "data": data}}

    async def _complete(self, asked: Asked) -> bytes:
        call = self.middle.call(asked.request, self._caller(asked), len(asked.posted.body))
        return self._shaped(await self.middle.complete(call), asked.request.method)

    # --- shapes ---

    def _caller(self, asked: Asked) -> Caller:
        caller, principal = self._callers(asked.envelope), asked.posted.principal
        return caller if principal is None else replace(caller, principal=principal)

    def _described(self, envelope: Envelope) -> Caller:
        client = self.middle.client(envelope.client_info)
        nothing = bytes(envelope.capabilities) == b"{}"
        capabilities = None if nothing else envelope.capabilities
        return Caller(envelope.revision, None, client, capabilities)

    def _check_params(self, request: Request, headers: Headers) -> None:
        """Rung 11: arguments that the tool wants repeated in headers."""
        mirrored = self.middle.offered().header_params
        if mirrored:
            wanted = mirrored.get(subject(request)[1], ())
            check_params(wanted, request.params.get("arguments"), headers.get)

    def _shaped(self, outcome: Outcome, method: str) -> bytes:
        result = outcome.result
        if type(outcome) is Completed and method == methods.CALL_TOOL and not _is_marked(outcome):
            return as_bytes(result)[:-1] + (self._tail if result else self._tail[1:])
        return self._marked(outcome, method)

    def _marked(self, outcome: Outcome, method: str) -> bytes:
        """The same for whatever says more of itself than a plain result does."""
        own = shallow(outcome.result.get("_meta")) if "_meta" in outcome.result else None
        stamp: dict[str, Json] = dict(self._stamp)
        if own:
            stamp["_meta"] = {**meta.unsigned(own), **self._identity}
        match outcome:
            case InputRequired(result):
                stamp["resultType"] = "input_required"
                result = without(result, CACHE)
                if outcome.ours:
                    result = {**result, ASKED: as_modern(result)}
            case Completed(result):
                if outcome.task is not None or outcome.background is not None:
                    stamp["resultType"] = TASK
                if method == methods.READ_RESOURCE:
                    stamp = {**CACHE, **{k: result[k] for k in CACHE if k in result}, **stamp}
        return as_bytes({**result, **stamp})

    def _failed(self, request: Request, error: GatewayError) -> Answer:
        code = wire_code(error)
        if isinstance(error, ServerFailure):
            status = HTTP_STATUS.get(code, 200)
            data = error.data
        else:
            status, data = error.status, failure_data(error)
        if code in FOR_US and isinstance(error, ServerFailure):
            code, status = -32603, 200
        return Answer(status, encode(Failure(request.id, code, error.message, data)))


def _is_marked(outcome: Completed) -> bool:
    result = outcome.result
    return (
        "_meta" in result
        or "resultType" in result
        or outcome.task is not None
        or outcome.background is not None
    )


def emitter(envelope: Envelope, reply: Reply) -> Emit:
    """What this request opted in to, decided once. `silent` if nothing: no flag to carry."""
    token, level = envelope.progress_token, envelope.log_level
    if token is None and level is None:
        return silent
    audible = frozenset(LEVELS[LEVELS.index(level) :]) if level is not None else frozenset()

    def emit(notice: Emitted) -> None:
        match notice:
            case Progress(params) if token is not None:
                reply.push(Notification(methods.PROGRESS, {**params, "progressToken": token}))
            case LogLine(said, params) if said in audible:
                reply.push(Notification(methods.MESSAGE, params))

    return emit


def _to_visit(error: GatewayError, capabilities: Json) -> Fields | None:
    """A server of 2025-11-25 that will not go on before URLs are visited, asked in the way
    of this revision. The retry is a call of its own: the server keeps nothing open."""
    if not isinstance(error, ServerFailure) or error.own_code != URL_ELICITATION_REQUIRED:
        return None
    elicits = value(shallow(capabilities) or {}, "elicitation")
    wanted = elements((shallow(error.data) or {}).get("elicitations"))
    if not isinstance(elicits, dict) or "url" not in elicits or not wanted:
        return None
    asked = {
        f"url-{number}": {
            "method": "elicitation/create",
            "params": {"mode": "url", **for_modern(shallow(params) or {})},
        }
        for number, params in enumerate(wanted, 1)
    }
    return {ASKED: asked}


def _readable(error: GatewayError, name: str) -> GatewayError:
    """Codes of older revisions that must not reach this one."""
    if isinstance(error, ServerFailure) and error.own_code == RESOURCE_NOT_FOUND:
        return UnknownEntry(error.message, data={"uri": name})
    if isinstance(error, ServerFailure) and error.own_code == URL_ELICITATION_REQUIRED:
        needed: Json = {"requiredCapabilities": {"elicitation": {"url": {}}}}
        return MissingCapability(error.message, data=needed)
    return error


def _framed(request: Request, result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (as_bytes(request.id), result)
