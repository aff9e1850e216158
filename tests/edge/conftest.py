"""Event loops to run a conversation on."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.kit.waiting import run

OnLoop = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def on_loop(request: pytest.FixtureRequest) -> OnLoop:
    """Both loops: they tell a protocol of a lost connection each in their own way."""
    if request.param == "asyncio":
        return run
    uvloop = pytest.importorskip("uvloop")
    return uvloop.run  # type: ignore[no-any-return]
