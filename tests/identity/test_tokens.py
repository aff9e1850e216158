"""Who a bearer token belongs to."""

import hmac
from collections.abc import Sequence

import pytest

from gateway.identity.tokens import Tokens, bearer_token
from tests.edge.serving import Secret

ANN, BOB = Secret("ann", "tok-ann"), Secret("bob", "tok-bob")


@pytest.mark.parametrize(
    ("presented", "owner"),
    [
        ("tok-ann", "ann"),
        ("tok-bob", "bob"),
        ("tok-Ann", None),
        ("tok-ann ", None),
        ("", None),
        (ANN.sha256, None),
        ("\udcff\udcfe", None),
        ("x" * 100_000, None),
    ],
)
def test_a_token_belongs_to_whoever_its_hash_was_configured_for(
    presented: str, owner: str | None
) -> None:
    assert Tokens([ANN, BOB]).owner(presented) == owner


def test_no_configured_token_means_nobody_is_known() -> None:
    assert Tokens([]).owner("") is None


def test_every_configured_hash_is_compared_in_constant_time_whichever_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[bytes] = []

    def watching(left: bytes, right: bytes) -> bool:
        compared.append(right)
        return left == right

    monkeypatch.setattr(hmac, "compare_digest", watching)
    tokens = Tokens([ANN, BOB])
    for presented in (ANN.text, BOB.text, "neither"):
        compared.clear()
        tokens.owner(presented)
        assert compared == [bytes.fromhex(ANN.sha256), bytes.fromhex(BOB.sha256)]


@pytest.mark.parametrize(
    ("fields", "token"),
    [
        (["Bearer abc"], "abc"),
        (["bearer abc"], "abc"),
        (["BEARER   abc  "], "abc"),
        ([], None),
        (["Bearer"], None),
        (["Bearer  "], None),
        (["Basic abc"], None),
        (["abc"], None),
        (["Bearer abc", "Bearer abc"], None),
    ],
)
def test_a_bearer_token_is_read_from_exactly_one_field(
    fields: Sequence[str], token: str | None
) -> None:
    assert bearer_token(fields) == token
