"""Who may talk to a listener at all. Over real sockets, one row of a table a request."""

import pytest

from gateway.config.units import Address
from gateway.edge.guard import Remembered, own_names
from tests.edge.serving import FakeEntrance, Response, Secret, Served, asked, connected, serving
from tests.kit.waiting import run

KNOWN = Secret("ann", "tok-ann-3c1f")
OTHER = Secret("bob", "tok-bob-77aa")


def answer_to(
    method: str = "POST",
    path: str = "/mcp",
    *,
    entrance: FakeEntrance | None = None,
    served_with: dict[str, object] | None = None,
    **headers: str | None,
) -> Response:
    """What one request gets. `PORT` in a header stands for the listener's own."""
    found: list[Response] = []

    async def main() -> None:
        async with (
            serving(entrance or FakeEntrance(), **(served_with or {})) as served,
            connected(served) as client,
        ):
            filled = {k: v and v.replace("PORT", str(served.port)) for k, v in headers.items()}
            client.request(method, path, b"{}" if method == "POST" else b"", **filled)
            found.append(await client.response())

    run(main())
    return found[0]


@pytest.mark.parametrize(
    "host", ["127.0.0.1:PORT", "localhost:PORT", "[::1]:PORT", "LOCALHOST:PORT"]
)
def test_a_host_of_our_own_is_served(host: str) -> None:
    assert answer_to(Host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:PORT",
        "localhost",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost:PORT.evil.example",
        "127.0.0.1:PORT@evil.example",
        "localhost.:PORT",
        "10.0.0.7:PORT",
        "",
    ],
)
def test_any_other_host_is_refused_and_told_what_to_do(host: str) -> None:
    """DNS rebinding: a page whose name was made to point at loopback (2026-07-28)."""
    entrance = FakeEntrance()
    answer = answer_to(entrance=entrance, Host=host)
    assert answer.status == 403
    assert "allowed_hosts" in answer.error
    assert entrance.posted == []


def test_a_missing_host_is_refused() -> None:
    assert answer_to(Host=None).status == 400


def test_http_1_0_without_a_host_is_refused_too() -> None:
    async def main() -> None:
        async with serving(FakeEntrance()) as served, connected(served) as client:
            client.send(b"POST /mcp HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}")
            assert (await client.response()).status == 403

    run(main())


@pytest.mark.parametrize("host", ["gate.example", "gate.example:PORT", "Gate.Example"])
def test_a_configured_host_is_served_bare_and_on_our_port(host: str) -> None:
    assert answer_to(served_with={"hosts": ["gate.example"]}, Host=host).status == 200


def test_a_configured_host_with_a_port_means_that_port_alone() -> None:
    served_with: dict[str, object] = {"hosts": ["gate.example:8443"]}
    assert answer_to(served_with=served_with, Host="gate.example:8443").status == 200
    assert answer_to(served_with=served_with, Host="gate.example:PORT").status == 403
    assert answer_to(served_with=served_with, Host="gate.example").status == 403


def test_a_listener_on_every_interface_is_called_by_any_address_but_not_by_any_name() -> None:
    """A kubelet or Prometheus writes the pod's address; an address cannot be rebound."""
    names = own_names([Address("0.0.0.0", 8766)], (), ())
    assert names.has_host("10.1.2.3:8766")
    assert names.has_host("[fd00::5]:8766")
    assert not names.has_host("10.1.2.3:80")
    assert not names.has_host("10.1.2.3")
    assert not names.has_host("evil.example:8766")
    assert not own_names([Address("127.0.0.1", 8766)], (), ()).has_host("10.1.2.3:8766")


def test_on_the_default_port_names_need_no_port() -> None:
    names = own_names([Address("127.0.0.1", 80)], (), ())
    assert names.has_host("localhost")
    assert names.has_origin("http://localhost")


def test_a_unix_socket_is_called_localhost() -> None:
    assert own_names([Address(path="/run/gate.sock")], (), ()).has_host("localhost")


@pytest.mark.parametrize(
    "origin",
    ["http://localhost:PORT", "http://127.0.0.1:PORT", "http://[::1]:PORT", "https://app.example"],
)
def test_an_origin_of_our_own_or_configured_is_served(origin: str) -> None:
    served_with: dict[str, object] = {"origins": ["https://app.example"]}
    assert answer_to(served_with=served_with, Origin=origin).status == 200


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "https://evil.example",
        "https://localhost:PORT",
        "http://localhost",
        "http://localhost:1",
        "https://app.example.evil.example",
        "http://app.example",
        "",
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "OPTIONS"])
def test_any_other_origin_is_refused_whatever_the_method(origin: str, method: str) -> None:
    answer = answer_to(method, served_with={"origins": ["https://app.example"]}, Origin=origin)
    assert answer.status == 403
    assert "allowed_origins" in answer.error
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        'application/json ; charset="utf-8"; x=y',
    ],
)
def test_json_is_json_in_any_spelling(content_type: str) -> None:
    assert answer_to(Content_Type=content_type).status == 200


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "text/plain",
        "application/jsonx",
        "application/json-rpc",
        "application/x-www-form-urlencoded",
        "",
    ],
)
def test_a_body_that_does_not_say_json_is_refused(content_type: str | None) -> None:
    """Anything else a browser may send across origins without asking first (case B87)."""
    entrance = FakeEntrance()
    answer = answer_to(entrance=entrance, Content_Type=content_type)
    assert answer.status == 415
    assert "application/json" in answer.error
    assert entrance.posted == []


@pytest.mark.parametrize(
    ("accept", "as_json", "as_stream"),
    [
        (None, True, True),
        ("*/*", True, True),
        ("", True, True),
        ("application/*", True, False),
        ("application/json", True, False),
        ("APPLICATION/JSON", True, False),
        ("text/event-stream", False, True),
        ("text/*", False, True),
        ("application/json, text/event-stream", True, True),
        ("text/event-stream;q=0.9, application/json;q=0.1", True, True),
        ("application/json;q=0, text/event-stream", False, True),
        ("*/*, text/event-stream;q=0", True, False),
        ("text/html, */*;q=0.1", True, True),
        ("application/json; q=high", True, False),
    ],
)
def test_every_reasonable_accept_works_and_the_form_fits(
    accept: str | None, as_json: bool, as_stream: bool
) -> None:
    """Case B74."""
    entrance = FakeEntrance()
    answer = answer_to(entrance=entrance, Accept=accept)
    assert answer.status == 200
    assert answer.headers["content-type"] == (
        "application/json" if as_json else "text/event-stream"
    )
    [posted] = entrance.posted
    assert (posted.accepts_json, posted.accepts_stream) == (as_json, as_stream)


@pytest.mark.parametrize(
    "accept", ["text/html", "image/*", "*/*;q=0", "application/xml, text/plain"]
)
def test_an_accept_that_neither_form_fits_is_refused(accept: str) -> None:
    answer = answer_to(Accept=accept)
    assert answer.status == 406
    assert "text/event-stream" in answer.error


def test_two_accept_fields_count_together() -> None:
    async def main() -> None:
        async with serving(FakeEntrance()) as served, connected(served) as client:
            client.send(
                f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nAccept: text/html\r\n"
                "Accept: application/json\r\nContent-Type: application/json\r\n"
                "Content-Length: 2\r\n\r\n{}".encode()
            )
            assert (await client.response()).status == 200

    run(main())


def test_a_token_opens_the_door_and_names_who_came() -> None:
    entrance = FakeEntrance()
    served_with: dict[str, object] = {"tokens": [KNOWN, OTHER]}
    for written in (f"Bearer {OTHER.text}", f"bearer  {OTHER.text} "):
        answer = answer_to(entrance=entrance, served_with=served_with, Authorization=written)
        assert answer.status == 200
    assert [posted.principal for posted in entrance.posted] == ["bob", "bob"]


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize(
    ("authorization", "challenge"),
    [
        (None, 'Bearer realm="onegate"'),
        ("Bearer nonsense", 'Bearer realm="onegate", error="invalid_token"'),
        ("Bearer", 'Bearer realm="onegate", error="invalid_token"'),
        (f"Basic {KNOWN.text}", 'Bearer realm="onegate", error="invalid_token"'),
        (KNOWN.sha256, 'Bearer realm="onegate", error="invalid_token"'),
        (f"Bearer {KNOWN.sha256}", 'Bearer realm="onegate", error="invalid_token"'),
        ("Bearer \xff\xfe", 'Bearer realm="onegate", error="invalid_token"'),
    ],
)
def test_without_a_known_token_the_answer_is_401_with_a_challenge(
    method: str, authorization: str | None, challenge: str
) -> None:
    """Case B78, RFC 6750 3."""
    entrance = FakeEntrance()
    answer = answer_to(
        method, entrance=entrance, served_with={"tokens": [KNOWN]}, Authorization=authorization
    )
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == challenge.lower()
    secret = (authorization or "").partition(" ")[2]
    assert not secret or secret not in answer.error
    assert entrance.posted == []
    assert entrance.deleted == []


def test_a_token_in_the_query_is_no_token() -> None:
    path = f"/mcp?access_token={KNOWN.text}"
    assert answer_to(path=path, served_with={"tokens": [KNOWN]}).status == 401


def test_two_authorization_fields_are_no_token() -> None:
    """A proxy may have checked the other one."""

    async def main() -> None:
        async with serving(FakeEntrance(), tokens=[KNOWN]) as served, connected(served) as client:
            client.send(
                f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
                f"Authorization: Bearer {KNOWN.text}\r\nAuthorization: Bearer {KNOWN.text}\r\n"
                "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}".encode()
            )
            assert (await client.response()).status == 401

    run(main())


def test_no_tokens_configured_but_asked_for_lets_nobody_in() -> None:
    assert answer_to(served_with={"tokens": []}, Authorization="Bearer x").status == 401


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
    ],
)
def test_well_known_pages_are_missing_not_forbidden(path: str) -> None:
    """A 401 there fails some clients, a document makes others start OAuth (ecosystem 0.4)."""
    assert answer_to("GET", path, served_with={"tokens": [KNOWN]}).status == 404


FOREIGN: dict[str, object] = {"origins": ["https://app.example"], "tokens": [KNOWN]}


def test_a_preflight_from_a_configured_origin_needs_no_token() -> None:
    """Case B77."""
    answer = answer_to(
        "OPTIONS",
        served_with=FOREIGN,
        Origin="https://app.example",
        Access_Control_Request_Method="POST",
        Access_Control_Request_Headers="content-type, mcp-param-Region, x-evil, mcp-param-a:b",
    )
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert "delete" in answer.headers["access-control-allow-methods"]
    allowed = set(answer.headers["access-control-allow-headers"].split(", "))
    assert {
        "content-type", "accept", "authorization", "mcp-session-id", "mcp-protocol-version",
        "last-event-id", "mcp-method", "mcp-name", "mcp-param-region",
    } <= allowed  # fmt: skip
    assert not {"x-evil", "mcp-param-a:b", "*"} & allowed
    assert "access-control-allow-credentials" not in answer.headers


def test_real_answers_and_errors_can_be_read_by_a_configured_origin() -> None:
    token = f"Bearer {KNOWN.text}"
    origin = "https://app.example"
    for answer, status in (
        (answer_to(served_with=FOREIGN, Origin=origin, Authorization=token), 200),
        (answer_to(served_with=FOREIGN, Origin=origin), 401),
        (answer_to(served_with=FOREIGN, Origin=origin, path="/nowhere"), 404),
        (
            answer_to(
                served_with=FOREIGN, Origin=origin, Authorization=token, Accept="text/event-stream"
            ),
            200,
        ),
    ):
        assert answer.status == status
        assert answer.headers["access-control-allow-origin"] == origin
        assert "mcp-session-id" in answer.headers["access-control-expose-headers"]
        assert answer.headers["vary"] == "origin"


def test_answers_to_others_differ_by_origin_but_allow_nobody() -> None:
    answer = answer_to(served_with={"origins": ["https://app.example"]})
    assert answer.headers["vary"] == "origin"
    assert "access-control-allow-origin" not in answer.headers


def test_without_configured_origins_there_is_no_cors_at_all() -> None:
    for answer in (answer_to(), answer_to("OPTIONS")):
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_what_is_remembered_is_bounded() -> None:
    asked_for: list[str] = []
    remembered = Remembered(lambda key: asked_for.append(key) or len(key))  # type: ignore[func-returns-value]
    for number in range(10_000):
        assert remembered[str(number)] == len(str(number))
    assert len(remembered) <= Remembered.MOST
    assert remembered["x" * 100_000] == 100_000
    assert "x" * 100_000 not in remembered
    before = len(asked_for)
    assert remembered["9999"] == 4
    assert len(asked_for) == before


async def _statuses(served: Served, hosts: list[str]) -> list[int]:
    return [(await asked(served, Host=host)).status for host in hosts]


def test_a_verdict_is_the_same_the_second_time() -> None:
    async def main() -> None:
        async with serving(FakeEntrance()) as served:
            good, bad = f"127.0.0.1:{served.port}", "evil.example"
            assert await _statuses(served, [good, bad, good, bad]) == [200, 403, 200, 403]

    run(main())
