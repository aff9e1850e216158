"""`onegate calls` where no gateway runs: what the file of the record tells."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.records import fits, newest
from gateway.cli.tables import took, when
from tests.cli.typed import ONEGATE, environ, onegate, write_config
from tests.kit.ports import free_port
from tests.kit.processes import program


def record(number: int, **keys: Any) -> dict[str, Any]:
    told = {"ts": f"2026-07-28T09:30:{number:02}.123Z", "call": f"c-{number}", "outcome": "ok"}
    named = {"name": "dice__roll_dice", "server": "dice", "tool": "roll_dice"}
    return {**told, **named, "duration_s": 0.0123, "client": "tests/1", "error": None, **keys}


def written(folder: Path, *records: dict[str, Any], torn: str = "") -> Path:
    """A configuration with a record of its own, and nothing that runs. Returns the record."""
    file = folder / "calls.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in records) + torn)
    write_config(folder, admin=f"127.0.0.1:{free_port()}", calls={"path": "calls.jsonl"})
    return file


def test_the_newest_are_told_in_columns_oldest_first(tmp_path: Path) -> None:
    written(tmp_path, record(1), record(2, outcome="timeout", error="silent for 10s"), record(3))

    told = onegate(tmp_path, "calls", "--last", "2")

    assert (told.code, told.err) == (0, "")
    title, first, second = (line.split("  ") for line in told.out.splitlines())
    assert [cell.strip() for cell in title if cell] == [
        *("WHEN", "TOOL", "OUTCOME", "TOOK", "CLIENT", "ERROR")
    ]
    assert "timeout" in first and first[-1] == "silent for 10s"
    assert "ok" in second and second[-1] == "-"


def test_json_is_a_record_a_line_with_every_key(tmp_path: Path) -> None:
    records = [record(1), record(2, name="ü")]
    written(tmp_path, *records)

    told = onegate(tmp_path, "calls", "--json")

    assert [json.loads(line) for line in told.out.splitlines()] == records


@pytest.mark.parametrize(
    ("only", "numbers"),
    [
        ({}, [1, 2, 3]),
        ({"server": "clock"}, [3]),
        ({"tool": "roll_dice"}, [1, 2]),
        ({"tool": "dice__roll_dice"}, [1, 2]),
        ({"outcome": "denied", "server": "dice"}, [2]),
        ({"outcome": "crashed"}, []),
    ],
)
def test_records_are_chosen_by_server_tool_and_outcome(
    only: dict[str, str], numbers: list[int], tmp_path: Path
) -> None:
    third = record(3, server="clock", tool="get_time", name="clock__get_time")
    file = written(tmp_path, record(1), record(2, outcome="denied"), third)

    assert [one["call"] for one in newest(file, 10, only)] == [f"c-{each}" for each in numbers]
    assert fits(record(1), {})


def test_a_torn_line_hides_no_other(tmp_path: Path) -> None:
    file = written(tmp_path, record(1), torn='{"ts": "2026\n[1]\n' + json.dumps(record(2)) + '\n{"')

    assert [one["call"] for one in newest(file, 10, {})] == ["c-1", "c-2"]


def test_hostile_text_in_a_record_stays_in_its_cell(tmp_path: Path) -> None:
    written(tmp_path, record(1, client="evil\n09:30:02  dice__x  ok\x1b[2J"))

    told = onegate(tmp_path, "calls")

    assert len(told.out.splitlines()) == 2
    assert "\x1b" not in told.out


def test_without_gateway_and_record_it_says_what_is_missing(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    write_config(tmp_path, admin=address)

    told = onegate(tmp_path, "calls")

    assert (told.code, told.out) == (1, "")
    assert told.err == (
        f"onegate: no gateway runs at {address}, and no file keeps its record (`calls.path`)\n"
    )


def test_a_record_that_was_never_begun_is_named(tmp_path: Path) -> None:
    written(tmp_path).unlink()

    told = onegate(tmp_path, "calls")

    assert told.code == 1
    assert "none has left a record at calls.jsonl" in told.err


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_follow_goes_on_with_what_comes_until_ctrl_c(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    file = written(tmp_path, record(1, client="first"))
    argv = [*ONEGATE, "calls", "--follow", *words]
    with program(argv, tmp_path / "log", env=environ(tmp_path), cwd=tmp_path) as following:
        following.wait_text("first")
        with file.open("a") as appending:
            appending.write(json.dumps(record(2, client="second")))
            appending.flush()
            appending.write("\n")
        following.wait_text("second")
        following.send(signal.SIGINT)

        assert following.wait_exit() == 130
        assert len(following.text.splitlines()) == 2


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.0004, "0 ms"), (0.25, "250 ms"), (3.21, "3.2 s"), (600, "10.0 min"),
                          (None, "")],
)  # fmt: skip
def test_durations_read_at_a_glance(seconds: float | None, told: str) -> None:
    assert took(seconds) == told


def test_a_call_of_another_day_is_told_with_its_day() -> None:
    assert len(when({"ts": "2020-01-02T03:04:05.678Z"})) == len("01-02 03:04:05")
    assert when({"ts": "soon"}) == ""
