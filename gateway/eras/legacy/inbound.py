"""Serve a client that opened a session with `initialize` (2024-11-05 to 2025-11-25)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec

from gateway.calls.call import Caller, Completed, Emit, InputRequired, Outcome, silent
from gateway.calls.notices import LEVELS, Emitted, LogLine, Progress
from gateway.calls.watching import MOST_WATCHED
from gateway.catalog.entries import Kind
from gateway.eras.legacy.rounds import Rounds
from gateway.eras.legacy.sessions import Session, Sessions
from gateway.eras.legacy.tasking import TASKS
from gateway.eras.legacy.tasks import OFFERED, TaskMethods
from gateway.eras.lists import LISTED, Lists
from gateway.eras.middle import Middle, error_result, failure_data
from gateway.eras.profile import declared_by, forward
from gateway.eras.shapes import result as shaped
from gateway.eras.shapes import without
from gateway.eras.sides import Answer, Posted, Reply
from gateway.protocol import meta, methods
from gateway.protocol.errors import (
    Cancelled,
    CannotAnswer,
    GatewayError,
    InvalidParams,
    MissingCapability,
    ServerFailure,
    Throttled,
    UnknownEntry,
    UnknownMethod,
    wire_code,
)
from gateway.protocol.headers import SESSION
from gateway.protocol.jsonrpc import (
    Failure,
    Fields,
    Json,
    Notification,
    Request,
    Result,
    as_bytes,
    encode,
    raw,
    shallow,
    value,
)
from gateway.protocol.meta import PROGRESS_TOKEN
from gateway.protocol.revisions import BY_NAME, NEWEST, Era, Revision

RESOURCE_NOT_FOUND = -32002
ABOUT_RESOURCES = frozenset({methods.READ_RESOURCE, methods.SUBSCRIBE})
MODERN_ONLY = frozenset({"resultType", "ttlMs", "cacheScope"})
BETWEEN_US = frozenset({-32020, -32022})
"""What a modern server may hold against our own request: to this client a plain failure."""

Served = Callable[["Asked"], Awaitable[bytes]]


class Asked(msgspec.Struct, frozen=True):
    """One request of one session."""

    session: Session
    request: Request
    posted: Posted
    reply: Reply


@dataclass(slots=True)
class LegacyInbound:
    middle: Middle
    sessions: Sessions
    _lists: Lists = field(init=False)
    _tasks: TaskMethods = field(init=False)
    _methods: dict[str, Served] = field(init=False)

    def __post_init__(self) -> None:
        self._tasks = TaskMethods(self.middle)
        self._lists = Lists(self.middle.offered, {})
        self._methods = {
            methods.PING: self._nothing,
            methods.SET_LEVEL: self._set_level,
            methods.SUBSCRIBE: self._subscribe,
            methods.UNSUBSCRIBE: self._unsubscribe,
            methods.CALL_TOOL: self._call,
            methods.GET_PROMPT: self._call,
            methods.READ_RESOURCE: self._call,
            methods.COMPLETE: self._complete,
            methods.GET_TASK: self._ask_task,
            methods.CANCEL_TASK: self._ask_task,
            methods.LIST_TASKS: self._list_tasks,
            methods.TASK_RESULT: self._task_result,
            **dict.fromkeys(LISTED, self._list),
        }

    # --- opening ---

    def initialize(self, request: Request, posted: Posted) -> Answer:
        """Open a session. Waits for no server: whatever is not up yet announces itself."""
        try:
            session = self.sessions.open(self._caller(request, posted))
        except Throttled as error:
            return Answer(503, _failed(request, error), {"Retry-After": "5"})
        except InvalidParams as error:
            return Answer(400, _failed(request, error))
        return Answer(200, self._begin(session, request), {SESSION: session.id})

    def begin(self, session: Session, request: Request, posted: Posted) -> bytes:
        """The answer to `initialize` in a session that is open already."""
        try:
            caller = self._caller(request, posted)
        except InvalidParams as error:
            return _failed(request, error)
        session.unsubscribe()
        session.introduce(caller)
        return self._begin(session, request)

    def _begin(self, session: Session, request: Request) -> bytes:
        session.unsubscribe = self.middle.board.subscribe(session.hear)
        self.middle.arrived(session.caller)
        return _framed(request, as_bytes(self._welcome(session.caller.revision)))

    def _caller(self, request: Request, posted: Posted) -> Caller:
        declared = declared_by(request.params.get("capabilities"))
        return Caller(
            negotiated(value(request.params, "protocolVersion")),
            posted.principal,
            self.middle.client(request.params.get("clientInfo")),
            capabilities=raw(forward(declared)) if declared is not None else None,
            declared=declared,
        )

    def _welcome(self, revision: Revision) -> dict[str, Json]:
        changing = {"listChanged": True}
        capabilities: dict[str, Json] = {
            "tools": changing,
            "prompts": changing,
            "resources": {"subscribe": True, **changing},
        }
        known = self.middle.capabilities()
        capabilities |= {name: {} for name in ("completions", "logging") if name in known}
        if revision.tasks and TASKS in known:
            capabilities[TASKS] = OFFERED
        instructions = self.middle.instructions()
        told = {"instructions": instructions} if instructions else {}
        return {
            "protocolVersion": revision.name,
            "capabilities": capabilities,
            "serverInfo": self.middle.us,
            **told,
        }

    # --- messages of a session ---

    def told(self, session: Session, message: Notification | Result | Failure) -> None:
        """What the client says without waiting for an answer."""
        match message:
            case Notification(methods.CANCELLED, params):
                id_ = value(params, "requestId")
                if isinstance(id_, str | int):
                    session.cancel(id_)
            case Notification(methods.PROGRESS, params):
                session.questions.progressed(params)
            case Notification(methods.ROOTS_CHANGED):
                self.middle.roots_changed(session.id)
            case Result() | Failure():
                session.questions.answered(message)

    def garbled(self, session: Session, error: GatewayError) -> None:
        """The client says what nobody can read. If it was the answer to a question, no other
        will come."""
        if error.request_id is not None:
            said = f"The client's answer cannot be read: {error.message}"
            session.questions.answered(Failure(error.request_id, error.code, said))

    async def request(self, asked: Asked) -> bytes:
        """The JSON-RPC answer to one request; its HTTP status is 200 whatever it says,
        since 404 would mean that the session is gone."""
        request, session = asked.request, asked.session
        started = self.middle.clock()
        task = asyncio.current_task()
        assert task is not None, "handlers run in tasks"
        if session.calls.setdefault(request.id, task) is not task:
            session.overtake(request.id, task)
        try:
            serve = self._methods.get(request.method)
            if serve is None:
                raise UnknownMethod(f"Unknown method: {request.method!r:.80}")
            result = await serve(asked)
        except GatewayError as error:
            return _failed(request, error)
        except asyncio.CancelledError:
            if task not in session.cancelled:
                raise
            task.uncancel()  # not this task is to end, only what it was asked to do
            return _failed(request, Cancelled("The request was cancelled"))
        finally:
            if session.calls.get(request.id) is task:
                del session.calls[request.id]
            else:
                session.overtaken.discard(task)
            session.cancelled.discard(task)
        if serve != self._call:
            self.middle.timed(request.method, self.middle.clock() - started)
        return _framed(request, result)

    async def _nothing(self, _asked: Asked) -> bytes:
        return b"{}"

    async def _list(self, asked: Asked) -> bytes:
        revision = asked.session.caller.revision
        return self._lists.result(asked.request.method, revision, asked.request.params)

    async def _set_level(self, asked: Asked) -> bytes:
        level = value(asked.request.params, "level")
        if level not in LEVELS:
            raise InvalidParams(f"params.level must be one of {', '.join(LEVELS)}")
        asked.session.level = level
        self.middle.wish_level(level)
        return b"{}"

    async def _subscribe(self, asked: Asked) -> bytes:
        uri = self._resource(asked.request.params)
        if uri not in asked.session.watched:
            if len(asked.session.watched) >= MOST_WATCHED:
                raise InvalidParams(f"A session can watch {MOST_WATCHED} resources at most")
            asked.session.watched.add(uri)
            await self.middle.watching.add({uri})
        return b"{}"

    async def _unsubscribe(self, asked: Asked) -> bytes:
        uri = value(asked.request.params, "uri")
        if uri in asked.session.watched:
            asked.session.watched.discard(uri)
            self.middle.watching.drop({uri})
        return b"{}"

    def _resource(self, params: Fields) -> str:
        uri = value(params, "uri")
        if not isinstance(uri, str):
            raise InvalidParams("params.uri must be a string")
        if self.middle.offered().resolve(Kind.RESOURCE, uri) is None:
            raise UnknownEntry(f"Unknown resource: {uri:.200}", data={"uri": uri})
        return uri

    async def _call(self, asked: Asked) -> bytes:
        session, request = asked.session, asked.request
        call = self.middle.call(
            request,
            session.caller,
            len(asked.posted.body),
            emitter(asked),
            session.level or "info",
        )
        try:
            outcome = await self.middle.handle(call)
            if isinstance(outcome, InputRequired):
                outcome = await self._rounds(asked).go_on(call, outcome)
            if isinstance(outcome, Completed) and outcome.task is not None:
                outcome = self._tasks.adopted(call, outcome)
            return self._shaped(outcome, session.caller.revision)
        except GatewayError as error:
            if request.method == methods.CALL_TOOL and _readable(error).for_the_model:
                entry = self.middle.offered().resolve(call.kind, call.name)
                server = entry.route.server if entry else None
                return as_bytes(error_result(_readable(error), server))
            # Mostly the same, and a cause of itself, or a name for it, would keep its request.
            raise _readable(error) from None

    def _rounds(self, asked: Asked, task: str | None = None) -> Rounds:
        takes_stream = asked.posted.accepts_stream
        return Rounds(self.middle, asked.session.questions, asked.reply, takes_stream, task)

    async def _ask_task(self, asked: Asked) -> bytes:
        return as_bytes(await self._tasks.ask(asked.request, asked.session.caller))

    async def _list_tasks(self, asked: Asked) -> bytes:
        revision = asked.session.caller.revision
        if not (revision.tasks and TASKS in self.middle.capabilities()):
            raise UnknownMethod("No server here has tasks")
        return as_bytes(await self._tasks.list(asked.request, asked.session.caller))

    async def _task_result(self, asked: Asked) -> bytes:
        session, size = asked.session, len(asked.posted.body)
        task, call = self._tasks.fetching(asked.request, session.caller, size, emitter(asked))
        outcome = await self.middle.handle(call)
        if isinstance(outcome, InputRequired):
            outcome = await self._rounds(asked, task.id).go_on(call, outcome)
        assert isinstance(outcome, Completed), "questions were answered before"
        return self._shaped(self._tasks.fetched(task, outcome), session.caller.revision)

    async def _complete(self, asked: Asked) -> bytes:
        call = self.middle.call(asked.request, asked.session.caller, len(asked.posted.body))
        return self._shaped(await self.middle.complete(call), asked.session.caller.revision)

    def _shaped(self, outcome: Outcome, revision: Revision) -> bytes:
        assert isinstance(outcome, Completed), "questions were answered before"
        result = shaped(without(outcome.result, MODERN_ONLY), revision)
        own = shallow(result["_meta"]) if "_meta" in result else None
        if own is not None and meta.SERVER_INFO in own:
            kept = meta.unsigned(own)
            result = {**result, "_meta": kept} if kept else without(result, {"_meta"})
        return as_bytes(result)

    def ended(self, session: Session) -> None:
        """A session is over: nobody else watches on its account."""
        if session.watched:
            self.middle.watching.drop(session.watched)
            session.watched = set()


def negotiated(asked: Json) -> Revision:
    """The revision for a session: the client's own if we know it, else our newest."""
    known = BY_NAME.get(asked) if isinstance(asked, str) else None
    return known if known is not None and known.era is Era.LEGACY else NEWEST[Era.LEGACY]


def emitter(asked: Asked) -> Emit:
    """What this call says ahead of its answer: progress if it gave a token, log lines from
    the session's level on (and all of them while it has set none)."""
    held = asked.request.params.get("_meta")
    token = meta.progress_token(shallow(held) or {}) if held is not None else None
    session, reply = asked.session, asked.reply
    if not asked.posted.accepts_stream:
        return silent

    def emit(notice: Emitted) -> None:
        match notice:
            case Progress(params) if token is not None:
                reply.push(Notification(methods.PROGRESS, {**params, PROGRESS_TOKEN: token}))
            case LogLine(level, params) if _is_audible(level, session.level):
                reply.push(Notification(methods.MESSAGE, params))

    return emit


def _is_audible(level: str, wished: str | None) -> bool:
    if wished is None or level not in LEVELS:
        return True
    return LEVELS.index(level) >= LEVELS.index(wished)


def _readable(error: GatewayError) -> GatewayError:
    """What a modern server says of a client's capabilities, which no legacy client can read
    in the code of another revision."""
    if isinstance(error, ServerFailure) and error.own_code == MissingCapability.code:
        return CannotAnswer(error.message)
    return error


def _failed(request: Request, error: GatewayError) -> bytes:
    code, data = wire_code(error), error.data
    if not isinstance(error, ServerFailure):
        data = failure_data(error)
    elif code in BETWEEN_US:
        code = -32603
    if code == -32602 and request.method in ABOUT_RESOURCES and _names_uri(data):
        code = RESOURCE_NOT_FOUND  # how these revisions say it
    return encode(Failure(request.id, code, error.message, data))


def _names_uri(data: Json) -> bool:
    return "uri" in (shallow(data) or {})


def _framed(request: Request, result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (as_bytes(request.id), result)
