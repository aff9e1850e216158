"""The protocol under the example servers: both eras, every refusal, and a clean end."""

import subprocess
import sys
from typing import Any

import pytest

from tests.demo.child import ENVELOPE, PATIENCE_S, P, bare, legacy, modern
from tests.kit.processes import ROOT

SERVERS = ["dice", "clock", "release"]
LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("revision", LEGACY)
def test_every_legacy_revision_is_agreed_to_as_asked(server: str, revision: str) -> None:
    with legacy(server, revision) as child:
        assert child.result("ping") == {}
        assert "resultType" not in child.result("tools/list")


@pytest.mark.parametrize("wanted", ["2023-01-01", "2026-07-28", "soon"])
def test_an_unknown_revision_is_answered_with_the_newest_legacy_one(wanted: str) -> None:
    with bare("dice") as dice:
        assert dice.result("initialize", protocolVersion=wanted)["protocolVersion"] == LEGACY[-1]


def test_capabilities_say_what_is_there_in_both_eras() -> None:
    offered = {
        "tools": {},
        "resources": {"subscribe": True},
        "prompts": {},
        "completions": {},
    }
    with bare("release") as release:
        opened = release.result("initialize", protocolVersion=LEGACY[-1], capabilities={})
        assert opened["capabilities"] == offered
        assert opened["serverInfo"]["name"] == "release"
    with modern("release") as release:
        assert release.result("server/discover")["capabilities"] == offered
    with modern("dice") as dice:
        assert dice.result("server/discover")["capabilities"] == {"tools": {}}


@pytest.mark.parametrize("server", SERVERS)
def test_discover_names_the_modern_revision_and_the_server(server: str) -> None:
    with modern(server) as child:
        found = child.result("server/discover")

        assert found["supportedVersions"] == ["2026-07-28"]
        assert found["_meta"][f"{P}serverInfo"]["name"] == server


def test_a_modern_result_says_that_it_is_complete_and_who_it_is_from() -> None:
    with modern("dice") as dice:
        found = dice.call("word_count", text="")

        assert found["resultType"] == "complete"
        assert set(found["_meta"][f"{P}serverInfo"]) == {"name", "title", "version"}
        assert "ttlMs" not in found


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("server/discover", {}),
        ("tools/list", {}),
        ("prompts/list", {}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": "release://checklist"}),
    ],
)
def test_what_may_be_kept_says_for_how_long(method: str, params: dict[str, Any]) -> None:
    """Spec, server/utilities/caching: six results must. What is read may change at any time."""
    with modern("release") as release:
        found = release.result(method, **params)

        assert found["cacheScope"] == "public"
        assert (found["ttlMs"] == 0) is (method == "resources/read")


def test_both_eras_take_turns_on_one_process() -> None:
    with modern("release") as release:
        release.result("server/discover")
        release.meta = None
        release.result("initialize", protocolVersion="2025-06-18", capabilities={})
        assert "resultType" not in release.call("mark_passed", item="tagged")
        release.meta = ENVELOPE
        assert release.result("tools/list")["resultType"] == "complete"
        (content,) = release.result("resources/read", uri="release://checklist")["contents"]
        assert "- [x] The release is tagged" in content["text"]
        release.meta = None
        assert release.result("ping") == {}


@pytest.mark.parametrize(
    "meta",
    [
        {f"{P}protocolVersion": "2026-07-28"},
        {f"{P}clientCapabilities": {}},
        {f"{P}protocolVersion": 20260728, f"{P}clientCapabilities": {}},
        {f"{P}protocolVersion": "2026-07-28", f"{P}clientCapabilities": None},
    ],
)
def test_half_an_envelope_is_refused(meta: dict[str, Any]) -> None:
    with bare("dice") as dice:
        dice.meta = meta
        assert dice.error("tools/list")["code"] == -32602


@pytest.mark.parametrize("wanted", ["2027-01-01", "2025-11-25", ""])
def test_a_revision_that_is_not_spoken_is_refused_with_those_that_are(wanted: str) -> None:
    with bare("dice") as dice:
        dice.meta = ENVELOPE | {f"{P}protocolVersion": wanted}
        error = dice.error("tools/list")

        assert error["code"] == -32022
        assert error["data"] == {"supported": ["2026-07-28"], "requested": wanted}


def test_a_request_of_no_era_is_told_how_to_begin() -> None:
    with bare("dice") as dice:
        assert dice.result("ping") == {}
        error = dice.error("tools/list")

        assert error["code"] == -32602
        assert "initialize" in error["message"]
        assert f"{P}protocolVersion" in error["message"]


REMOVED = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]


@pytest.mark.parametrize("method", [*REMOVED, "no/such", "tools", ""])
def test_a_method_that_modern_clients_do_not_have_is_unknown(method: str) -> None:
    with modern("release") as release:
        assert release.error(method, uri="release://checklist")["code"] == -32601


@pytest.mark.parametrize(
    "method", ["server/discover", "subscriptions/listen", "logging/setLevel", "no/such"]
)
def test_a_method_that_legacy_clients_do_not_have_is_unknown(method: str) -> None:
    with legacy("release") as release:
        assert release.error(method)["code"] == -32601


@pytest.mark.parametrize("method", ["resources/list", "resources/subscribe", "prompts/list"])
def test_what_a_server_does_not_offer_is_unknown(method: str) -> None:
    with legacy("dice") as dice:
        assert dice.error(method)["code"] == -32601


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "no_such_tool"}),
        ("tools/call", {"name": None}),
        ("tools/call", {}),
        ("tools/call", {"name": "roll_dice", "arguments": [1]}),
        ("tools/call", {"name": "roll_dice", "arguments": None}),
        ("tools/list", {"cursor": ""}),
        ("tools/list", {"cursor": "2"}),
    ],
)
def test_params_that_are_not_right_are_refused(method: str, params: dict[str, Any]) -> None:
    with legacy("dice") as dice:
        assert dice.error(method, **params)["code"] == -32602
    with modern("dice") as dice:
        assert dice.error(method, **params)["code"] == -32602


LINES: list[tuple[bytes, int, Any]] = [
    (b"{", -32700, None),
    (b"hello", -32700, None),
    (b"\xff\xfe", -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', -32700, None),
    (b"[" * 100_000, -32700, None),
    (b"9" * 5_000, -32700, None),
    (b"null", -32600, None),
    (b'"ping"', -32600, None),
    (b"[]", -32600, None),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
    (b"{}", -32600, None),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1),
    (b'{"id":"a","method":"ping"}', -32600, "a"),
    (b'{"jsonrpc":"2.0","id":1}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', -32602, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":1}}', -32602, 1),
]


@pytest.mark.parametrize(("line", "code", "known_id"), LINES)
def test_a_line_that_is_no_request_is_refused_and_the_next_one_served(
    line: bytes, code: int, known_id: Any
) -> None:
    with bare("dice") as dice:
        dice.write(line)
        refused = dice.receive()

        assert (refused["error"]["code"], refused["id"]) == (code, known_id)
        assert dice.result("ping") == {}


SILENT = [
    b"",
    b"  \r",
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    b'{"jsonrpc":"2.0","method":"no/such"}',
    b'{"jsonrpc":"2.0","method":"tools/list"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}',
]


@pytest.mark.parametrize("line", SILENT)
def test_what_needs_no_answer_gets_none(line: bytes) -> None:
    with bare("dice") as dice:
        dice.write(line)

        assert dice.result("ping") == {}


@pytest.mark.parametrize(
    "line",
    [
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":"x","method":"ping"}',
        b'{"jsonrpc":"2.0","id":"x","method":"ping"}\r',
        b' \t{"method":"ping","extra":[1],"id":"x","jsonrpc":"2.0"} ',
    ],
)
def test_what_surrounds_a_request_does_no_harm(line: bytes) -> None:
    with bare("dice") as dice:
        dice.write(line)

        assert dice.receive() == {"jsonrpc": "2.0", "id": "x", "result": {}}


def test_batches_are_answered_as_one_in_the_one_revision_that_has_them() -> None:
    with legacy("dice", "2025-03-26") as dice:
        dice.write(
            b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"no/such"},'
            b'{"jsonrpc":"2.0","id":"2","method":"no/such"}, 5]'
        )
        first, second, third = dice.receive()

        assert (first["id"], first["result"]) == (1, {})
        assert (second["id"], second["error"]["code"]) == ("2", -32601)
        assert (third["id"], third["error"]["code"]) == (None, -32600)

        dice.write(b'[{"jsonrpc":"2.0","method":"notifications/initialized"}]')
        assert dice.result("ping") == {}


@pytest.mark.parametrize("server", SERVERS)
def test_the_end_of_input_is_a_clean_end(server: str) -> None:
    with bare(server) as child:
        child.result("ping")

        assert child.hang_up() == 0
        assert child.unread == []
        assert child.complaints == ""


def test_a_client_that_no_longer_reads_is_no_fault() -> None:
    many = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n' * 10
    child = subprocess.Popen(
        [sys.executable, "-m", "gateway.demo.dice"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout and child.stdin
    child.stdout.close()
    with child.stdin as stdin:
        stdin.write(many)
    assert child.wait(PATIENCE_S) == 0
    with child.stderr as stderr:  # type: ignore[union-attr]
        assert stderr.read() == b""


def test_a_stray_print_does_not_reach_the_client() -> None:
    program = (
        "from gateway.demo.conversation import serve\n"
        "from gateway.demo.server import Server\n"
        "from gateway.demo.tools import Answer, Tool\n"
        "schema = {'type': 'object', 'properties': {}}\n"
        "definition = {'name': 'loud', 'inputSchema': schema}\n"
        "loud = Tool(definition, lambda: print('oops') or Answer({}))\n"
        "serve(Server(name='loud', title='Loud', tools=(loud,)))\n"
    )
    line = (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}\n'
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"loud"}}\n'
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        input=line,
        capture_output=True,
        timeout=PATIENCE_S,
    )

    assert done.stderr == b"oops\n"
    assert b"oops" not in done.stdout
    assert len(done.stdout.splitlines()) == 2


def test_a_server_needs_nothing_but_itself_and_the_standard_library() -> None:
    program = (
        "import sys, gateway.demo.dice, gateway.demo.clock, gateway.demo.release\n"
        "print(*sorted(name for name in sys.modules if name.startswith('gateway')))\n"
    )
    # -S: without the folder where other packages are installed, importing one would fail.
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=ROOT, capture_output=True, timeout=PATIENCE_S
    )
    own = ["clock", "conversation", "dice", "release", "server", "tools"]

    assert done.stderr == b""
    assert done.stdout.decode().split() == [
        "gateway",
        "gateway.demo",
        *(f"gateway.demo.{name}" for name in own),
    ]
