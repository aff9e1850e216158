"""The latest calls: from a running gateway, or from the file it leaves its record in."""

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import click

from gateway.cli import tables
from gateway.cli.asking import Admin, NobodyThere
from gateway.cli.ending import Failed
from gateway.cli.reach import Reach
from gateway.cli.screen import is_terminal, show, visible
from gateway.cli.standing_in import shown

Record = Mapping[str, Any]
LOOK_EVERY_S = 0.5
FOLLOWED = 200
"""Records asked for at each look: more calls than this in half a second are not for people."""


def calls(reach: Reach, last: int, only: Mapping[str, str], *, follow: bool, as_json: bool) -> None:
    address = reach.admin()
    try:
        if address is None:
            raise NobodyThere
        admin = Admin(address, reach.token)
        records: Sequence[Record] = admin.calls(last, only)
        fresh = _from_gateway(admin, only)
    except NobodyThere:
        file = _file(reach, str(address) if address else None)
        records = newest(file, last, only)
        fresh = _from_file(file, only)
    if follow:
        _follow(records, fresh, as_json=as_json)
    elif as_json:
        _print(records)
    elif not records and is_terminal():
        click.echo("No calls yet." if not only else "No such calls.")
    else:
        show(tables.calls(records))


def fits(record: Record, only: Mapping[str, str]) -> bool:
    """A tool may be asked for by either of its names."""
    return all(
        record.get(key) == wanted or (key == "tool" and record.get("name") == wanted)
        for key, wanted in only.items()
    )


def newest(file: Path, last: int, only: Mapping[str, str]) -> Sequence[Record]:
    """The last records of a file that fit, oldest first. Torn lines are passed over."""
    with _opened(file) as lines:
        return tuple(deque((one for one in _records(lines) if fits(one, only)), maxlen=last))


def _records(lines: Iterator[bytes] | IO[bytes]) -> Iterator[Record]:
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def _file(reach: Reach, address: str | None) -> Path:
    where = f"no gateway runs at {address}" if address else "the configuration says `admin: off`"
    found = None if reach.given is not None else reach.configuration
    path = found.config.calls.path if found is not None else None
    if path is None:
        raise Failed(f"{where}, and no file keeps its record (`calls.path`)")
    return path


def _opened(file: Path) -> IO[bytes]:
    try:
        return file.open("rb")
    except FileNotFoundError:
        raise Failed(f"no gateway runs, and none has left a record at {shown(str(file))}") from None
    except OSError as error:
        raise Failed(f"cannot read {shown(str(file))}: {error.strerror}") from None


def _from_gateway(admin: Admin, only: Mapping[str, str]) -> Callable[[], Sequence[Record]]:
    seen = {record.get("call") for record in admin.calls(FOLLOWED, {})}

    def fresh() -> Sequence[Record]:
        records = admin.calls(FOLLOWED, {})
        found = [one for one in records if one.get("call") not in seen and fits(one, only)]
        seen.clear()
        seen.update(record.get("call") for record in records)
        return found

    return fresh


def _from_file(file: Path, only: Mapping[str, str]) -> Callable[[], Sequence[Record]]:
    reading = _opened(file)
    reading.seek(0, os.SEEK_END)
    rest = b""

    def fresh() -> Sequence[Record]:
        nonlocal rest
        *lines, rest = (rest + reading.read()).split(b"\n")
        return [one for one in _records(iter(lines)) if fits(one, only)]

    return fresh


def _follow(
    records: Sequence[Record], fresh: Callable[[], Sequence[Record]], *, as_json: bool
) -> None:
    """Print what is there, then what comes, until Ctrl-C."""
    show_more = _print if as_json else _rows
    show_more(records)
    while True:
        time.sleep(LOOK_EVERY_S)
        try:
            show_more(fresh())
        except NobodyThere:
            raise Failed("the gateway has gone") from None


def _print(records: Sequence[Record]) -> None:
    for record in records:
        click.echo(json.dumps(record, ensure_ascii=False))


def _rows(records: Sequence[Record]) -> None:
    """One line each, in columns that do not know of each other: nobody can tell what comes."""
    for record in records:
        when, name, outcome, took, client, error = (visible(c) for c in tables.row(record))
        told = f"{when}  {name:<32} {outcome:<12} {took:>8}  {client}  {error}".rstrip()
        click.echo(told)
