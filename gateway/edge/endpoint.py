"""The MCP endpoint: from an HTTP request to an era's entrance, and its answer back.

The hot path is `post` -> `Entrance.post`, one call stack (`direct` makes its task), for a
small POST without any timer or queue of our own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, cast

import structlog
from aiohttp import web

from gateway.edge.accepting import Accepts
from gateway.edge.body import ClientGone, body_at_hand, read_body, too_large
from gateway.edge.guard import Admission, Guard
from gateway.edge.pulse import Pulse
from gateway.edge.refusals import INTERNAL_ERROR, JSON, SERVER, Refused, addressed, error_body
from gateway.edge.request_head import RequestHead
from gateway.edge.sse import HeldStream, StreamingReply
from gateway.edge.wire import RequestWire, Wire
from gateway.eras.sides import Answer, Entrance, Headers, Posted

log = structlog.get_logger()

Verb = Callable[[web.BaseRequest, Headers, Mapping[str, str]], Awaitable[web.StreamResponse]]
"""Serves one HTTP method of one path; the mapping holds headers for every answer."""

PATHS = frozenset({"/mcp", "/mcp/"})
CRASHED = Answer(500, error_body("Internal error", INTERNAL_ERROR))
STOPPING = Answer(
    503,
    error_body("The gateway is stopping; try again in a moment.", INTERNAL_ERROR),
    {"Retry-After": "5", "Connection": "close"},
)


class Endpoint:
    """Serves one URL to both eras. `serve` is the handler of a `Listener`."""

    def __init__(
        self,
        entrance: Entrance,
        guard: Guard,
        pulse: Pulse,
        tasks: asyncio.TaskGroup,
        *,
        body_bytes: int,
        request_s: float,
    ) -> None:
        self._entrance = entrance
        self.guard = guard
        self._pulse = pulse
        self._tasks = tasks
        self.body_bytes = body_bytes
        self.request_s = request_s
        self.more_paths: Mapping[str, Mapping[str, Verb]] = {}
        """What else is served here, by path and method."""
        self._verbs: Mapping[str, Verb] = {
            "POST": self._post,
            "GET": self._get,
            "DELETE": self._delete,
            "OPTIONS": self.options,
        }

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = cast(Headers, request.headers)
        more = self.guard.cors(headers)
        try:
            self.guard.admit(headers)
            verbs = self._verbs if request.raw_path in PATHS else self._found(request)
            verb = verbs.get(request.method)
            if verb is None:
                allowed = ", ".join(verbs)
                raise Refused(405, f"Use one of {allowed}.", headers={"Allow": allowed})
            return await verb(request, headers, more)
        except Refused as refused:
            log.debug("request.refused", status=refused.status, reason=refused.message)
            return refused.response(more)
        except ClientGone:
            raise
        except Exception:  # boundary 1 of 3: a bug must not reach the client, nor end the rest
            log.exception("request.crashed", method=request.method)
            return answered(CRASHED, more)

    async def _post(
        self, request: web.BaseRequest, headers: Headers, more: Mapping[str, str]
    ) -> web.StreamResponse:
        admission = self.guard.may_post(headers)
        body = await self._body(request)
        if admission.guard is not self.guard:  # the configuration is another one by now
            self.guard.admit(headers)
            admission = self.guard.may_post(headers)
        wire = RequestWire(request)
        answer = await self._answer(headers, body, admission, more, wire)
        return wire.response if answer is None else answered(answer, more)

    def post(self, head: RequestHead, body: bytes, wire: Wire) -> Awaitable[Answer | None]:
        """The same for what came as a whole (`direct.Post`)."""
        headers, guard = head.headers, self.guard
        more = guard.cors(headers)
        admission = head.admission
        try:
            if admission is None or admission.guard is not guard:
                guard.admit(headers)
                admission = head.admission = guard.may_post(headers)
            if len(body) > self.body_bytes:
                raise too_large(self.body_bytes)
        except Refused as refused:
            log.debug("request.refused", status=refused.status, reason=refused.message)
            return _at_once(refused.answer(more))
        answer = self._answer(headers, body, admission, more, wire)
        return _with(more, answer) if more else answer

    async def _answer(
        self,
        headers: Headers,
        body: bytes,
        admission: Admission,
        more: Mapping[str, str],
        wire: Wire,
    ) -> Answer | None:
        """None if it was a stream, which is out."""
        accepts = admission.accepts
        reply = StreamingReply(wire, accepts, more, self._pulse, self.spawn)
        self._pulse.open.add(reply)
        posted = Posted(headers, body, admission.principal, accepts.stream, accepts.json)
        try:
            try:
                answer = await self._entrance.post(posted, reply)
            except asyncio.CancelledError:
                if not _taken_back(reply):
                    raise
                answer = STOPPING
            except Exception:  # boundary 1 of 3, where an answer may have begun
                log.exception("request.crashed", method="POST")
                answer = CRASHED
            if not (reply.streaming or _must_stream(answer, accepts)):
                return answer
            if answer is STOPPING or answer is CRASHED:
                answer = addressed(answer, body)
            await reply.finish(answer)
            return None
        finally:
            self._pulse.close(reply)
            reply.closed()

    async def _get(
        self, request: web.BaseRequest, headers: Headers, more: Mapping[str, str]
    ) -> web.StreamResponse:
        principal = self.guard.principal(headers)
        opened: list[HeldStream] = []
        wire = RequestWire(request)

        def open_stream() -> HeldStream:
            # Only now: to say first whether there is anything here for GET is the era's part.
            if not self.guard.accepted(headers).stream:
                raise Refused(
                    406,
                    "This is an MCP endpoint: MCP clients send POST here, and GET with "
                    "`Accept: text/event-stream` to be told of changes.",
                )
            stream = self.hold(wire, more)
            opened.append(stream)
            return stream

        try:
            answer = await self._entrance.get(headers, principal, open_stream)
            if isinstance(answer, Answer):
                return answered(answer, more)
            await answer.wait_ended()
            return wire.response
        finally:
            wire.release()
            for stream in opened:
                self._entrance.left(headers, principal, stream)
                self.let_go(stream)

    async def _delete(
        self, request: web.BaseRequest, headers: Headers, more: Mapping[str, str]
    ) -> web.StreamResponse:
        principal = self.guard.principal(headers)
        return answered(await self._entrance.delete(headers, principal), more)

    async def options(
        self, request: web.BaseRequest, headers: Headers, more: Mapping[str, str]
    ) -> web.StreamResponse:
        # Before any token is asked for: browsers send none with a preflight.
        allowed = {**SERVER, **self.guard.preflight(headers), **more}
        return web.Response(status=204, headers=allowed)

    # --- what further paths are served with ---

    async def received(
        self, request: web.BaseRequest, headers: Headers
    ) -> tuple[str | None, bytes]:
        """Whose POST it is, and its body. Raises `Refused`."""
        self.guard.principal(headers)
        self.guard.media_type(headers)
        body = await self._body(request)
        self.guard.admit(headers)  # the configuration may be another one by now
        return self.guard.principal(headers), body

    async def _body(self, request: web.BaseRequest) -> bytes:
        body = body_at_hand(request, self.body_bytes)
        return await read_body(request, self.body_bytes, self.request_s) if body is None else body

    def hold(self, wire: Wire, more: Mapping[str, str]) -> HeldStream:
        """Answer with a stream that stays open until `let_go`."""
        stream = HeldStream(wire, more, self._pulse, self.spawn)
        self._pulse.open.add(stream)
        return stream

    def let_go(self, stream: HeldStream) -> None:
        stream.end()
        self._pulse.close(stream)

    def _found(self, request: web.BaseRequest) -> Mapping[str, Verb]:
        """The verbs of another path, or of this endpoint after all: with a query, or as a
        whole URL."""
        path = request.rel_url.raw_path
        if path in PATHS:
            return self._verbs
        if path in self.more_paths:
            return self.more_paths[path]
        raise Refused(404, "There is nothing here. The MCP endpoint is at /mcp.")

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.create_task(_contained(work))


async def _contained(work: Coroutine[Any, Any, None]) -> None:
    """Whatever happens in one stream's task, its group and the other streams live on."""
    try:
        await work
    except Exception:  # boundary 1 of 3, for the half of an answer that has its own task
        log.exception("stream.crashed")


async def _at_once(answer: Answer) -> Answer:
    return answer


async def _with(more: Mapping[str, str], answering: Awaitable[Answer | None]) -> Answer | None:
    answer = await answering
    return answer and Answer(answer.status, answer.body, {**answer.headers, **more})


def _taken_back(reply: StreamingReply) -> bool:
    """Whether the cancellation was ours and meant the call alone: its client gets to know."""
    task = asyncio.current_task()
    if not reply.was_cut or task is None:
        return False
    task.uncancel()
    return True


def _must_stream(answer: Answer, accepts: Accepts) -> bool:
    return not accepts.json and answer.status == 200 and answer.body is not None


def answered(answer: Answer, more: Mapping[str, str]) -> web.Response:
    """An answer that is no stream, as HTTP."""
    if answer.body is None:
        return web.Response(status=answer.status, headers={**SERVER, **answer.headers, **more})
    headers = {**JSON, **answer.headers, **more} if answer.headers or more else JSON
    return web.Response(status=answer.status, body=answer.body, headers=headers)
