"""What both inbound translators are given: the way in, and what is on offer."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gateway.calls.call import NOTHING_KNOWN, Call, Caller, Emit, Spent, silent
from gateway.calls.notices import Board
from gateway.calls.pipeline import Handler
from gateway.calls.watching import Watching
from gateway.catalog.catalog import Catalog
from gateway.catalog.entries import Kind
from gateway.eras.tasks import Tasks
from gateway.identity.seals import Seals
from gateway.policy.background import Background
from gateway.protocol import meta, methods
from gateway.protocol.errors import GatewayError, InvalidParams, ServerUnavailable
from gateway.protocol.jsonrpc import Fields, Json, Request, shallow, value
from gateway.protocol.recall import LONGEST, Recall

KIND_OF = {
    methods.CALL_TOOL: Kind.TOOL,
    methods.GET_PROMPT: Kind.PROMPT,
    methods.READ_RESOURCE: Kind.RESOURCE,
}

NOTHING_SAID: tuple[Fields, str | None] = ({}, None)

CLIENTS_REMEMBERED = 512
"""Distinct `clientInfo` objects read once and kept: there are few clients in the world."""


@dataclass(slots=True)
class Middle:
    """Shared by both eras; knows neither."""

    handle: Handler
    """The pipeline for calls: recorded, judged, bounded."""
    refuse: Handler
    """Recorded, and refused: for calls that bring a state which is not theirs."""
    complete: Handler
    """The same for completions, which come with every key stroke and leave no record."""
    offered: Callable[[], Catalog]
    """The catalog without what the rules deny."""
    capabilities: Callable[[], frozenset[str]]
    """`completions`, `logging`: what some server has, or may turn out to have."""
    instructions: Callable[[], str | None]
    board: Board
    watching: Watching
    wish_level: Callable[[str], None]
    new_id: Callable[[], str]
    us: Fields
    """Our `serverInfo`."""
    abandon: Callable[[Call], None]
    """Told the retry of a parked call whose client has gone before it got there, or will not
    come with it."""
    arrived: Callable[[Caller], None]
    """A client has come that servers could ask something."""
    roots_changed: Callable[[str], None]
    """Told the session whose client has other roots now."""
    tasks: Tasks
    background: Background
    timed: Callable[[str, float], None]
    """Told method and seconds of each request that is not a call."""
    clock: Callable[[], float]
    seals: Seals = field(default_factory=Seals)
    """For what modern clients are to bring back; others as soon as there are other tokens."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set at shutdown: streams say goodbye."""
    _clients: dict[bytes, str] = field(default_factory=dict)
    _goes_on: Recall[Fields, tuple[Fields, str | None]] = field(
        default_factory=lambda: Recall(lambda held: (meta.travelling(held), meta.trace_of(held)))
    )
    """What of a client's `_meta` is for the server, and its trace."""

    def call(
        self,
        request: Request,
        caller: Caller,
        size: int,
        emit: Emit = silent,
        log_level: str | None = None,
        about: tuple[Kind, str] | None = None,
    ) -> Call:
        """The neutral call in this request. `about`: what it is about, where its params do
        not name that. Raises `InvalidParams` if it names nothing."""
        params = request.params
        held = params.get("_meta")
        travelling, trace = NOTHING_SAID
        if held is not None:
            params = {**params}
            del params["_meta"]
            travelling, trace = self._goes_on(shallow(held) or {})
        kind, name = about or subject(request)
        return Call(
            self.new_id(),
            request.method,
            kind,
            name,
            params,
            caller,
            Spent(),
            travelling,
            trace,
            size,
            None,
            NOTHING_KNOWN,
            emit,
            log_level,
        )

    def client(self, info: Json) -> str | None:
        """`clientInfo` as NAME/VERSION, for the record."""
        if info is None:
            return None
        key = bytes(info)
        known = self._clients.get(key)
        if known is None:
            fields = shallow(info) or {}
            known = f"{value(fields, 'name') or '?'}/{value(fields, 'version') or '?'}"[:100]
            if len(self._clients) < CLIENTS_REMEMBERED and len(key) <= LONGEST:
                self._clients[key] = known
        return known


def subject(request: Request) -> tuple[Kind, str]:
    """What a call is about: its kind, and the name or URI the client used."""
    if request.method == methods.COMPLETE:
        return _completed(request.params)
    member = methods.NAMED_BY[request.method]
    name = value(request.params, member)
    if not isinstance(name, str):
        raise InvalidParams(f"{request.method} needs a string params.{member}")
    return KIND_OF[request.method], name


def _completed(params: Fields) -> tuple[Kind, str]:
    ref = shallow(params.get("ref")) or {}
    kind = value(ref, "type")
    if kind == "ref/prompt" and isinstance(name := value(ref, "name"), str):
        return Kind.PROMPT, name
    if kind == "ref/resource" and isinstance(uri := value(ref, "uri"), str):
        return Kind.TEMPLATE, uri
    raise InvalidParams("completion/complete needs params.ref: a ref/prompt or a ref/resource")


def error_result(error: GatewayError, server: str | None) -> dict[str, Json]:
    """A call of a known tool that failed, as a result: the model has to see it."""
    where = error.server if isinstance(error, ServerUnavailable) else server
    told = {"kind": error.kind, "server": where, "retryable": error.retryable}
    return {
        "content": [{"type": "text", "text": error.message}],
        "isError": True,
        "_meta": {"onegate/error": told | (error.data or {})},
    }


def failure_data(error: GatewayError) -> Json:
    """`data` of a JSON-RPC error of our own."""
    if isinstance(error.data, Mapping):
        return {"kind": error.kind, **error.data}
    return error.data if error.data is not None else {"kind": error.kind}
