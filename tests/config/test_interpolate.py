"""What `${...}` stands for, and what stays as it is."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.interpolate import Substitution, Unresolved
from gateway.config.units import Substituted
from tests.config.corpus import error_of_text, load_text, program

ENVIRON = {"NAME": "Ann", "EMPTY": "", "NESTED": "${NAME}", "DOLLARS": "$$", "A_1": "one"}


def _apply(text: str) -> str:
    return Substitution(ENVIRON, lambda path: f"<{path}>").apply(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${NAME}", "Ann"),
        ("Bearer ${NAME}!", "Bearer Ann!"),
        ("${NAME}${A_1}", "Annone"),
        ("${env:NAME}", "Ann"),
        ("${NAME:-Bob}", "Ann"),
        ("${NOBODY:-Bob}", "Bob"),
        ("${EMPTY:-Bob}", "Bob"),
        ("${EMPTY}", ""),
        ("${NOBODY:-}", ""),
        ("${NOBODY:-a:-b}", "a:-b"),
        ("${NOBODY:-two\nlines}", "two\nlines"),
        ("${NESTED}", "${NAME}"),
        ("${DOLLARS}", "$$"),
        ("$${NAME}", "${NAME}"),
        ("$$$${NAME}", "$${NAME}"),
        ("$$${NAME}", "$Ann"),
        ("$NAME costs $5 ^x$", "$NAME costs $5 ^x$"),
        ("%NAME% {NAME}", "%NAME% {NAME}"),
        ("${file:./a b}", "<./a b>"),
    ],
)
def test_a_reference_is_replaced_once(text: str, value: str) -> None:
    assert _apply(text) == value


@pytest.mark.parametrize("text", ["${NOBODY}", "${}", "${a b}", "${1}", "${NAME", "${NAME:?no}"])
def test_a_reference_to_nothing_is_an_error(text: str) -> None:
    with pytest.raises(Unresolved):
        _apply(text)


@given(st.text())
def test_a_text_with_every_dollar_doubled_means_itself(text: str) -> None:
    assert _apply(text.replace("$", "$$")) == text


def test_what_came_in_is_kept_track_of() -> None:
    substitution = Substitution(ENVIRON, lambda path: "from a file")

    came_in = substitution.apply("x${NAME}${NOBODY:-Bob}${EMPTY}${file:x}")

    assert isinstance(came_in, Substituted)
    assert not isinstance(substitution.apply("$$"), Substituted)
    assert substitution.used == {"Ann", "Bob", "from a file"}
    assert "Ann" not in repr(came_in) + repr(substitution)


def test_a_secret_cannot_change_the_structure(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('a: b # "c", {\n  d: ${TOKEN}\n\n')

    loaded = load_text("servers: {one: {command: x, env: {A: '${file:secret}'}}}", tmp_path)

    assert program(loaded.config, "one").env["A"] == 'a: b # "c", {\n  d: ${TOKEN}\n'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "the file secret cannot be read: No such file or directory"),
        (b"\xff", "the file secret is not UTF-8"),
        (b"x" * 70_000, "the file secret is larger than 64 KiB"),
        (b"canary\0", "expected text"),
    ],
)
def test_a_secret_file_that_cannot_be_used_is_named(
    content: bytes | None, said: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "secret").write_bytes(content)

    error = error_of_text("servers: {one: {command: x, env: {A: '${file:secret}'}}}", tmp_path)

    assert said in error
    assert "canary" not in error


def test_only_texts_that_came_in_count_as_numbers(tmp_path: Path) -> None:
    server = "servers: {{one: {{command: x, queue: '{}', required: '{}'}}}}"

    one = load_text(server.format("${EIGHT}", "${NO:-true}"), tmp_path).config.servers["one"]
    assert (one.queue, one.required) == (8, True)
    assert "2 problems" in error_of_text(server.format("8", "true"), tmp_path)


def test_keys_are_never_replaced(tmp_path: Path) -> None:
    loaded = load_text("servers: {one: {command: x, env: {'${EIGHT}': a}}}", tmp_path)

    assert program(loaded.config, "one").env == {"${EIGHT}": "a"}
