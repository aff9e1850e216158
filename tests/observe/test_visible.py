"""What others wrote cannot pass for something else on a terminal or in a file."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.observe.visible import visible, visible_lines

HOSTILE = {
    "newline": ("a\nb", "a\\nb"),
    "carriage return": ("a\rb", "a\\rb"),
    "CRLF and a forged line": ('x\r\n{"fake":1}', 'x\\r\\n{"fake":1}'),
    "tab": ("a\tb", "a\\tb"),
    "NUL": ("a\0b", "a\\x00b"),
    "backspace": ("a\bb", "a\\x08b"),
    "escape code": ("\x1b[2J\x1b[31mred", "\\x1b[2J\\x1b[31mred"),
    "title by OSC": ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
    "DEL": ("a\x7fb", "a\\x7fb"),
    "C1 introducer": ("\x9b31m", "\\x9b31m"),
    "next line": ("a\x85b", "a\\x85b"),
    "line separator": ("a\u2028b", "a\\u2028b"),
    "paragraph separator": ("a\u2029b", "a\\u2029b"),
    "bidi override": ("\u202etxt.exe", "\\u202etxt.exe"),
    "bidi isolate": ("\u2066x\u2069", "\\u2066x\\u2069"),
    "arabic letter mark": ("a\u061cb", "a\\u061cb"),
    "zero-width space": ("ad\u200bmin", "ad\\u200bmin"),
    "zero-width joiner": ("a\u200db", "a\\u200db"),
    "word joiner": ("a\u2060b", "a\\u2060b"),
    "BOM": ("\ufeffa", "\\ufeffa"),
    "soft hyphen": ("a\u00adb", "a\\xadb"),
    "hangul filler": ("a\u3164b", "a\\u3164b"),
    "tag characters": ("a\U000e0041\U000e007f", "a\\U000e0041\\U000e007f"),
    "variation selector supplement": ("a\U000e0100", "a\\U000e0100"),
    "half of a surrogate pair": ("a\ud800b", "a\\ud800b"),
}
HARMLESS = [
    "",
    "roll_dice",
    "Größe",
    "日本語　です",
    "עברית",
    "a\u00a0b",
    "❤\ufe0f",
    "\\n as written",
]


@pytest.mark.parametrize(("text", "shown"), HOSTILE.values(), ids=HOSTILE)
def test_what_hides_or_steers_is_spelt_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", HARMLESS)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_a_long_value_is_cut_and_says_by_how_much() -> None:
    assert visible("x" * 5000) == "x" * 2048 + "… (2952 more)"


def test_a_traceback_keeps_its_lines_and_nothing_else() -> None:
    assert visible_lines("a\n\tb\x1b[31m\r\u202e") == "a\n\tb\\x1b[31m\\r\\u202e"


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet=st.characters(categories=("Cc", "Cs", "Zl", "Zp")), min_size=1))
def test_no_control_separator_or_surrogate_ever_gets_through(text: str) -> None:
    assert visible(text).isascii()
    assert visible(text).isprintable()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text())
def test_the_result_is_one_line_that_can_be_encoded(text: str) -> None:
    shown = visible(text)
    assert len(shown.splitlines()) <= 1
    shown.encode()
