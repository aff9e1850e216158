"""Names that every client and model takes, decided by the configuration and the name alone."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.catalog import naming

LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")
legal_names = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=64)
keys = st.from_regex(r"[A-Za-z0-9-]{1,40}", fullmatch=True)
prefixes = st.one_of(st.just(""), keys)
budgets = st.integers(16, 64)
anything = st.text(min_size=1)


@given(keys, prefixes, anything, budgets)
def test_whatever_a_server_calls_it_the_name_is_legal_and_within_the_budget(
    server: str, prefix: str, name: str, longest: int
) -> None:
    offered = naming.exposed(server, prefix, name, longest)
    assert LEGAL.fullmatch(offered)
    if prefix or offered != name:
        assert len(offered) <= longest
    hashed = naming.distinct(server, prefix, name, longest)
    assert LEGAL.fullmatch(hashed)
    assert len(hashed) <= longest


@given(keys, legal_names, budgets)
def test_without_a_prefix_a_legal_name_stays_byte_for_byte(
    server: str, name: str, longest: int
) -> None:
    assert naming.exposed(server, "", name, longest) == name


@given(keys, keys, anything, anything, budgets)
def test_two_names_of_one_server_differ_in_their_hash(
    server: str, prefix: str, one: str, other: str, longest: int
) -> None:
    if one != other:
        first = naming.distinct(server, prefix, one, longest)
        assert first != naming.distinct(server, prefix, other, longest)


@pytest.mark.parametrize(
    ("prefix", "name", "offered"),
    [
        ("time", "get_time", "time__get_time"),
        ("time", "a.b/c d", "time__a_b_c_d"),
        ("time", "größe", "time__gr__e"),
        ("", "get.time", "get_time"),
        ("", "json_schema_2020_12_tool", "json_schema_2020_12_tool"),
        ("t", "x" * 47, "t__" + "x" * 47),
        ("t", "x" * 48, "t__" + "x" * 38 + "_" + "bd4e3100"),
    ],
)
def test_names_as_an_operator_sees_them(prefix: str, name: str, offered: str) -> None:
    """The hash is part of the outside: were it to change, every client would see new tools."""
    assert naming.exposed("server", prefix, name, 50) == offered


def test_the_hash_depends_on_server_and_name_and_nothing_else() -> None:
    long = "x" * 100
    assert naming.exposed("a", "p", long, 50) == naming.exposed("a", "p", long, 50)
    assert naming.exposed("a", "p", long, 50) != naming.exposed("b", "p", long, 50)
    assert naming.exposed("a", "p", long, 50)[-8:] == naming.exposed("a", "q", long, 30)[-8:]


@given(keys, st.sampled_from(["file:///a/b", "memo:x", "ui://app/view", "db://{+q}"]))
def test_a_uri_set_apart_maps_back_and_an_app_keeps_its_scheme(server: str, uri: str) -> None:
    offered = naming.apart(server, uri)
    assert offered != uri
    assert naming.together(server, offered) == uri
    assert offered.startswith("ui://") == uri.startswith("ui://")
