"""Which URIs a URI template stands for."""

import re
import string
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.catalog.templates import BadTemplate, compile_template, normal

values = st.text(string.ascii_letters + string.digits + " é%/?#-.", min_size=1, max_size=20)


def matches(template: str, uri: str) -> bool:
    return compile_template(template).matches(normal(uri))


@pytest.mark.parametrize(
    ("template", "fitting", "other"),
    [
        ("test://template/{id}/data", ["test://template/123/data", "test://template/a%20b/data"],
         ["test://template//data", "test://template/1/2/data", "test://template/1/data/x",
          "test://template/1", "TEST://template/1/data", "test://template/1/datas"]),
        ("file:///{+path}", ["file:///a/b/c.txt", "file:///a"], ["file://x", "file:///"]),
        ("file:///{path}", ["file:///a"], ["file:///a/b"]),
        ("repo://{owner}/{name}", ["repo://me/it"], ["repo://me", "repo://me/it/more"]),
        ("m://{a}-{b}", ["m://1-2", "m://1-2-3"], ["m://12", "m://-", "m://1-"]),
        ("m://x{/path*}", ["m://x/a/b/c", "m://x/a", "m://x"], ["m://xa", "m://x/"]),
        ("m://x{/one}", ["m://x/a", "m://x"], ["m://x/a/b"]),
        ("m://x{?q,r}", ["m://x?q=1&r=2", "m://x?r=2", "m://x"], ["m://x&q=1", "m://x?q#f"]),
        ("m://x?a=1{&q}", ["m://x?a=1&q=2", "m://x?a=1"], ["m://x?a=2&q=2"]),
        ("m://x{#part}", ["m://x#a/b", "m://x"], ["m://xa"]),
        ("m://x{.ext}", ["m://x.txt", "m://x"], ["m://x/txt", "m://xtxt"]),
        ("m://x{;v}", ["m://x;v=1", "m://x"], ["m://xv=1"]),
        ("m://{id:3}", ["m://123"], ["m://1/2"]),
        ("m://a.b/{x}", ["m://a.b/1"], ["m://a+b/1", "m://aXb/1"]),
        ("m://{a,b}", ["m://1,2"], ["m://"]),
        ("memo:{x}", ["memo:1"], ["memo:"]),
        ("plain://no/variables", ["plain://no/variables"], ["plain://no/variables/x"]),
    ],
)  # fmt: skip
def test_a_template_stands_for_its_expansions_alone(
    template: str, fitting: list[str], other: list[str]
) -> None:
    assert [uri for uri in fitting if not matches(template, uri)] == []
    assert [uri for uri in other if matches(template, uri)] == []


@given(values, values)
def test_every_expansion_of_simple_variables_matches(one: str, other: str) -> None:
    """RFC 6570, 3.2.2: simple expansion escapes everything that is not unreserved."""
    uri = f"test://{quote(one, safe='')}/x/{quote(other, safe='')}"
    assert matches("test://{one}/x/{other}", uri)


@given(values)
def test_every_reserved_expansion_matches(path: str) -> None:
    assert matches("test://{+path}/end", f"test://{quote(path, safe='/?#')}/end")


@given(st.text("ab/-", max_size=12))
def test_the_matcher_agrees_with_a_regular_expression(text: str) -> None:
    expected = re.fullmatch(r"x([^/]+)-([^/]+)a(.+)(/[^/]+)?", "x" + text) is not None
    assert matches("x{one}-{two}a{+rest}{/last}", "x" + text) == expected


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("test://a b/{x}", "test://a%20b/1"),
        ("test://a%20b/{x}", "test://a b/1"),
        ("test://a%2db/{x}", "test://a-b/1"),
        ("test://%7Ename/{x}", "test://~name/1"),
        ("test://caf%c3%a9/{x}", "test://café/1"),
    ],
)
def test_text_may_be_escaped_on_either_side(template: str, uri: str) -> None:
    assert matches(template, uri)
    assert not matches(template, uri.replace("1", "1/2"))


@given(st.text())
def test_the_normal_form_of_a_uri_is_its_own_normal_form(uri: str) -> None:
    assert normal(normal(uri)) == normal(uri)


@pytest.mark.parametrize("text", ["a{", "a}", "{}", "{+}", "a{b}c}", "{a{b}}", "{a b}", "{,}"])
def test_what_is_no_template_is_said_to_be_none(text: str) -> None:
    with pytest.raises(BadTemplate):
        compile_template(text)


@pytest.mark.parametrize(
    "template", ["{a}-{b}-{c}-{d}-{e}!", "{+a}{+b}{+c}{+d}!", "x{/a*}{/b*}{/c*}!"]
)
def test_a_hostile_uri_costs_no_more_than_its_length(template: str) -> None:
    compiled = compile_template(template)
    started = time.process_time()
    for filler in ("-", "/", "x"):
        assert not compiled.matches("x" + filler * 8000)
    assert time.process_time() - started < 2  # linear: some 50 ms; a regular expression: hours
