"""The wall clock jumps: timestamps follow it, and nothing that waits or measures does."""

import ast
import asyncio
import json
from datetime import datetime
from pathlib import Path

import pytest

from tests.kit.fakes import fake
from tests.kit.gateway import Gateway, running_gateway
from tests.kit.http import Legacy, Modern
from tests.kit.processes import ROOT
from tests.kit.waiting import eventually, run

OFFSET = '''"""Puts the clock of every Python program wrong, by as many seconds as a file says."""

import os
import time

_true = time.time


def _wrong():
    try:
        with open(os.environ["CLOCK_OFFSET"]) as file:
            return _true() + float(file.read() or 0)
    except OSError:
        return _true()


time.time = _wrong
time.time_ns = lambda: int(_wrong() * 1e9)
'''
DAY_S = 86400
WALL = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "date.today"}
MAY_TELL_THE_TIME = {
    "gateway/app/compose.py": "hands it to the record",
    "gateway/app/reload.py": "says when the configuration was read",
    "gateway/app/reports.py": "says since when a server is in its state",
    "gateway/cli/records.py": "shows how long ago a call was",
    "gateway/cli/tables.py": "shows how long ago something was",
    "gateway/cli/serving.py": "hands it to the log",
    "gateway/cli/standing_in.py": "hands it to the log",
    "gateway/cli/standing_alone.py": "hands it to the log",
    "gateway/edge/listener.py": "hands it to the heads of answers",
    "gateway/observe/metrics.py": "says when the gateway started",
}


@pytest.mark.parametrize("jump_s", [30 * DAY_S, -30 * DAY_S], ids=["forth", "back"])
def test_a_clock_that_jumps_moves_timestamps_and_nothing_else(
    tmp_path: Path, jump_s: float
) -> None:
    offset = tmp_path / "offset"
    offset.write_text("0")
    (tmp_path / "sitecustomize.py").write_text(OFFSET)
    env = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "CLOCK_OFFSET": str(offset)}
    record = tmp_path / "calls.jsonl"

    async def conversation(gateway: Gateway) -> None:
        async with Legacy.to(gateway.url) as legacy, Modern.to(gateway.url) as modern:
            await legacy.initialize()
            async with asyncio.TaskGroup() as tasks:
                slow = tasks.create_task(modern.call("a__sleep", {"ms": 1000}))
                late = tasks.create_task(modern.call("a__hang"))
                await modern.call("a__echo", {"text": "before"})
                offset.write_text(str(jump_s))
                await legacy.call("a__echo", {"text": "after"})  # its session still lives

            assert slow.result().text == "slept 1000 ms"
            limit = late.result().result["_meta"]["onegate/error"]
            assert (limit["kind"], limit["limit"]) == ("timeout", "timeout")
            assert limit["elapsed_s"] < 10

    tools = [{"match": "a__hang", "timeout": "1500ms"}]
    servers = {"a": fake(protocol="modern")}
    calls = {"path": str(record)}
    with running_gateway(tmp_path, servers, env=env, tools=tools, calls=calls) as gateway:
        gateway.wait_tools("a__sleep")
        run(conversation(gateway))
        eventually(lambda: record.read_text().count("\n") == 4)
        assert gateway.status("/readyz") == 200

    told = [json.loads(line) for line in record.read_text().splitlines()]
    first, *others = (datetime.fromisoformat(each["ts"]).timestamp() for each in told)
    assert all(abs(at - first - jump_s) < 60 for at in others)
    assert all(0 <= each["duration_s"] < 10 for each in told)


def test_only_who_tells_the_time_asks_the_wall_clock() -> None:
    found = set()
    for file in (ROOT / "gateway").rglob("*.py"):
        path = file.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in WALL:
                found.add(path)

    assert {path for path in found if not path.startswith("gateway/demo/")} <= set(
        MAY_TELL_THE_TIME
    )
