"""A bound in time that may be switched off."""

import math
from pathlib import Path

import pytest

from gateway.config.units import seconds_or_off
from tests.config.corpus import load_file


@pytest.mark.parametrize(("written", "value_s"), [("50s", 50.0), (30, 30.0), ("off", math.inf)])
def test_it_is_a_duration_or_none_at_all(written: object, value_s: float) -> None:
    assert seconds_or_off().read(written) == value_s


@pytest.mark.parametrize("written", ["never", "0s", 0, -1, True, False, None, ""])
def test_anything_else_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="expected `off`, or a duration"):
        seconds_or_off().read(written)


@pytest.mark.parametrize("text", ["stream_age: off", '"stream_age": "off"', ""])
def test_streams_get_as_old_as_they_like_unless_a_bound_is_set(tmp_path: Path, text: str) -> None:
    """`off` is no boolean here, as YAML 1.1 would have it."""
    file = tmp_path / "onegate.yaml"
    file.write_text(f"limits: {{{text}}}\n")
    assert load_file(file).config.limits.stream_age_s == math.inf
