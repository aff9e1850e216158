"""After how long a call goes on by itself, as it is written in a rule."""

import math

import pytest

from gateway.config.annotations import Misfit
from gateway.config.units import BACKGROUND


@pytest.mark.parametrize(
    ("written", "meant"),
    [("after 20s", 20.0), ("after 500ms", 0.5), ("after 2m", 120.0), ("never", math.inf)],
)
def test_it_is_written_as_a_duration_after_the_word_after(written: str, meant: float) -> None:
    assert BACKGROUND.read(written) == meant


@pytest.mark.parametrize(
    "written", ["20s", "after", "after 0s", "after a while", "after  20s", "", 20, None, True]
)
def test_anything_else_is_refused(written: object) -> None:
    with pytest.raises(Misfit):
        BACKGROUND.read(written)
