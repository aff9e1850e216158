"""The record cannot be written, the log is not read: calls go on, and what is lost is counted."""

import asyncio
import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kit.fakes import fake
from tests.kit.gateway import Gateway, running_gateway
from tests.kit.http import Modern
from tests.kit.waiting import eventually, run
from tests.operations.starving import Want, logged, metric, starving_gateway

SERVERS = {"a": fake("--only", "echo", protocol="modern", required=True)}
DROPPED = "onegate_records_dropped_total"
LONG = {f"part{number}": "\u4e00" * 255 for number in range(32)}
"""Arguments that make a record about as long as records get: 24 KB."""


def call(gateway: Gateway, times: int, arguments: dict[str, str] | None = None) -> None:
    """So many calls, some at a time; each has to be answered."""

    async def one_after_the_other(client: Modern, share: int) -> None:
        for _ in range(share):
            told = {"text": "x", **(arguments or {})}
            assert (await client.call("a__echo", told)).text == "x"

    async def conversation() -> None:
        async with Modern.to(gateway.url) as client, asyncio.TaskGroup() as tasks:
            for part in range(8):
                share = times // 8 + (part < times % 8)
                tasks.create_task(one_after_the_other(client, share))

    run(conversation(), within_s=60)


def records(file: Path) -> list[dict[str, Any]]:
    """Every line of it, which has to be whole."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_full_disk_stops_no_call_and_loses_nothing_that_fits_into_memory(tmp_path: Path) -> None:
    path, kept = tmp_path / "calls.jsonl", tmp_path / "kept.jsonl"
    path.symlink_to("/dev/full")
    with running_gateway(tmp_path, SERVERS, calls={"path": str(path)}) as gateway:
        call(gateway, 100)
        gateway.program.wait_text("record.blocked")
        (told,) = logged(gateway, "record.blocked")
        assert "No space left on device" in told["error"]
        assert metric(gateway, "onegate_record_writable") == 0
        assert told["to"] == str(path)

        mended = tmp_path / "mended"
        mended.symlink_to(kept)
        mended.replace(path)

        eventually(lambda: kept.exists() and len(records(kept)) == 100, 10)
        gateway.program.wait_text("record.resumed")
        assert len({each["call"] for each in records(kept)}) == 100
        assert metric(gateway, "onegate_record_writable") == 1
        assert metric(gateway, DROPPED) == 0


def test_what_does_not_fit_into_memory_is_counted_and_said(tmp_path: Path) -> None:
    path, kept = tmp_path / "calls.jsonl", tmp_path / "kept.jsonl"
    path.symlink_to("/dev/full")
    calls = {"path": str(path), "arguments": "redacted"}
    made = 800
    with running_gateway(tmp_path, SERVERS, calls=calls) as gateway:
        call(gateway, made, LONG)
        dropped = metric(gateway, DROPPED)
        assert dropped > 0

        mended = tmp_path / "mended"
        mended.symlink_to(kept)
        mended.replace(path)

        gateway.program.wait_text("record.resumed")
        eventually(lambda: len(records(kept)) + dropped == made, 10)
        assert metric(gateway, DROPPED) == dropped
        said = [*logged(gateway, "record.blocked"), *logged(gateway, "record.resumed")]
        assert sum(each["dropped"] for each in said) == dropped


def test_a_disk_that_fills_in_mid_line_leaves_no_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    which, unlimited = resource.RLIMIT_FSIZE, resource.RLIM_INFINITY
    nowhere = os.open(os.devnull, os.O_WRONLY)
    want = Want(limits={which: (1000, unlimited)}, stderr=nowhere)
    with starving_gateway(tmp_path, SERVERS, want, calls={"path": str(path)}) as gateway:
        call(gateway, 50)
        eventually(lambda: path.stat().st_size == 1000)
        call(gateway, 50)

        resource.prlimit(gateway.pid, which, (unlimited, unlimited))

        eventually(lambda: path.read_text().count("\n") == 100, 10)
        assert len({each["call"] for each in records(path)}) == 100
        assert metric(gateway, DROPPED) == 0
    os.close(nowhere)


def test_what_is_still_unwritten_at_the_end_is_said(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.symlink_to("/dev/full")
    with running_gateway(tmp_path, SERVERS, calls={"path": str(path)}) as gateway:
        call(gateway, 10)
    (told,) = logged(gateway, "record.lost")
    assert told["lines"] == 10


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    """(reading end, writing end)"""
    reading, writing = os.pipe()
    try:
        yield reading, writing
    finally:
        for end in (reading, writing):
            try:
                os.close(end)
            except OSError:
                continue


def test_a_log_nobody_can_read_any_more_stops_no_call(tmp_path: Path) -> None:
    with pipe() as (reading, writing):
        os.close(reading)
        with starving_gateway(tmp_path, SERVERS, Want(stderr=writing)) as gateway:
            call(gateway, 200)
            assert metric(gateway, "onegate_log_lines_dropped_total") > 0


def test_a_log_that_nobody_reads_stops_no_call_and_goes_on_in_whole_lines(tmp_path: Path) -> None:
    log, wanted = {"level": "debug", "format": "json"}, 500
    with (
        pipe() as (reading, writing),
        starving_gateway(tmp_path, SERVERS, Want(stderr=writing), log=log) as gateway,
    ):
        os.set_blocking(reading, False)
        call(gateway, wanted)
        assert metric(gateway, "onegate_log_lines_dropped_total") > 0
        assert metric(gateway, DROPPED) == 0

        told = b""

        def all_there() -> bool:
            nonlocal told
            try:
                told += os.read(reading, 1 << 16)
            except BlockingIOError:
                return False
            return told.count(b'"request_bytes"') == wanted

        eventually(all_there, 20, what="every record, late")
        whole = [json.loads(line) for line in told.split(b"\n")[:-1]]
        assert len({each["call"] for each in whole if "request_bytes" in each}) == wanted


def test_streams_that_are_closed_from_the_start_hurt_nobody(tmp_path: Path) -> None:
    """Their numbers would go to sockets and pipes, and the log with them."""
    closing = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
    calls = {"path": str(tmp_path / "calls.jsonl")}
    with starving_gateway(tmp_path, SERVERS, Want(around=closing), calls=calls) as gateway:
        call(gateway, 20)
        held = {os.readlink(f"/proc/{gateway.pid}/fd/{number}") for number in range(3)}
        assert held == {"/dev/null"}
    assert len(records(tmp_path / "calls.jsonl")) == 20
