"""Which era a request belongs to, seen from the request alone; and what each method answers.

Source: 2026-07-28 and 2025-11-25, basic/transports.
"""

from typing import Any

import pytest

from tests.conversations.talking import LEGACY_REVISIONS, Gate, P, client_of, each_era
from tests.kit.http import Answer, Legacy, Modern, Wire, read
from tests.kit.waiting import run

REMOVED = (
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "tasks/list",
    "tasks/result",
    "roots/list",
    "unknown/method",
)
NEWER = ("server/discover", "subscriptions/listen", "tasks/list", "unknown/method")


def initialize(version: Any = "2025-11-25", **more: Any) -> dict[str, Any]:
    params = {"capabilities": {}, "clientInfo": {"name": "kit", "version": "1"}, **more}
    if version is not None:
        params["protocolVersion"] = version
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


def posted(gate: Gate, body: object, headers: dict[str, str] | None = None) -> Answer:
    async def converse() -> Answer:
        async with Wire.to(gate.url) as wire:
            return await wire.post(body, headers)

    return run(converse())


def asked(gate: Gate, verb: str, headers: dict[str, str]) -> Answer:
    async def converse() -> Answer:
        async with Wire.to(gate.url) as wire:
            told = {**wire.headers, **headers}
            async with wire.http.request(verb, wire.url, headers=told) as response:
                return await read(response)

    return run(converse())


@pytest.mark.parametrize("method", REMOVED)
def test_methods_a_modern_client_does_not_have_are_unknown_and_go_nowhere(
    gate: Gate, method: str
) -> None:
    """404 and -32601 (2026-07-28 basic/transports); never forwarded to whoever has them."""
    since = gate.mark()

    async def converse() -> Answer:
        async with Modern.to(gate.url) as client:
            return await client.request(method, {"uri": "fake://plain", "level": "info"})

    answer = run(converse())

    assert (answer.status, answer.error["code"]) == (404, -32601)
    assert "Mcp-Session-Id" not in answer.headers
    assert not any(since.heard(server, method) for server in ("old", "new", "dual"))


@pytest.mark.parametrize("method", NEWER)
def test_methods_a_legacy_client_does_not_have_are_unknown_but_no_reason_to_leave(
    gate: Gate, method: str
) -> None:
    """404 would mean that the session is gone (2025-11-25 basic/transports)."""

    async def converse() -> Answer:
        async with client_of("legacy", gate.url) as client:
            return await client.request(method)

    answer = run(converse())

    assert (answer.status, answer.error["code"]) == (200, -32601)


def test_a_client_that_probes_first_and_then_initializes_is_nothing_special(gate: Gate) -> None:
    """2026-07-28 basic/versioning: discovery keeps no state, so nothing locks."""

    async def converse() -> list[str]:
        async with Modern.to(gate.url) as modern:
            found = (await modern.request("server/discover")).result["supportedVersions"]
            legacy = Legacy(modern.http, gate.url)
            chosen = (await legacy.initialize())["protocolVersion"]
            old = await legacy.call("old__echo", {"text": "legacy"})
            new = await modern.call("old__echo", {"text": "modern"})
            return [*found, chosen, old.text, new.text]

    assert run(converse()) == ["2026-07-28", "2025-11-25", "legacy", "modern"]


@pytest.mark.parametrize("version", LEGACY_REVISIONS)
def test_a_known_revision_is_agreed_to(gate: Gate, version: str) -> None:
    assert posted(gate, initialize(version)).result["protocolVersion"] == version


@pytest.mark.parametrize("version", ["2099-01-01", "2026-07-28", "1.0", "", 7, None])
def test_any_other_revision_is_answered_with_our_newest_of_that_kind(
    gate: Gate, version: object
) -> None:
    """cases B32: never an error, never an echo; 2026-07-28 has no handshake to agree in."""
    answer = posted(gate, initialize(version))

    assert (answer.status, answer.result["protocolVersion"]) == (200, "2025-11-25")


@pytest.mark.parametrize("header", ["2025-11-25", "2024-11-05", "2099-01-01", "nonsense"])
@pytest.mark.parametrize("meta", [{}, {"_meta": {"progressToken": 1}}])
def test_initialize_negotiates_in_its_body_whatever_its_header_says(
    gate: Gate, header: str, meta: dict[str, Any]
) -> None:
    """cases B33."""
    body = initialize("2025-06-18", **meta)

    answer = posted(gate, body, {"MCP-Protocol-Version": header})

    assert (answer.status, answer.result["protocolVersion"]) == (200, "2025-06-18")


@pytest.mark.parametrize("session", ["made-up", "0" * 32, ""])
def test_initialize_with_a_session_id_opens_another_session(gate: Gate, session: str) -> None:
    """cases B66: a client that starts anew must not be held to what it had."""
    answer = posted(gate, initialize(), {"Mcp-Session-Id": session})

    assert answer.status == 200
    assert answer.headers["Mcp-Session-Id"] not in ("", session)


@each_era
def test_what_is_offered_does_not_depend_on_who_asks(gate: Gate, era: str) -> None:
    """The gateway's lists change, so it always says that it tells of changes."""

    async def converse() -> dict[str, Any]:
        async with client_of(era, gate.url) as client:
            if isinstance(client, Legacy):
                return client.initialized
            return (await client.request("server/discover")).result

    told = run(converse())

    assert told["capabilities"] == {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "completions": {},
        "logging": {},
    }
    name = told["serverInfo"] if era == "legacy" else told["_meta"][f"{P}serverInfo"]
    assert name["name"] == "onegate"
    assert "Every tool here exists to be tested." in told["instructions"]


@pytest.mark.parametrize("headers", [{}, {"MCP-Protocol-Version": "2025-06-18"}])
@pytest.mark.parametrize(
    "body",
    [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        [{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}],
    ],
)
def test_without_a_session_or_an_envelope_nothing_but_initialize_is_served(
    gate: Gate, body: object, headers: dict[str, str]
) -> None:
    answer = posted(gate, body, headers)

    assert (answer.status, answer.error["code"]) == (400, -32600)


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
def test_get_and_delete_are_for_sessions_alone(gate: Gate, verb: str) -> None:
    modern = asked(gate, verb, {"MCP-Protocol-Version": "2026-07-28"})
    assert (modern.status, modern.headers["Allow"]) == (405, "POST")
    assert asked(gate, verb, {}).status == 400
    assert asked(gate, verb, {"Mcp-Session-Id": "made-up"}).status == 404


def test_a_modern_client_answers_no_questions(gate: Gate) -> None:
    """2026-07-28: clients never POST responses."""
    body = {"jsonrpc": "2.0", "id": 1, "result": {}}

    answer = posted(gate, body, {"MCP-Protocol-Version": "2026-07-28"})

    assert (answer.status, answer.error["code"]) == (400, -32600)


def test_a_session_id_means_nothing_to_a_modern_request(gate: Gate) -> None:
    """2026-07-28 basic/transports: ignored, and never given out."""

    async def converse() -> Answer:
        told = {"Mcp-Session-Id": "made-up", "Last-Event-ID": "7"}
        async with Modern.to(gate.url, told) as client:
            return await client.call("old__echo", {"text": "fine"})

    answer = run(converse())

    assert answer.text == "fine"
    assert "Mcp-Session-Id" not in answer.headers


def test_an_envelope_makes_a_request_modern_even_in_a_session(gate: Gate) -> None:
    async def converse() -> Answer:
        async with Legacy.to(gate.url) as client:
            await client.initialize()
            modern = Modern(client.http, gate.url, {"Mcp-Session-Id": str(client.session)})
            return await modern.request("ping")

    assert run(converse()).status == 404
