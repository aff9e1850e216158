"""What may be written down of a call's arguments."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.observe.record import encode
from gateway.observe.redact import (
    HIDDEN,
    RAW_LONGEST,
    is_secret_key,
    redact,
    redact_raw,
    redact_text,
)
from tests.observe.records import record

SECRET_KEYS = [
    "password", "Password", "user_password", "passwd", "passphrase", "secret", "client_secret",
    "clientSecret", "token", "access_token", "accessToken", "refreshToken", "id-token",
    "authToken", "api_key", "apiKey", "API_KEY", "x-api-key", "apikey", "APIKey",
    "Authorization", "proxy-authorization", "auth", "cookie", "Set-Cookie", "credentials",
    "private_key", "privateKey", "accessKeyId", "aws_secret_access_key", "sshKey", "pin", "otp",
    "jwt", "sessionId", "session_id", "pwd", "db_pwd", "dsn", "connectionString", "bearer",
]  # fmt: skip
PLAIN_KEYS = [
    "path", "name", "query", "author", "authors", "sides", "content", "key", "keyword",
    "pinned", "spin", "shopping", "compass", "monkey", "url", "message", "data", "pattern",
    "patch",
]  # fmt: skip

CREDENTIALS = {
    "bearer": "curl -H 'Authorization: Bearer abc123def456ghi'",
    "bearer alone": "use bearer abc123def456ghi please",
    "basic": "Basic dXNlcjpwYXNzd29yZA==",
    "OpenAI": "sk-proj-abcdefghijklmnop1234",
    "Anthropic": "sk-ant-api03-abcdefghijklmnop",
    "Stripe": "sk_live_abcdefghijklmnop1234",
    "GitHub": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "GitHub fine-grained": "github_pat_11ABCDEFG0abcdefghijklmnop",
    "GitLab": "glpat-abcdefghijklmnopqrst",
    "Slack": "xoxb-123456789012-abcdefghijkl",
    "AWS": "AKIAIOSFODNN7EXAMPLE",
    "Google": "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "npm": "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijklmnop",
    "PEM": "-----BEGIN RSA PRIVATE KEY-----\nMIIEabcdefg\n-----END RSA PRIVATE KEY-----",
    "PEM cut off": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaabcdefg",
    "URL with a password": "postgres://user:hunter2abcdefg@db/x",
    "assignment": "export DB_PASSWORD=hunter2abcdefg",
    "query string": "https://x/?access_token=abcdefg12345&y=1",
    "JSON in text": '{"api_key": "abcdefg12345"}',
}


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_a_key_that_names_a_credential_is_known_in_any_spelling(key: str) -> None:
    assert redact({key: "hunter2"}) == {key: HIDDEN}
    assert redact({"deep": [{key: {"nested": "hunter2"}}]}) == {"deep": [{key: HIDDEN}]}


@pytest.mark.parametrize("key", PLAIN_KEYS)
def test_other_keys_are_not_mistaken_for_one(key: str) -> None:
    assert not is_secret_key(key)


@pytest.mark.parametrize("text", CREDENTIALS.values(), ids=CREDENTIALS)
def test_a_credential_is_found_wherever_it_stands(text: str) -> None:
    shown = redact_text(f"before {text} after")

    assert shown.startswith("before ")
    assert HIDDEN in shown
    for part in ("abcdefg", "hunter2", "IOSFODNN", "dXNlcjpw", "abc123", "eyJ", "123456789012"):
        assert part not in shown


def test_a_number_under_a_secret_key_is_hidden_but_a_count_of_tokens_is_not() -> None:
    shown = redact({"pin": 1234, "max_tokens": 4096, "token": None, "has_password": True})

    assert shown == {"pin": HIDDEN, "max_tokens": 4096, "token": None, "has_password": True}


def test_a_credential_as_a_key_is_hidden_too() -> None:
    assert "ghp_" not in json.dumps(redact({"ghp_abcdefghijklmnopqrstuvwxyz": 1}))


def test_ordinary_arguments_are_left_as_they_are() -> None:
    plain = {"sides": 6, "text": "basic knowledge of bearer bonds", "on": True, "x": [1.5, None]}
    assert redact(plain) == plain


def test_long_text_is_cut_and_hostile_text_made_visible() -> None:
    assert redact({"text": "x" * 1000}) == {"text": "x" * 256 + "… (1000 characters)"}
    assert redact({"a\nb": "\x1b[31m"}) == {"a\\nb": "\\x1b[31m"}


def test_a_credential_cut_in_two_where_the_search_ends_does_not_show() -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----"
    text = pem + " " * (8192 - len(pem) - 10) + "ghp_abcdefghijklmnopqrstuvwxyz"

    assert "ghp_" not in redact_text(text, 100_000)


def test_depth_and_number_of_members_are_bounded() -> None:
    deep: Any = "bottom"
    for _ in range(1000):
        deep = {"a": deep}

    assert "bottom" not in json.dumps(redact(deep))
    wide = redact({str(n): n for n in range(1000)})
    assert isinstance(wide, dict)
    assert (len(wide), wide["…"]) == (33, "[968 more]")
    assert redact(list(range(1000))) == [*range(32), "[968 more]"]


def test_all_of_it_together_stays_short() -> None:
    big = {f"k{n}": {f"m{m}": ["y" * 300] * 50 for m in range(50)} for n in range(50)}
    assert len(json.dumps(redact(big))) < 20_000


def test_arguments_too_long_to_read_are_told_by_their_size_alone() -> None:
    raw = msgspec.Raw(b'{"text":"' + b"x" * RAW_LONGEST + b'"}')
    assert redact_raw(raw) == f"[{RAW_LONGEST + 11} bytes]"


def test_arguments_nobody_can_decode_are_told_by_their_size_alone() -> None:
    assert redact_raw(b"[" * 2000 + b"]" * 2000) == "[4000 bytes, not readable]"
    assert redact_raw(b'{"a":"\\ud800"}') == "[14 bytes, not readable]"


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_whatever_json_comes_the_result_is_json_on_one_line(value: Any) -> None:
    line = encode(record(arguments=redact(value))).decode()
    assert len(line.splitlines()) == 1
    assert "arguments" in json.loads(line)
