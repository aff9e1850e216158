"""The operator's address: open health and metrics, the rest for this machine or a token."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.calls.notices import Progress
from gateway.config.units import Address
from gateway.edge.admin.operator import (
    CallFilter,
    Check,
    Explanation,
    Readiness,
    ServerReport,
    Setting,
    Tell,
    ToolReport,
)
from gateway.edge.admin.pages import AdminPages
from gateway.edge.guard import Guard, own_names
from gateway.edge.listener import Listener
from gateway.edge.pulse import Pulse
from gateway.edge.sockets import bind
from gateway.identity.tokens import Tokens
from tests.edge.serving import Response, Secret, Served, connected
from tests.kit.waiting import run

ANN = Secret("ann", "tok-ann")
READY = Readiness(True, (Check("listener", True), Check("server:time", True)))
WAITING = Readiness(False, (Check("listener", True), Check("server:time", False, "still starting")))
CLOSED = [
    "/api/totals",
    "/api/series",
    "/api/servers",
    "/api/tools",
    "/api/explain?tool=x",
    "/api/calls",
    "/api/call",
]
HEALTH = ["/livez", "/readyz", "/healthz", "/metrics"]
PAGE = ["/", "/dashboard.css", "/dashboard.js"]
"""They tell nothing: what the page shows it asks for, with a token where one is wanted."""


class FakeOperator:
    """A gateway with one server and one tool."""

    def __init__(self, readiness: Readiness = READY) -> None:
        self.readiness = readiness
        self.asked_calls: list[tuple[int, CallFilter]] = []
        self.called: list[tuple[str, Mapping[str, Any]]] = []

    def servers(self) -> Sequence[ServerReport]:
        return [ServerReport("time", "ready", eras=("legacy",), pids=(42,), restarts=1, tools=1)]

    def tools(self) -> Sequence[ToolReport]:
        return [ToolReport("time__now", "time", "now", title="Now")]

    def explain(self, name: str) -> Explanation | None:
        if name != "time__now":
            return None
        setting = Setting("timeout", "10s", "onegate.yaml:7")
        return Explanation(name, "time", "now", "allow", "time__*", (setting,))

    async def reload(self) -> Any:
        return {"ok": True}

    def totals(self) -> Sequence[Any]:
        return []

    def series(self, tool: str) -> Any:
        return {"name": tool}

    def calls(self, last: int, only: CallFilter) -> Sequence[Any]:
        self.asked_calls.append((last, only))
        return [{"call": "c1", "outcome": "ok"}]

    async def call(
        self, name: str, arguments: Mapping[str, Any], emit: Tell | None = None
    ) -> Mapping[str, Any]:
        self.called.append((name, arguments))
        if name == "crash":
            raise ZeroDivisionError("secret detail")
        if emit is not None:
            emit(Progress({"progress": 1, "message": "half\nway"}))
        await asyncio.sleep(0)
        return {"result": {"content": []}}

    def ready(self) -> Readiness:
        return self.readiness

    async def metrics(self, accept: str) -> tuple[bytes, str]:
        kind = "openmetrics" if "openmetrics" in accept else "plain"
        return b"onegate_build_info 1\n", f"text/{kind}; version=1"


@asynccontextmanager
async def admin(
    operator: FakeOperator, *, is_local: bool = True, tokens: Sequence[Secret] | None = None
) -> AsyncIterator[Served]:
    async with asyncio.TaskGroup() as tasks:
        bound = await bind([Address("127.0.0.1", 0)], "admin")
        pulse = Pulse()
        known = None if tokens is None else Tokens(tokens)
        guard = Guard(own_names([one.address for one in bound], (), ()), known)
        pages = AdminPages(operator, guard, is_local=is_local, request_s=5.0)
        listener = Listener(pages.serve, pulse, tasks, header_bytes=2**16)
        await listener.start(bound)
        try:
            yield Served(bound[0].address.port, pulse, listener)
        finally:
            await listener.drain(0.05)


def page(
    path: str,
    *,
    method: str = "GET",
    body: bytes = b"",
    operator: FakeOperator | None = None,
    server: Mapping[str, Any] | None = None,
    **headers: str | None,
) -> Response:
    found: list[Response] = []

    async def main() -> None:
        async with (
            admin(operator or FakeOperator(), **(server or {})) as served,
            connected(served) as client,
        ):
            client.request(method, path, body, **{"Accept": None, **headers})
            found.append(await (client.head() if method == "HEAD" else client.response()))

    run(main())
    return found[0]


def test_it_lives_as_long_as_it_answers() -> None:
    answer = page("/livez", operator=FakeOperator(WAITING))
    assert (answer.status, answer.body) == (200, b"ok\n")


def test_it_is_ready_when_every_check_is() -> None:
    assert (page("/readyz").status, page("/readyz").body) == (200, b"ok\n")
    assert page("/readyz?verbose").body.splitlines() == [
        b"[+]listener ok",
        b"[+]server:time ok",
        b"ok",
    ]


def test_what_is_not_ready_says_what_is_missing() -> None:
    answer = page("/readyz", operator=FakeOperator(WAITING))
    assert answer.status == 503
    assert answer.body == b"[-]server:time failed: still starting\nnot ready\n"
    as_json = page("/readyz", operator=FakeOperator(WAITING), Accept="application/json")
    assert as_json.status == 503
    assert as_json.json["checks"][1] == {
        "name": "server:time",
        "ok": False,
        "reason": "still starting",
    }


def test_health_tells_the_state_of_each_server_and_is_never_an_error() -> None:
    answer = page("/healthz", operator=FakeOperator(WAITING))
    assert answer.status == 200
    assert answer.json["ready"] is False
    assert answer.json["servers"]["time"]["state"] == "ready"


def test_metrics_come_in_the_form_asked_for() -> None:
    assert page("/metrics", Accept="*/*").headers["content-type"] == "text/plain; version=1"
    answer = page("/metrics", Accept="application/openmetrics-text;version=1.0.0")
    assert answer.headers["content-type"] == "text/openmetrics; version=1"
    assert answer.body == b"onegate_build_info 1\n"


@pytest.mark.parametrize("path", HEALTH)
def test_probes_may_ask_for_the_head_alone(path: str) -> None:
    assert page(path, method="HEAD").status == 200


def test_servers_tools_and_explanations_are_told_as_json() -> None:
    [server] = page("/api/servers").json["servers"]
    assert (server["name"], server["state"], server["pids"]) == ("time", "ready", [42])
    [tool] = page("/api/tools").json["tools"]
    assert (tool["name"], tool["tool"], tool["decision"]) == ("time__now", "now", "allow")
    explained = page("/api/explain?tool=time__now").json
    assert explained["settings"] == [
        {"name": "timeout", "value": "10s", "source": "onegate.yaml:7"}
    ]


def test_an_unknown_tool_has_no_explanation() -> None:
    assert page("/api/explain?tool=nope").status == 404
    assert page("/api/explain").status == 400


def test_calls_can_be_filtered_and_are_bounded() -> None:
    operator = FakeOperator()
    answer = page("/api/calls?last=5&server=time&outcome=ok", operator=operator)
    assert answer.json == {"calls": [{"call": "c1", "outcome": "ok"}]}
    page("/api/calls?last=999999&tool=now", operator=operator)
    page("/api/calls?last=-3", operator=operator)
    assert operator.asked_calls == [
        (5, CallFilter(server="time", outcome="ok")),
        (1000, CallFilter(tool="now")),
        (0, CallFilter()),
    ]
    assert page("/api/calls?last=many").status == 400


def _call(body: bytes, operator: FakeOperator, **headers: Any) -> Response:
    return page("/api/call", method="POST", body=body, operator=operator, **headers)


def test_a_tool_can_be_called() -> None:
    operator = FakeOperator()
    body = json.dumps({"tool": "time__now", "arguments": {"zone": "UTC"}}).encode()
    assert _call(body, operator).json == {"result": {"content": []}}
    assert operator.called == [("time__now", {"zone": "UTC"})]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"tool":1}', b'{"tool":"x","y":1}', b"\xff"])
def test_a_call_that_cannot_be_read_says_what_one_looks_like(body: bytes) -> None:
    operator = FakeOperator()
    answer = _call(body, operator)
    assert answer.status == 400
    assert "arguments" in answer.error
    assert operator.called == []


def test_a_web_page_can_neither_call_nor_read() -> None:
    """No CORS here, and JSON alone: what a browser sends without asking first is refused."""
    operator = FakeOperator()
    body = b'{"tool":"time__now"}'
    assert _call(body, operator, Content_Type="text/plain").status == 415
    assert _call(body, operator, Origin="https://evil.example").status == 403
    assert _call(body, operator, Origin="null").status == 403
    assert operator.called == []


@pytest.mark.parametrize("path", [*HEALTH, *CLOSED])
def test_a_foreign_host_or_origin_is_refused_everywhere(path: str) -> None:
    assert page(path, Host="evil.example").status == 403
    assert page(path, Origin="https://evil.example").status == 403


def test_the_front_page_says_what_this_is_and_may_not_be_framed() -> None:
    answer = page("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert b"onegate" in answer.body
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_every_page_the_front_page_names_exists() -> None:
    body = page("/").body.decode()
    named = [part.split('"')[0] for part in re.split('(?:href|src)="', body)[1:]]
    named = [path for path in named if path.startswith("/")]
    assert len(named) == 4
    assert {page(path).status for path in named} == {200}


def test_there_is_nothing_else() -> None:
    assert page("/api/secrets").status == 404
    assert page("/livez", method="POST").status == 405
    answer = page("/api/call")
    assert (answer.status, answer.headers["allow"]) == (405, "post")


@pytest.mark.parametrize("path", HEALTH + PAGE)
@pytest.mark.parametrize("tokens", [None, [], [ANN]])
def test_beyond_loopback_health_and_metrics_stay_open(
    path: str, tokens: list[Secret] | None
) -> None:
    assert page(path, server={"is_local": False, "tokens": tokens}).status == 200


@pytest.mark.parametrize("path", CLOSED)
@pytest.mark.parametrize("tokens", [None, [], [ANN]])
def test_beyond_loopback_the_rest_wants_a_token(path: str, tokens: list[Secret] | None) -> None:
    server = {"is_local": False, "tokens": tokens}
    operator = FakeOperator()
    for authorization in (None, "Bearer wrong", f"Bearer {ANN.sha256}"):
        answer = page(path, operator=operator, server=server, Authorization=authorization)
        assert answer.status == 401
        assert answer.headers["www-authenticate"].startswith("bearer realm=")
    assert operator.asked_calls == []


def test_beyond_loopback_a_token_opens_the_rest() -> None:
    server = {"is_local": False, "tokens": [ANN]}
    token = f"Bearer {ANN.text}"
    assert page("/api/servers", server=server, Authorization=token).status == 200


def test_on_loopback_reading_is_open_but_a_call_wants_a_token_where_there_are_tokens() -> None:
    """Else whoever has an account on this machine could go round them."""
    server, operator = {"tokens": [ANN]}, FakeOperator()
    assert page("/api/tools", operator=operator, server=server).status == 200
    call: dict[str, Any] = {
        "method": "POST",
        "body": b'{"tool":"time__now"}',
        "operator": operator,
        "server": server,
        "Content-Type": "application/json",
    }
    assert page("/api/call", **call).status == 401
    assert operator.called == []
    assert page("/api/call", Authorization=f"Bearer {ANN.text}", **call).status == 200
    assert [name for name, _ in operator.called] == ["time__now"]


def test_a_bug_is_an_internal_error_outside_and_a_traceback_inside() -> None:
    with capture_logs() as logs:
        answer = _call(b'{"tool":"crash"}', FakeOperator())
    assert (answer.status, answer.error) == (500, "Internal error")
    [crash] = [line for line in logs if line["event"] == "request.crashed"]
    assert isinstance(crash["exc_info"], ZeroDivisionError)
