"""The kit's own promises: bounded waiting, events however they are cut, programs cleaned up."""

import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kit.http import header_value
from tests.kit.processes import is_alive, program
from tests.kit.sse import Event, events
from tests.kit.waiting import eventually, eventually_async, run

STREAM = b": keep-alive\n\nid: 1\r\ndata:\r\n\r\nretry: 5\nevent: message\ndata: {\ndata:  }\n\n"


def test_waiting_ends_with_the_condition_or_with_its_name() -> None:
    looks = iter([0, 0, 7])
    assert eventually(lambda: next(looks)) == 7
    with pytest.raises(AssertionError, match="the moon"):
        eventually(lambda: False, 0.02, what="the moon")


def test_waiting_works_on_the_loop_too() -> None:
    looks = iter([0, 7])

    async def look() -> int:
        return next(looks)

    assert run(eventually_async(look)) == 7


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_are_the_same_however_the_bytes_are_cut(size: int) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(STREAM), size):
            yield STREAM[at : at + size]

    async def collect() -> list[Event]:
        return [each async for each in events(pieces())]

    assert run(collect()) == [
        Event(comment="keep-alive"),
        Event(id="1"),
        Event(data="{\n }", event="message", retry="5"),
    ]


def test_names_travel_plainly_or_marked() -> None:
    assert header_value("demo__a b") == "demo__a b"
    assert header_value("é") == "=?base64?w6k=?="
    assert header_value("=?base64?x?=").startswith("=?base64?PT")


def test_a_program_is_gone_with_all_it_started_when_its_block_ends(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        "subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "print('up', flush=True); time.sleep(600)"
    )
    with program([sys.executable, "-c", script], tmp_path / "log") as started:
        started.wait_text("up")
        family = [started.pid, *(each.pid for each in started.descendants())]
        assert len(family) == 2
    assert not any(map(is_alive, family))


def test_a_program_that_leaves_says_how(tmp_path: Path) -> None:
    with program(["sh", "-c", "echo bye; kill -TERM $$"], tmp_path / "log") as started:
        assert started.wait_exit() == -signal.SIGTERM
        assert started.text == "bye\n"
        with pytest.raises(AssertionError, match="it left"):
            started.wait_text("never")
