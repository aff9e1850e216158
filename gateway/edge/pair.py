"""The two paths of clients from before Streamable HTTP: `/sse` and `/messages`.

Guarded and bounded like the endpoint itself; off unless the configuration switches it on.
"""

from collections.abc import Mapping

from aiohttp import web

from gateway.edge.endpoint import Endpoint, Verb, answered
from gateway.edge.refusals import Refused
from gateway.edge.sse import HeldStream
from gateway.edge.wire import RequestWire
from gateway.eras.sides import Headers, OldEntrance, Posted, Stream
from gateway.protocol.errors import Throttled

LISTEN, POST = "/sse", "/messages"
SESSION = "sessionId"


class PairOfPaths:
    """Further paths of an endpoint."""

    def __init__(self, entrance: OldEntrance, endpoint: Endpoint) -> None:
        self._entrance = entrance
        self._endpoint = endpoint

    @property
    def verbs(self) -> Mapping[str, Mapping[str, Verb]]:
        """By path and method."""
        options = self._endpoint.options
        return {
            LISTEN: {"GET": self._listen, "OPTIONS": options},
            POST: {"POST": self._post, "OPTIONS": options},
        }

    async def _listen(
        self, request: web.BaseRequest, headers: Headers, more: Mapping[str, str]
    ) -> web.StreamResponse:
        endpoint = self._endpoint
        principal = endpoint.guard.principal(headers)
        if not endpoint.guard.accepted(headers).stream:
            raise Refused(406, "This is an event stream: send `Accept: text/event-stream`.")
        opened: list[tuple[str, HeldStream]] = []
        wire = RequestWire(request)

        def open_stream(session_id: str) -> Stream:
            stream = endpoint.hold(wire, more)
            opened.append((session_id, stream))
            stream.queue(b"event: endpoint\ndata: %s?%s=%s\n\n" % _texts(session_id))
            return stream

        try:
            await self._entrance.open(principal, open_stream).wait_ended()
            return wire.response
        except Throttled as error:
            raise Refused(503, error.message, headers={"Retry-After": "5"}) from None
        finally:
            wire.release()
            for session_id, stream in opened:
                self._entrance.left(session_id, principal)
                endpoint.let_go(stream)

    async def _post(
        self, request: web.BaseRequest, headers: Headers, more: Mapping[str, str]
    ) -> web.StreamResponse:
        principal, body = await self._endpoint.received(request, headers)
        posted = Posted(headers, body, principal, accepts_stream=True, accepts_json=False)
        session_id = request.rel_url.query.get(SESSION, "")
        answer, work = self._entrance.post(session_id, posted)
        if work is not None:
            self._endpoint.spawn(work)
        return answered(answer, more)


def _texts(session_id: str) -> tuple[bytes, bytes, bytes]:
    return POST.encode(), SESSION.encode(), session_id.encode()
