"""The line that is written about a call."""

import json

import pytest

from gateway.observe.record import Timestamps, encode
from tests.observe.records import ORDINARY, record
from tests.observe.test_visible import HOSTILE

KEYS = [
    "ts", "call", "trace", "principal", "client", "revision", "server", "tool", "name",
    "decision", "rule", "outcome", "duration_s", "server_s", "request_bytes", "result_bytes",
    "error",
]  # fmt: skip


def test_a_record_has_exactly_the_documented_keys_in_order() -> None:
    assert list(json.loads(encode(ORDINARY))) == KEYS


def test_every_key_is_there_when_next_to_nothing_is_known() -> None:
    bare = record(
        principal=None, client=None, revision=None, server=None, tool=None, decision=None,
        server_s=None, result_bytes=None,
    )  # fmt: skip

    told = json.loads(encode(bare))

    assert list(told) == KEYS
    assert told["server"] is None


def test_arguments_are_a_key_only_when_given() -> None:
    assert list(json.loads(encode(record(arguments={"sides": 6})))) == [*KEYS, "arguments"]


@pytest.mark.parametrize(("text", "shown"), HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("key", ["name", "client", "tool", "error"])
def test_hostile_text_stays_inside_its_value(key: str, text: str, shown: str) -> None:
    line = encode(record(**{key: text}))

    assert line.endswith(b"\n")
    assert len(line.decode().splitlines()) == 1
    assert json.loads(line)[key] == shown


def test_a_forged_line_in_a_name_makes_no_second_line() -> None:
    line = encode(record(name='x\n{"fake":1}'))

    assert line.count(b"\n") == 1
    assert json.loads(line)["name"] == 'x\\n{"fake":1}'


def test_a_name_of_five_megabytes_costs_two_kilobytes() -> None:
    line = encode(record(name="n" * 5_000_000))

    assert len(line) < 3000
    assert json.loads(line)["name"].endswith("… (4997952 more)")


def test_readable_text_beyond_ascii_is_kept() -> None:
    assert json.loads(encode(record(client="Größe/日本")))["client"] == "Größe/日本"


@pytest.mark.parametrize(
    ("wall_s", "told"),
    [
        (0.0, "1970-01-01T00:00:00.000Z"),
        (1785231000.1239, "2026-07-28T09:30:00.123Z"),
        (1785231000.999999, "2026-07-28T09:30:00.999Z"),
        (1785231001.0, "2026-07-28T09:30:01.000Z"),
    ],
)
def test_times_are_rfc_3339_in_utc_with_milliseconds(wall_s: float, told: str) -> None:
    timestamp = Timestamps()
    assert timestamp(1785231000.5)
    assert timestamp(wall_s) == told
