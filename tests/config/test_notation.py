"""YAML and JSON as they are really written, and as attackers and accidents write them."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.complaints import ConfigError
from gateway.config.document import Unreadable
from gateway.config.from_json import read_json
from gateway.config.from_yaml import read_yaml, scalar_of
from gateway.config.load import load
from tests.config.corpus import ENVIRON, error_of_text, load_text, plain

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(JSON_VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_json_is_read_as_everybody_reads_it(value: object, ascii_only: bool, indent: int) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)

    assert plain(read_json(text).root) == value


@settings(max_examples=200)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_no_text_whatever_breaks_the_readers(text: str) -> None:
    for read in (read_yaml, read_json):
        try:
            assert read(text).root.size >= 1
        except Unreadable as unreadable:
            assert unreadable.flaw.span.line >= 1


TEXTS = st.text("{}[]:,\"'&*<!|>-#?%@` \n\tab0$", max_size=60)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=80) | TEXTS.map(str.encode))
def test_no_file_whatever_ends_in_anything_but_complaints(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp()
    for name in ("fuzz.yaml", "fuzz.json"):
        (folder / name).write_bytes(data)
        try:
            assert load(folder / name, ENVIRON, folder).file == folder / name
        except ConfigError as error:
            assert error.complaints


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("No", "No"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("1:30", "1:30"),
        ("012", 12),
        ("0o14", "0o14"),
        ("1_000", "1_000"),
        ("2026-11-30", "2026-11-30"),
        ("=", "="),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("", None),
        ("-17", -17),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-.inf", -math.inf),
        ("9" * 5000, math.inf),
    ],
)
def test_plain_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    found = scalar_of(text)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_system_count_alike(end: str, tmp_path: Path) -> None:
    yaml = end.join(["servers:", "  one:", "    command: x", "    colour: red"])
    jsonc = end.join(['{"servers":', '{"one":', '{"command": "x",', '"colour": "red"}}}'])

    assert error_of_text(yaml, tmp_path).startswith("onegate.yaml:4:5: servers.one.colour")
    assert error_of_text(jsonc, tmp_path, "a.json").startswith("a.json:4:1: servers.one.colour")


def test_merged_mappings_yield_to_what_is_written_out_and_to_earlier_ones() -> None:
    document = read_yaml(
        "a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\nc: {<<: [*a, *b], y: 3}\nd: {'<<': 4}\n"
    )

    read = plain(document.root)
    assert isinstance(read, dict)
    assert read["c"] == {"y": 3, "x": 1, "z": 2}
    assert read["d"] == {"<<": 4}
    assert not document.flaws


def test_merging_what_is_no_mapping_is_a_flaw() -> None:
    assert [flaw.problem for flaw in read_yaml("a: {<<: 4}").flaws] == [
        "`<<` merges mappings, and this is none"
    ]


def test_aliases_that_multiply_are_stopped_before_they_fill_the_memory() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]

    with pytest.raises(Unreadable, match="aliases stand for more than"):
        read_yaml("\n".join(lines))


def test_aliases_that_nest_are_stopped_before_they_fill_the_stack() -> None:
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 2000))]

    with pytest.raises(Unreadable, match="nest too deep"):
        read_yaml("\n".join(lines))


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "- " * 100_000, '{"a":' * 100_000, "x: " + "[" * 70 + "]" * 70],
)
def test_deep_nesting_is_refused_quickly(text: str, tmp_path: Path) -> None:
    assert "deep" in error_of_text(text, tmp_path) or "a `:` cannot" in error_of_text(
        text, tmp_path
    )


def test_a_long_run_of_spaces_and_comments_is_no_trap(tmp_path: Path) -> None:
    head = (" " * 2000 + "\n") * 100 + "/*" + "*" * 10_000 + "*/"

    assert load_text(head + '{"servers": {}}', tmp_path).config.servers == {}
    assert "onegate.yaml:101:" in error_of_text(head + "x", tmp_path)


def test_a_file_of_a_megabyte_is_read(tmp_path: Path) -> None:
    text = "instructions: |\n" + "  Ask before you delete anything.\n" * 32_000

    assert len(load_text(text, tmp_path).config.instructions or "") > 1_000_000
    long_line = json.dumps({"instructions": "x" * 1_000_000, "colour": 1})
    said = error_of_text(long_line, tmp_path, "a.json")
    assert len(said) < 1000


def test_a_flow_mapping_that_begins_like_json_is_still_yaml(tmp_path: Path) -> None:
    text = '{"servers": {one: {command: server}}}'

    assert list(load_text(text, tmp_path).config.servers) == ["one"]
    assert 'expected `"key":`' in error_of_text(text, tmp_path, "named.json")
