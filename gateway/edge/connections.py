"""The connections of a listener: who is there, what ends with them, what aiohttp may not say.

Built on aiohttp's low-level server: no routing, no access log, no timer or task of our own
for each request.
"""

import asyncio
from typing import Any, Protocol, cast

import structlog
from aiohttp import web

from gateway.edge.body import ClientGone
from gateway.edge.crowd import BUSY, Crowd
from gateway.edge.pulse import Pulse
from gateway.edge.refusals import INTERNAL_ERROR, Refused

log = structlog.get_logger()

IDLE_S = 75.0
"""How long a connection is kept for the next request; longer than common proxies' 60 s."""
LINGER_S = 5.0
"""How long the rest of a refused body is read and thrown away, so that the refusal arrives."""
MOST_HEADERS = 128
TOO_LARGE = ("Got more than", "Too many headers")
"""How aiohttp's parser begins when it means the size."""


class Leaver(Protocol):
    """Wants to know when the client has gone."""

    def lost(self) -> None: ...


class Request(web.BaseRequest):
    """One request; while the gateway drains, the last one on its connection."""

    @property
    def keep_alive(self) -> bool:
        """Asked when the head of the answer is made: a client that is told not to send
        more over this connection does not lose a request to its end."""
        return not (self._message.should_close or connection_of(self).is_last)


class Connection(web.RequestHandler):
    """One client's connection. Requests on it are served one after the other."""

    __slots__ = (
        "ends",
        "heard",
        "is_admitted",
        "is_serving",
        "leaver",
        "since_s",
        "unmoved_s",
        "unsent",
    )

    def __init__(self, server: web.Server, since_s: float, **settings: Any) -> None:
        super().__init__(server, **settings)
        self.since_s = since_s
        self.heard = False
        """A whole request head has come in."""
        self.is_serving = False
        self.is_admitted = False
        """It has been counted among the crowd before."""
        self.ends: asyncio.Task[Any] | None = None
        """The task that is pointless once the client has gone."""
        self.leaver: Leaver | None = None
        self.unsent = 0
        self.unmoved_s = since_s

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        crowd = cast(Connections, self._manager).crowd
        if not self.is_admitted and not crowd.admits(transport, self.since_s):
            cast(asyncio.Transport, transport).write(BUSY)
            self.force_close()

    @property
    def is_last(self) -> bool:
        """Whether no further request may come on it."""
        return self._manager is None or cast(Connections, self._manager).is_draining

    def check(self, pulse: Pulse) -> None:
        """Close it if its client reads or says nothing for too long."""
        transport = self.transport
        if transport is None:
            return
        if not self.heard and pulse.now_s - self.since_s >= pulse.head_s:
            transport.abort()
            return
        unsent = transport.get_write_buffer_size()
        if unsent == 0 or unsent != self.unsent:
            self.unsent, self.unmoved_s = unsent, pulse.now_s
        elif pulse.now_s - self.unmoved_s >= pulse.stall_s:
            log.warning("reader.cut", unsent_bytes=unsent, stalled_s=pulse.stall_s)
            transport.abort()

    def close(self) -> None:
        """Close after the request being served; at once if there is none. (aiohttp alone
        would leave an idle connection open and deaf until the very end.)"""
        super().close()
        if not self.is_serving and self.transport is not None:
            self.transport.close()

    def log_access(
        self, request: web.BaseRequest, response: web.StreamResponse, time: float | None
    ) -> None:
        """Called when an answer is out; we keep no access log."""
        self.is_serving = False

    def leave(self) -> None:
        """The client has gone."""
        if self.ends is not None:
            self.ends.cancel()
        if self.leaver is not None:
            self.leaver.lost()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What aiohttp makes of a request nobody could read, or a handler that failed: ours
        is JSON, and a client's garbage is no traceback in the log."""
        if isinstance(exc, ClientGone):
            raise exc  # aiohttp then drops the connection without a word
        if request.writer.output_size > 0:
            raise ConnectionResetError("too late for another answer")
        if status >= 500:
            log.error("request.crashed", exc_info=exc)
            return Refused(500, "Internal error", code=INTERNAL_ERROR, close=True).response({})
        log.debug("request.unreadable", status=status, reason=message)
        said = (message or "").partition("\n")[0]
        if said.startswith(TOO_LARGE):
            refused = Refused(431, "The request's headers are too large.", close=True)
        else:
            refused = Refused(status, f"Not a readable HTTP request. {said}".strip(), close=True)
        return refused.response({})


class Connections(web.Server):
    """Makes connections, and tells them when their client leaves.

    aiohttp's own `handler_cancellation` is all or nothing: it would cancel the calls of
    legacy clients too, for which a lost connection cancels nothing.
    """

    def __init__(self, handler: Any, pulse: Pulse, crowd: Crowd, *, header_bytes: int) -> None:
        super().__init__(handler, request_factory=self._heard)
        self._pulse = pulse
        self.crowd = crowd
        self.is_draining = False
        self.header_bytes = header_bytes
        self._running = asyncio.get_running_loop()
        self._settings: dict[str, Any] = {
            "loop": self._running,
            "keepalive_timeout": IDLE_S,
            "lingering_time": LINGER_S,
            "access_log": None,
            "max_headers": MOST_HEADERS,
        }

    def __call__(self) -> web.RequestHandler:
        most = self.header_bytes
        sizes = {"max_line_size": most, "max_field_size": most}
        return Connection(self, self._pulse.now_s, **self._settings, **sizes)

    def taking_over(self, *, heard: bool) -> web.RequestHandler:
        """A handler for a connection that is there already; `heard`: and has been used."""
        handler = cast(Connection, self())
        handler.heard, handler.is_admitted = heard, True
        return handler

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        super().connection_lost(handler, exc)
        cast(Connection, handler).leave()

    def _heard(
        self, message: Any, payload: Any, protocol: web.RequestHandler, writer: Any, task: Any
    ) -> web.BaseRequest:
        connection = cast(Connection, protocol)
        connection.heard = connection.is_serving = True
        return Request(message, payload, protocol, writer, task, self._running)


def connection_of(request: web.BaseRequest) -> Connection:
    """The connection a request came in on."""
    return cast(Connection, request.protocol)
