"""Secrets stay out of errors, reprs and everything else that is printed."""

import traceback
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.complaints import ConfigError
from gateway.config.judge import READER
from gateway.config.load import examine, load
from tests.config.corpus import ENVIRON, load_text

SECRETIVE = """\
servers:
  one:
    command: ${TOKEN}
    args: [--token, canary-in-args, "x${TOKEN}"]
    env:
      API_KEY: canary-in-env   # the old one was canary-in-comment
      OTHER: "canary in quotes"
      BLOCK: |
        canary in a block
  two: {command: b, env: {A: canary-in-flow}, cwd: "${NOT_SET:-canary-default}"}
auth:
  tokens:
    - {name: ann, sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}
"""


def test_no_repr_shows_a_secret(tmp_path: Path) -> None:
    loaded = load_text(SECRETIVE, tmp_path)

    shown = repr(loaded) + str(loaded.config) + repr(loaded.config.servers["one"])
    assert "canary" not in shown
    assert "0123456789abcdef" not in shown


def test_all_that_came_in_and_all_of_env_is_known_to_be_secret(tmp_path: Path) -> None:
    assert load_text(SECRETIVE, tmp_path).secrets == {
        "canary-from-outside",
        "canary-default",
        "canary-in-env",
        "canary in quotes",
        "canary in a block\n",
        "canary-in-flow",
    }


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, len(SECRETIVE) - 1),
    st.sampled_from(["", *"{}[]:,\"'&*!|>-#?%@`\n\t x$", "${", "\n\n", ": ", "- "]),
    st.integers(0, 12),
)
def test_no_slip_of_the_finger_brings_a_secret_into_an_error(
    tmp_path_factory: pytest.TempPathFactory, at: int, typed: str, over: int
) -> None:
    """One edit anywhere in a file full of secrets; only a whole one counts as shown."""
    folder = tmp_path_factory.getbasetemp()
    file = folder / "slip.yaml"
    file.write_text(SECRETIVE[:at] + typed + SECRETIVE[at + over :])
    try:
        shown = repr(load(file, ENVIRON, folder))
    except ConfigError as error:
        shown = "".join(traceback.format_exception(error))
    for secret in ("canary-in-args", "canary-in-env", "canary-in-flow", "canary-from-outside"):
        assert secret not in shown
    assert "canary in" not in shown


def test_a_command_line_where_a_command_belongs_is_not_quoted_whole(tmp_path: Path) -> None:
    loaded = load_text("servers: {one: {command: npx -y server --token canary}}", tmp_path)

    (doubt,) = examine(loaded, lambda server: None)
    assert doubt.excerpt.splitlines()[0] == "    1 | servers: {one: {command: npx ***}}"


def test_the_model_itself_does_not_repeat_what_it_refuses() -> None:
    with pytest.raises(ValueError, match="expected") as refused:
        READER.validate_python({"auth": {"tokens": [{"name": "ann", "sha256": "canary"}]}})
    with pytest.raises(ValueError, match="expected") as refused_too:
        READER.validate_python({"servers": {"x": {"command": "x", "env": {"A": ["canary"]}}}})

    assert "canary" not in f"{refused.value!r} {refused.value} {refused_too.value}"


def test_a_quoted_line_tells_neither_the_secret_nor_its_length(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load_text("servers: {one: {env: {A: canary-canary}, comand: x}}", tmp_path)

    (complaint,) = refused.value.complaints
    assert complaint.excerpt == (
        "    1 | servers: {one: {env: {A: ***}, comand: ***}}\n"
        "      |                                ^^^^^^"
    )


def test_hostile_text_in_a_file_cannot_draw_on_the_terminal(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load_text('{"colour\\u001b[31m\\u202e": 1}', tmp_path, "a.json")

    assert "\x1b" not in str(refused.value)
    assert "\u202e" not in str(refused.value)
