"""The two sides of an era, and what each is given to talk through.

Direction is that of the request: *inbound* serves a client that calls us,
*outbound* calls a server. Neither knows HTTP libraries or pipes: lower shells
implement these Protocols.
"""

from asyncio import Future
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from gateway.calls.call import Call, Outcome
from gateway.calls.notices import Notice
from gateway.catalog.entries import Kind, Listing
from gateway.protocol.jsonrpc import Fields, Notification, Request, RequestId
from gateway.protocol.revisions import Revision

# --- towards clients -------------------------------------------------------------------------


class Headers(Protocol):
    """Request headers, names without regard to case (aiohttp's CIMultiDictProxy fits)."""

    def get(self, name: str, default: str | None = None, /) -> str | None: ...
    def getall(self, name: str, default: Sequence[str] = (), /) -> Sequence[str]: ...


class Posted(msgspec.Struct, frozen=True):
    """One POST, after the guard: Host, Origin, body size, media type and token are checked."""

    headers: Headers
    body: bytes
    principal: str | None
    accepts_stream: bool
    """The client takes `text/event-stream`; False: nothing can be said before the answer."""
    accepts_json: bool = True


class Answer(msgspec.Struct, frozen=True):
    """What to answer. `body` is a JSON message; None: no body at all (202, 204)."""

    status: int
    body: bytes | None = None
    headers: Mapping[str, str] = {}


class Track(Protocol):
    """One event stream, numbered and remembered: a client that loses it can go on with it
    over another connection."""

    def push(self, message: bytes, *, may_drop: bool = False) -> None:
        """Say one JSON message. Never blocks, never raises."""

    def finish(self, last: bytes | None) -> None:
        """Say `last`, if anything, and end; once."""

    def delivered(self) -> None:
        """Everything went out, and the connection held."""


class Tracks(Protocol):
    """Where the tracks of one client are kept."""

    @property
    def primes(self) -> bool:
        """Clients learn an id as soon as a stream begins, so it pays to begin early."""

    def begin(self, stream: "Stream") -> Track:
        """A request's answer has become this stream."""


class Reply(Protocol):
    """Where messages go while an inbound request is being served, ahead of its answer.

    The first `push` turns the answer into an event stream; the edge then sends the
    final body as the stream's last event and ends it.
    """

    def push(self, message: Notification | Request) -> None:
        """Queue it and return. Never blocks, never raises; bounded: the oldest progress goes."""

    def say(self, message: bytes) -> None:
        """The same for one JSON message that is bytes already."""

    def keep(self, tracks: Tracks) -> None:
        """If the answer becomes a stream, its events shall be numbered and kept there."""

    @property
    def streaming(self) -> bool:
        """The HTTP head is out: the status can no longer be chosen."""

    def stream(self) -> None:
        """Turn the answer into an event stream now, even if there is nothing to say yet."""

    def when_old(self, aged: Callable[[], None]) -> None:
        """Make it a stream, and call this once if it gets as old as streams should."""

    def end_with_client(self) -> None:
        """From now on the client's going away cancels the task that serves this request.
        (2026-07-28 says so; in earlier revisions a lost connection cancels nothing.)"""


class Stream(Protocol):
    """One connection's event stream: a GET that a client holds open, or a streamed answer.

    Bounded: a reader that stops reading is cut off, never waited for.
    """

    def push(self, message: bytes, id_: str | None = None, *, may_drop: bool = False) -> None:
        """Queue one JSON message as one event and return. Never blocks, never raises."""

    def prime(self, id_: str, retry_ms: int) -> None:
        """An event without data: what to resume from, and how long to wait before."""

    def end(self, last: bytes | None = None, id_: str | None = None) -> None:
        """Say `last`, if anything, and close."""

    def leave(self) -> None:
        """Close, though what it was opened for goes on: its client takes another."""

    def when_old(self, aged: Callable[[], None]) -> None:
        """Call this, at most once, when it is as old as streams should get."""

    def expect(self) -> None:
        """An answer is still to come on it: a gateway that stops lets it come."""

    def expect_no_more(self) -> None: ...

    async def wait_ended(self) -> None:
        """Return when the client has gone or `end` was called and everything is out."""


class Entrance(Protocol):
    """Both eras on one URL; what the edge hands HTTP requests to."""

    async def post(self, posted: Posted, reply: Reply) -> Answer: ...

    async def get(
        self, headers: Headers, principal: str | None, open_stream: Callable[[], Stream]
    ) -> Answer | Stream:
        """A stream to be kept open until it ends, or the refusal."""

    def left(self, headers: Headers, principal: str | None, stream: Stream) -> None:
        """A stream that `get` gave out has ended."""

    async def delete(self, headers: Headers, principal: str | None) -> Answer: ...


class OldEntrance(Protocol):
    """The pair of endpoints of 2024-11-05: listen on one, post to the other."""

    def open(self, principal: str | None, open_stream: Callable[[str], Stream]) -> Stream:
        """Begin a session. `open_stream` is told its id, and tells it to the client. Raises
        `Throttled` if there are as many as may be, and all at work."""

    def left(self, session_id: str, principal: str | None) -> None:
        """The session's stream has ended."""

    def post(
        self, session_id: str, posted: Posted
    ) -> tuple[Answer, Coroutine[Any, Any, None] | None]:
        """What to answer at once, and the work to be done after, in a task of its own."""


# --- towards servers -------------------------------------------------------------------------


class Answered(msgspec.Struct, frozen=True):
    """A server's result, shallow, and its size in bytes as it came."""

    result: Fields
    size: int


class OpenRequest(Protocol):
    """A request a server is working on. Hold it as long as you like; no task is tied up."""

    call: Call | None
    """Whom progress and log lines are for; may change while the request is open."""

    @property
    def id(self) -> RequestId: ...
    @property
    def answer(self) -> Future[Answered]:
        """Fails with a `GatewayError`: the server's own error, or that it went away."""

    def cancel(self, reason: str) -> None:
        """Tell the server, forget the request, drop a late answer. Returns at once."""


class Channel(Protocol):
    """A message channel to one server process."""

    server: str
    """Its key in the configuration."""

    @property
    def about(self) -> RequestId | None:
        """The request on whose stream the message came that is being handled; None where
        the stream belongs to none, as a pipe does."""

    async def open(self, method: str, params: Fields, call: Call | None = None) -> OpenRequest:
        """Send a request; for a call, ask for progress under a token of ours. Waits only
        while the server does not read its input; the caller bounds that."""

    def calls(self) -> Sequence[Call]:
        """The calls this server is working on; while a message is handled that came on the
        stream of a request, that one alone, if it is a call."""

    def tell(self, method: str, params: Fields) -> None:
        """Send a notification, or drop it if the server does not read."""

    def bid(self, method: str, params: Fields) -> None:
        """Send a request whose answer makes no difference, or drop it likewise."""

    def answer(self, request: Request, result: Fields) -> None: ...
    def refuse(self, request: Request, code: int, message: str) -> None: ...


class Greeting(msgspec.Struct, frozen=True):
    """What a server said of itself when the conversation opened."""

    revision: Revision
    capabilities: Fields
    name: str = ""
    version: str = ""
    instructions: str | None = None


class Outbound(Protocol):
    """One era's way of talking to one server over one channel."""

    async def start(self) -> Greeting:
        """Open the conversation. Raises `GatewayError` if the server will not have it."""

    @property
    def offers(self) -> frozenset[str]:
        """What the server can do that the gateway can pass on: names of capabilities, and of
        extensions. There once it has started."""

    def succeed(self, before: "Outbound") -> None:
        """Come in the place of another with the same server, and listen for what that one
        did of what outlives a connection."""

    async def list(self, kinds: frozenset[Kind]) -> Listing: ...
    async def call(self, call: Call) -> Outcome: ...
    async def watch(self, uris: frozenset[str]) -> None:
        """Be told of changes to exactly these resources (the server's own URIs)."""

    async def wish_level(self, level: str) -> None:
        """Some client wants log lines from this level on; the most verbose wish wins."""

    def roots_changed(self) -> None:
        """The one client behind this connection has other roots now."""

    def asked(self, request: Request) -> None:
        """The server asks. Answered at once, even if only with a refusal."""

    def told(self, notification: Notification) -> Notice | None:
        """The server tells. Returns what concerns everyone, under the server's own URIs."""
