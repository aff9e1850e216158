"""The admin address on the network: health and numbers for everybody, the rest for a token."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit.fakes import fake
from tests.kit.gateway import fetch, running_gateway
from tests.kit.ports import free_port
from tests.operations.starving import Want, starving_gateway

SERVERS = {"a": fake("--only", "echo", required=True)}
TOKEN = "the operator's"
TOKENS = {"tokens": [{"name": "op", "sha256": hashlib.sha256(TOKEN.encode()).hexdigest()}]}
BEARER = {"Authorization": f"Bearer {TOKEN}"}

OPEN = ("/livez", "/readyz", "/healthz", "/metrics", "/")
"""The page at / tells nothing: what it shows it asks for."""
CLOSED = (
    *("/api/servers", "/api/tools", "/api/calls", "/api/explain?tool=a__echo"),
    *("/api/totals", "/api/series"),
)


@pytest.mark.parametrize("auth", [TOKENS, None], ids=["tokens", "no tokens"])
def test_beyond_loopback_only_health_and_numbers_are_open(
    tmp_path: Path, auth: dict[str, Any] | None
) -> None:
    config = {"admin": f"0.0.0.0:{free_port()}"} | ({} if auth is None else {"auth": auth})
    with starving_gateway(tmp_path, SERVERS, Want(), **config) as gateway:
        for path in OPEN:
            assert fetch(gateway.admin + path)[0] == 200, path
        for path in CLOSED:
            assert fetch(gateway.admin + path)[0] == 401, path
            expected = 200 if auth else 401
            assert fetch(gateway.admin + path, headers=BEARER)[0] == expected, path
            assert fetch(gateway.admin + path, headers={"Authorization": "Bearer x"})[0] == 401

        asked = json.dumps({"tool": "a__echo", "arguments": {"text": "hello"}}).encode()
        for path, body in (("/-/reload", b""), ("/api/call", asked)):
            headers = {"Content-Type": "application/json"}
            assert fetch(gateway.admin + path, body, headers)[0] == 401, path
            status, told = fetch(gateway.admin + path, body, {**headers, **BEARER})
            assert status == (200 if auth else 401), (path, told)


def test_on_loopback_whoever_is_on_this_machine_may_reload_but_no_web_page(tmp_path: Path) -> None:
    with running_gateway(tmp_path, SERVERS) as gateway:
        reload = f"{gateway.admin}/-/reload"
        assert fetch(reload, b"")[0] == 200
        assert fetch(reload)[0] == 405
        for foreign in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
            assert fetch(reload, b"", foreign)[0] == 403
