"""The log: one line for each thing that happened, whatever it was that happened."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import structlog

from gateway.observe.logs import Text, as_json, processors
from tests.observe.test_visible import HOSTILE


class Lines:
    """What would have been written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.debug = self.info = self.warning = self.error = self.critical = self.written.append

    def only(self) -> str:
        (line,) = self.written
        return line.decode()


def logger(render: Any = as_json, level: int = 10) -> tuple[Any, Lines]:
    lines = Lines()
    bound = structlog.wrap_logger(
        lines,
        processors=processors(lambda: 1785231000.123, render),
        wrapper_class=structlog.make_filtering_bound_logger(level),
    )
    return bound, lines


def test_a_line_for_programs_is_json_with_time_level_and_event_first() -> None:
    log, lines = logger()
    log.info("server.started", server="dice", pid=7, args=("a", "b"), where=Path("/x"), cause=None)

    assert lines.only() == (
        '{"ts":"2026-07-28T09:30:00.123Z","level":"info","event":"server.started",'
        '"server":"dice","pid":7,"args":["a","b"],"where":"/x","cause":null}\n'
    )


def test_a_line_for_people_has_the_time_the_level_and_fields_that_end_where_they_end() -> None:
    log, lines = logger(Text(coloured=False))
    log.warning("server.failed", server="dice", why="exit code 1", said='x" level=error', code=1)

    assert lines.only() == (
        "09:30:00.123 warning server.failed  "
        'server=dice why="exit code 1" said="x\\" level=error" code=1\n'
    )


def test_colours_are_for_terminals() -> None:
    log, lines = logger(Text(coloured=True))
    log.error("server.failed", server="dice")
    assert "\x1b[31merror" in lines.only()


@pytest.mark.parametrize(("text", "shown"), HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("render", [as_json, Text(coloured=False)], ids=["json", "text"])
def test_hostile_text_can_neither_end_a_line_nor_steer_a_terminal(
    render: Any, text: str, shown: str
) -> None:
    log, lines = logger(render)
    log.info("tool.listed", tool=text, inside={"a": [text]}, error=ValueError(text))

    line = lines.only()
    assert len(line.splitlines()) == 1
    assert text not in line
    if render is as_json:
        told = json.loads(line)
        assert told["tool"] == told["error"] == told["inside"]["a"][0] == shown


def test_a_forged_line_inside_a_traceback_stays_inside_it() -> None:
    for render in (as_json, Text(coloured=False)):
        log, lines = logger(render)
        try:
            raise ValueError("x\n09:30:00.123 info    call.ended\x1b[2J")
        except ValueError:
            log.exception("request.crashed")

        first, *rest = lines.only().splitlines()
        assert "\x1b" not in lines.only()
        if render is as_json:
            assert not rest
            assert json.loads(first)["level"] == "error"
            assert "ValueError: x" in json.loads(first)["exception"]
        else:
            assert rest
            assert all(line.startswith("    | ") for line in rest)


def test_values_are_cut() -> None:
    log, lines = logger()
    log.info("tool.listed", tool="x" * 1_000_000, all=list(range(1000)), deep=[[[[[1]]]]])

    assert len(lines.only()) < 3000


def test_numbers_too_large_for_json_and_values_nobody_foresaw_do_not_fail() -> None:
    log, lines = logger()
    log.info("a.happened", large=2**100, not_a_number=float("nan"), raw=b"\xff", odd=object)

    told = json.loads(lines.only())
    assert told["large"] == str(2**100)
    assert told["odd"] == "<class 'object'>"


def test_a_field_cannot_overwrite_the_time_or_the_level() -> None:
    log, lines = logger()
    log.info("server.said", level="emergency", ts="never")

    told = json.loads(lines.only())
    assert (told["level"], told["ts"]) == ("info", "2026-07-28T09:30:00.123Z")


PROGRAM = """
import logging, os, sys, time, warnings
import structlog
from gateway.observe.logs import configure_logs

log = structlog.get_logger()
configure_logs(sys.argv[1], sys.argv[2], wall=time.time)
log.debug("detail.seen")
log.info("server.started", server="dice")
logging.getLogger("aiohttp.server").error("bad\\nrequest %s", "\\x1b[31m")
logging.getLogger("aiohttp.server").warning("does not fit %d", "x")
logging.getLogger("asyncio").info("chatter")
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("asyncio").exception("task failed")
warnings.warn("old")
"""


def run_program(level: str, form: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-W", "always", "-c", PROGRAM, level, form],
        capture_output=True, text=True, timeout=30, env={"PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, "")
    return ran.stderr.splitlines()


def test_libraries_speak_through_the_same_log_on_standard_error() -> None:
    told = [json.loads(line) for line in run_program("info", "auto")]

    assert [line["event"] for line in told] == ["server.started"] + ["library.spoke"] * 4
    assert told[1]["logger"] == "aiohttp.server"
    assert told[1]["message"] == "bad\\nrequest \\x1b[31m"
    assert told[1]["level"] == "error"
    assert told[2]["message"] == "does not fit %d"
    assert "ZeroDivisionError" in told[3]["exception"]
    assert "UserWarning: old" in told[4]["message"]


def test_debug_shows_everything_and_text_is_for_people_even_in_a_pipe() -> None:
    lines = run_program("debug", "text")

    assert [line.split()[1:3] for line in lines[:2]] == [
        ["debug", "detail.seen"],
        ["info", "server.started"],
    ]
    assert any("chatter" in line for line in lines)
    assert not any("\x1b" in line for line in lines)


def test_a_log_whose_reader_has_left_does_not_stop_the_program() -> None:
    program = PROGRAM + "\nfor _ in range(1000): log.info('a.happened')\nprint('alive')"
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [sys.executable, "-c", program, "info", "json"],
        stdout=subprocess.PIPE, stderr=writing, text=True, timeout=30,
        env={"PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    os.close(writing)
    assert (ran.returncode, ran.stdout) == (0, "alive\n")
