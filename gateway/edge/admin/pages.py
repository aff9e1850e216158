"""The admin address: health, metrics, and JSON for the command line.

Beyond loopback only health and metrics are open; the rest wants a bearer token.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, cast

import msgspec
from aiohttp import web

from gateway.edge.admin.dashboard import DASHBOARD
from gateway.edge.admin.operator import CallFilter, Operator, Readiness
from gateway.edge.admin.progress_lines import LINES, answer_in_lines
from gateway.edge.body import body_at_hand, read_body
from gateway.edge.connections import connection_of
from gateway.edge.guard import Guard
from gateway.edge.refusals import JSON, SERVER, Refused
from gateway.eras.sides import Headers
from gateway.protocol.jsonrpc import as_bytes

BODY_BYTES = 4 * 2**20
CALL = "/api/call"
POSTED = frozenset({CALL, "/-/reload"})
"""Pages that do something."""
MOST_CALLS = 1000
TEXT = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", **SERVER}
NO_STORE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

PAGE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    **NO_STORE,
    **SERVER,
}
"""Nothing from elsewhere, nothing inline: what servers call their tools is only ever text."""

Page = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `POST /api/call`."""

    tool: str
    arguments: dict[str, Any] = {}


class AdminPages:
    """Serves the operator. `serve` is the handler of a `Listener`."""

    def __init__(
        self,
        operator: Operator,
        guard: Guard,
        *,
        is_local: bool,
        request_s: float,
    ) -> None:
        """`is_local`: nobody but this machine can reach the address. Where others can, `guard`
        must know the tokens; one without tokens lets nobody beyond health and metrics."""
        self._operator = operator
        self.guard = guard
        self._is_local = is_local
        self.request_s = request_s
        self._open: Mapping[str, Page] = {
            "/livez": self._livez,
            "/readyz": self._readyz,
            "/healthz": self._healthz,
            "/metrics": self._metrics,
            # The page itself tells nothing: what it shows it has to ask for, as anybody else.
            **dict.fromkeys(DASHBOARD, self._dashboard),
        }
        self._closed: Mapping[str, Page] = {
            "/api/servers": self._servers,
            "/api/tools": self._tools,
            "/api/explain": self._explain,
            "/api/calls": self._calls,
            "/api/totals": self._totals,
            "/api/series": self._series,
            CALL: self._call,
            "/-/reload": self._reload,
        }

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            headers = cast(Headers, request.headers)
            self.guard.admit(headers)
            return await self._page(request, headers)(request)
        except Refused as refused:
            return refused.response({})

    def _page(self, request: web.BaseRequest, headers: Headers) -> Page:
        path = request.rel_url.raw_path
        page = self._open.get(path)
        if page is None:
            page = self._closed.get(path)
            if page is None:
                raise Refused(404, "There is no such page; / lists those that exist.")
            if not self._is_local:
                self.guard.required_principal(headers)
            elif path == CALL:  # else any local user could go round the tokens
                self.guard.principal(headers)
        allowed = ("POST",) if path in POSTED else ("GET", "HEAD")
        if request.method not in allowed:
            names = ", ".join(allowed)
            raise Refused(405, f"Use {names} here.", headers={"Allow": names})
        return page

    async def _livez(self, request: web.BaseRequest) -> web.Response:
        """The loop answers: that is all liveness may depend on."""
        return web.Response(body=b"ok\n", headers=TEXT)

    async def _readyz(self, request: web.BaseRequest) -> web.Response:
        readiness = self._operator.ready()
        status = 200 if readiness.ok else 503
        if "application/json" in request.headers.get("Accept", ""):
            return _json(readiness, status)
        is_verbose = "verbose" in request.query
        return web.Response(status=status, text=_spelt(readiness, is_verbose), headers=TEXT)

    async def _healthz(self, request: web.BaseRequest) -> web.Response:
        """The state of each server. Always 200: whom to page is for readiness to say."""
        states = {
            server.name: {
                "state": server.state,
                "since": server.since,
                "restarts": server.restarts,
                "required": server.required,
            }
            for server in self._operator.servers()
        }
        return _json({"ready": self._operator.ready().ok, "servers": states})

    async def _metrics(self, request: web.BaseRequest) -> web.Response:
        accept = request.headers.get("Accept", "")
        body, content_type = await self._operator.metrics(accept)
        return web.Response(body=body, headers={"Content-Type": content_type, **SERVER})

    async def _dashboard(self, request: web.BaseRequest) -> web.Response:
        body, content_type = DASHBOARD[request.rel_url.raw_path]
        return web.Response(body=body, headers={**PAGE, "Content-Type": content_type})

    async def _totals(self, request: web.BaseRequest) -> web.Response:
        return _json({"tools": self._operator.totals()})

    async def _series(self, request: web.BaseRequest) -> web.Response:
        return _json(self._operator.series(request.query.get("tool", "")))

    async def _servers(self, request: web.BaseRequest) -> web.Response:
        return _json({"servers": self._operator.servers()})

    async def _tools(self, request: web.BaseRequest) -> web.Response:
        return _json({"tools": self._operator.tools()})

    async def _explain(self, request: web.BaseRequest) -> web.Response:
        name = request.query.get("tool")
        if not name:
            raise Refused(400, "Which tool? Ask for /api/explain?tool=NAME.")
        explanation = self._operator.explain(name)
        if explanation is None:
            raise Refused(404, f"No server offers a tool {name[:100]!r}.")
        return _json(explanation)

    async def _reload(self, request: web.BaseRequest) -> web.Response:
        """As Prometheus has it: POST, no body. 500 with the reasons where the file is bad."""
        done = await self._operator.reload()
        return _json(done, 200 if done["ok"] else 500)

    async def _calls(self, request: web.BaseRequest) -> web.Response:
        query = request.query
        try:
            last = int(query.get("last", "50"))
        except ValueError:
            raise Refused(400, "`last` is a number of calls.") from None
        only = CallFilter(query.get("server"), query.get("tool"), query.get("outcome"))
        return _json({"calls": self._operator.calls(max(0, min(last, MOST_CALLS)), only)})

    async def _call(self, request: web.BaseRequest) -> web.StreamResponse:
        self.guard.media_type(cast(Headers, request.headers))
        body = body_at_hand(request, BODY_BYTES)
        if body is None:
            body = await read_body(request, BODY_BYTES, self.request_s)
        try:
            asked = msgspec.json.decode(body, type=Asked)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Refused(400, f'Send {{"tool": NAME, "arguments": {{…}}}}: {error}') from None
        call = partial(self._operator.call, asked.tool, asked.arguments)
        connection = connection_of(request)
        connection.ends = asyncio.current_task()  # with the operator goes the call
        try:
            if LINES in request.headers.get("Accept", ""):
                return await answer_in_lines(request, call)
            return _json(await call())
        finally:
            connection.ends = None


def _json(value: object, status: int = 200) -> web.Response:
    body = as_bytes(value) + b"\n"
    return web.Response(status=status, body=body, headers={**JSON, **NO_STORE})


def _spelt(readiness: Readiness, is_verbose: bool) -> str:
    """As Kubernetes' own components write it; without `verbose`, only what is wrong."""
    lines = [
        f"[{'+' if check.ok else '-'}]{check.name} {_state(check.ok, check.reason)}"
        for check in readiness.checks
        if is_verbose or not check.ok
    ]
    return "\n".join([*lines, "ok" if readiness.ok else "not ready"]) + "\n"


def _state(ok: bool, reason: str | None) -> str:
    return "ok" if ok else f"failed: {reason or 'no reason known'}"
