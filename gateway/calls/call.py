"""A call, who made it, and how it ended.

The shape is the modern one: a call carries everything needed to serve it, and
may end by asking for input. Legacy conversations are bent to fit at the edges.
"""

from asyncio import Future
from collections.abc import Callable
from typing import Protocol

import msgspec

from gateway.calls.notices import Emitted
from gateway.catalog.entries import Entry, Kind
from gateway.protocol.jsonrpc import Fields, Json, Raw
from gateway.protocol.revisions import Revision

Emit = Callable[[Emitted], None]
"""Neither awaits nor raises: a slow or vanished client must not stall a server's reader."""


def silent(_notice: Emitted) -> None:
    """Emit to nobody: this caller asked for no progress and no logs."""


class Caller(msgspec.Struct, frozen=True):
    """Who calls, as far as this request tells."""

    revision: Revision
    principal: str | None = None
    """Name of the token; None where no authentication is configured."""
    client: str | None = None
    """`clientInfo` as NAME/VERSION: for the record, never for a decision."""
    capabilities: Raw | None = None
    """What this client can answer, as 2026-07-28 says it; None means nothing."""
    declared: Raw | None = None
    """The same in the client's own words, where those are of an older revision."""
    session: str | None = None


class Limit(msgspec.Struct, frozen=True):
    """A bound, and where it was set (`onegate.yaml:12`, or `default`), for messages."""

    value: float
    source: str


class Host(Protocol):
    """A connection to a server, for what lives on it and nowhere else."""

    async def call(self, call: "Call") -> "Outcome": ...

    async def ask(self, method: str, params: Fields, caller: Caller) -> Fields:
        """Send a request that is no call; its result. Raises `GatewayError`."""

    async def follow(self, tasks: frozenset[str]) -> None:
        """Be told how these tasks are, by the server's own ids, and of no others."""


class TaskRef(msgspec.Struct, frozen=True):
    """A task at a server, under the server's own id."""

    host: Host
    id: str
    server: str


class GoesOn(Protocol):
    """A call that goes on after its client was answered."""

    handle: str


class Verdict(msgspec.Struct, frozen=True):
    """What the rules say about one entry. Data: the policy stages enforce it."""

    allowed: bool
    rule: str
    """The pattern that decided, `default`, or `unknown`."""
    timeout: Limit = Limit(60.0, "default")
    """Seconds of silence; progress starts them anew."""
    longest: Limit = Limit(600.0, "default")
    """Seconds in all, whatever the server says meanwhile."""
    concurrency: Limit | None = None
    queue: Limit = Limit(64, "default")
    """How many may wait for a turn; one more is refused."""
    rate: Limit | None = None
    """Calls per `per_s` seconds and principal."""
    background: Limit | None = None
    """Seconds after which the call goes on without its client; None: never."""
    per_s: float = 1.0


NOTHING_KNOWN = Verdict(allowed=False, rule="unknown")


class Spent(msgspec.Struct):
    """What a call has cost so far; filled in on the way, read when its record is written."""

    server_s: float = 0.0
    waited_s: float = 0.0
    """For its turn, where `concurrency` makes calls stand in line: nobody's slowness."""


class Call(msgspec.Struct, frozen=True):
    """One request of a client that a server has to serve."""

    id: str
    """Ours, unique for ever: in the record, in the log."""
    method: str
    """`tools/call`, `prompts/get`, `resources/read` or `completion/complete`."""
    kind: Kind
    name: str
    """What the client called it: a tool's or prompt's exposed name, or a URI."""
    params: Fields
    """Shallow and as the client sent them, `_meta` excepted."""
    caller: Caller
    spent: Spent
    meta: Fields = {}
    """The client's `_meta`, shallow, without anything reserved to the hop it came over."""
    trace: str | None = None
    """`traceparent`, if the client sent a valid one."""
    request_bytes: int = 0
    entry: Entry | None = None
    """What `name` resolved to, if anything; set by the first stage."""
    verdict: Verdict = NOTHING_KNOWN
    emit: Emit = silent
    log_level: str | None = None
    """The client wants the server's log lines from this level on; None: none at all."""
    at: Host | None = None
    """The connection that alone can serve it, since what it is about lives there."""


class Completed(msgspec.Struct, frozen=True):
    """The server's result, shallow; `size` in bytes as it came from the server."""

    result: Fields
    size: int = 0
    task: TaskRef | None = None
    """The work goes on: the result only says how to ask for it."""
    background: "GoesOn | None" = None
    """The same, where it is ours to be asked."""


class InputRequired(msgspec.Struct, frozen=True):
    """The call ends here unless the client comes back with answers (2026-07-28, MRTR)."""

    result: Fields
    size: int = 0
    ours: bool = False
    """The questions are a legacy server's: the token is ours, the params are in its shape."""
    moot: "Future[None] | None" = None
    """Done when nobody wants the answers any more: the server has gone on without them."""
    progressed: Callable[[str, Fields], None] | None = None
    """Told the key of a question, and how far its client is with the answer: params of
    `notifications/progress`, without the token."""
    outlived: Callable[[str], Callable[[Json], None] | None] | None = None
    """Once the answers are moot: where the one to this question goes, if it is wanted still."""


Outcome = Completed | InputRequired
