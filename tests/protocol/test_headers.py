"""Headers that repeat parts of a message: their values, and the arguments mirrored into them.

Source: 2026-07-28, basic/transports/streamable-http, "Request Metadata".
"""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.protocol.errors import HeaderMismatch, wire_code
from gateway.protocol.headers import (
    BadAnnotation,
    HeaderParam,
    check_params,
    decode_value,
    encode_value,
    header_params,
    param_headers,
)
from gateway.protocol.jsonrpc import Fields, Raw

OF_THE_SPECIFICATION = [
    ("us-west1", "us-west1"),
    ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
]


@pytest.mark.parametrize(
    ("text", "header"),
    [
        *OF_THE_SPECIFICATION,
        ("", ""),
        ("two words", "two words"),
        ("a\tb", "=?base64?YQli?="),
        ("=?base64?", "=?base64?"),
        ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
    ],
)
def test_values_are_written_as_the_specification_shows(text: str, header: str) -> None:
    assert encode_value(text) == header
    assert decode_value(header) == text


@given(st.text())
def test_every_text_comes_back_and_travels_as_visible_ascii(text: str) -> None:
    header = encode_value(text)
    assert decode_value(header) == text
    assert header.isascii()
    assert header.isprintable()
    assert header == header.strip()


@pytest.mark.parametrize(
    "header",
    [
        "=?base64?SGVsbG8?=",  # padding missing
        "=?base64?SGVsbG8=====?=",
        "=?base64?SGVs bG8=?=",
        "=?base64?SGVs!G8=?=",
        "=?base64?_-__?=",  # the alphabet of URLs
        "=?base64?/w==?=",  # not UTF-8
        "=?base64?é?=",
        "Hello, 世界",
        " padded",
        "line1\nline2",
        "\x7f",
    ],
)
def test_a_malformed_value_is_a_header_mismatch(header: str) -> None:
    with pytest.raises(HeaderMismatch) as caught:
        decode_value(header)
    assert wire_code(caught.value) == -32020


def test_the_markers_count_exactly_as_written() -> None:
    assert decode_value("=?BASE64?SGVsbG8=?=") == "=?BASE64?SGVsbG8=?="
    assert decode_value("=?base64?a2V5?= ".strip()) == "key"


def test_a_tab_inside_is_understood_though_never_sent() -> None:
    assert decode_value("a\tb") == "a\tb"


# --- annotations -----------------------------------------------------------------------------


def tool(schema: object) -> Fields:
    return {"name": Raw(b'"t"'), "inputSchema": Raw(msgspec.json.encode(schema))}


def properties(**schemas: object) -> dict[str, object]:
    return {"type": "object", "properties": schemas}


REGION = {"type": "string", "x-mcp-header": "Region"}


def test_annotated_arguments_are_found_with_their_paths() -> None:
    nested = properties(limit={"type": "integer", "x-mcp-header": "Limit"})
    schema = properties(region=REGION, query={"type": "string"}, options=nested)
    assert header_params(tool(schema)) == (
        HeaderParam(("region",), "Mcp-Param-Region"),
        HeaderParam(("options", "limit"), "Mcp-Param-Limit"),
    )


def test_most_tools_have_none() -> None:
    assert header_params(tool(properties(query={"type": "string"}))) == ()


def test_an_annotation_whose_key_is_written_with_escapes_is_found_too() -> None:
    raw = b'{"type":"object","properties":{"r":{"type":"string","x-mcp\\u002dheader":"R"}}}'
    assert header_params({"inputSchema": Raw(raw)}) == (HeaderParam(("r",), "Mcp-Param-R"),)


@pytest.mark.parametrize(
    "harmless",
    [
        properties(**{"x-mcp-header": {"type": "string"}}),  # an argument of that name
        properties(a={"type": "object", "default": {"x-mcp-header": "A"}}),
        properties(a={"enum": [{"x-mcp-header": "A"}]}),
        properties(a={"type": "string", "description": "x-mcp-header: A"}),
    ],
)
def test_the_word_alone_is_no_annotation(harmless: object) -> None:
    assert header_params(tool(harmless)) == ()


@pytest.mark.parametrize(
    "bad",
    [
        properties(a={"type": "string", "x-mcp-header": ""}),
        properties(a={"type": "string", "x-mcp-header": "a b"}),
        properties(a={"type": "string", "x-mcp-header": "a\r\nb"}),
        properties(a={"type": "string", "x-mcp-header": "ä"}),
        properties(a={"type": "string", "x-mcp-header": 5}),
        properties(a={"type": "string", "x-mcp-header": None}),
        properties(a={"type": "number", "x-mcp-header": "A"}),
        properties(a={"type": "object", "x-mcp-header": "A"}),
        properties(a={"type": ["string", "null"], "x-mcp-header": "A"}),
        properties(a={"x-mcp-header": "A"}),
        properties(a=REGION, b={"type": "string", "x-mcp-header": "rEGION"}),
        {"type": "object", "x-mcp-header": "A"},
        {"type": "object", "$defs": {"r": REGION}},
        properties(a={"type": "array", "items": REGION}),
        properties(a={"type": "array", "items": properties(b=REGION)}),
        properties(a={"type": "array", "prefixItems": [REGION]}),
        properties(a={"anyOf": [REGION, {"type": "null"}]}),
        {"type": "object", "allOf": [properties(a=REGION)]},
        {"type": "object", "if": properties(a=REGION)},
        {"type": "object", "not": properties(a=REGION)},
        {"type": "object", "additionalProperties": REGION},
        {"type": "object", "patternProperties": {"x": REGION}},
    ],
)
def test_an_annotation_clients_must_reject_is_rejected(bad: object) -> None:
    with pytest.raises(BadAnnotation):
        header_params(tool(bad))


def test_a_schema_nested_without_end_is_walked_without_recursion() -> None:
    schema: dict[str, object] = {"type": "string", "x-mcp-header": "Deep"}
    for _ in range(400):
        schema = properties(a=schema)
    (param,) = header_params(tool(schema))
    assert len(param.path) == 400


# --- the headers of a call -------------------------------------------------------------------

MIRRORED = (
    HeaderParam(("region",), "Mcp-Param-Region"),
    HeaderParam(("options", "limit"), "Mcp-Param-Limit"),
    HeaderParam(("dry",), "Mcp-Param-Dry"),
)


def check(arguments: object, **headers: str) -> None:
    sent = {f"Mcp-Param-{name}": text for name, text in headers.items()}
    check_params(MIRRORED, Raw(msgspec.json.encode(arguments)), sent.get)


def refused(arguments: object, **headers: str) -> str:
    with pytest.raises(HeaderMismatch) as caught:
        check(arguments, **headers)
    return caught.value.message


def test_headers_that_agree_with_the_arguments_pass() -> None:
    arguments = {"region": "köln", "options": {"limit": 42}, "dry": False, "query": "x"}
    check(arguments, Region="=?base64?a8O2bG4=?=", Limit="42", Dry="false")
    check(arguments, Region="=?base64?a8O2bG4=?=", Limit="42.0", Dry="false")
    check({"region": "a", "options": None, "dry": None}, Region="a")
    check({})


def test_what_the_gateway_would_send_agrees() -> None:
    arguments = {"region": " x ", "options": {"limit": -7}, "dry": True}
    sent = param_headers(MIRRORED, arguments)
    assert sent == {
        "Mcp-Param-Region": "=?base64?IHgg?=",
        "Mcp-Param-Limit": "-7",
        "Mcp-Param-Dry": "true",
    }
    check_params(MIRRORED, arguments, sent.get)


def test_a_missing_header_is_named() -> None:
    assert refused({"region": "a"}) == "Mcp-Param-Region is missing"


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "a"}, {"Region": "b"}),
        ({"region": "a"}, {"Region": "A"}),
        ({"region": "42"}, {"Region": "42.0"}),
        ({"options": {"limit": 42}}, {"Limit": "43"}),
        ({"options": {"limit": 42}}, {"Limit": "4_2"}),
        ({"options": {"limit": 42}}, {"Limit": "٤٢"}),
        ({"options": {"limit": 9007199254740993}}, {"Limit": "9007199254740992"}),
        ({"dry": True}, {"Dry": "True"}),
        ({"dry": True}, {"Dry": "1"}),
        ({}, {"Region": "a"}),
        ({"region": None}, {"Region": "a"}),
        ({"region": {"a": 1}}, {"Region": "a"}),
    ],
)
def test_a_header_that_disagrees_is_refused_without_repeating_values(
    arguments: object, headers: dict[str, str]
) -> None:
    message = refused(arguments, **headers)
    assert message.startswith("Mcp-Param-") or "base64" in message
    assert all(value not in message for value in headers.values() if len(value) > 2)


def test_a_tool_without_annotations_reads_no_header_and_no_argument() -> None:
    def never(_name: str) -> str | None:
        raise AssertionError

    check_params((), Raw(b"not even JSON"), never)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_arguments_of_any_shape_never_crash_the_check(value: object) -> None:
    for arguments in (value, {"region": value}, {"options": value}, {"options": {"limit": value}}):
        sent = param_headers(MIRRORED, arguments)
        check_params(MIRRORED, arguments, sent.get)
