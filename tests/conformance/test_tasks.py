"""The suite's scenarios of the extension for tasks, which it does not score, through the gateway.

`tasks-status-notifications` is not among them: the suite skips it itself, waiting to be rewritten
for `subscriptions/listen`.
"""

import sys
from pathlib import Path

import pytest

from tests.conformance.suite import run_extension
from tests.kit.gateway import running_gateway
from tests.kit.processes import ROOT

CHECKS = {
    "tasks-lifecycle": 9,
    "tasks-capability-negotiation": 5,
    "tasks-wire-fields": 4,
    "tasks-request-state-removal": 3,
    "tasks-mrtr-input": 4,
    "tasks-request-headers": 5,
    "tasks-dispatch-and-envelope": 9,
    "tasks-required-task-error": 3,
    "tasks-mrtr-composition": 2,
}


@pytest.mark.conformance
@pytest.mark.timeout(300)
def test_every_scenario_of_tasks_passes_through_the_gateway(tmp_path: Path) -> None:
    server = {
        "command": sys.executable,
        "args": ["-m", "tests.conformance.tasks_server"],
        "cwd": str(ROOT),
        "prefix": "",
        "required": True,
        "protocol": "modern",
    }
    with running_gateway(tmp_path, {"tasks": server}) as gateway:
        url = gateway.url.replace("127.0.0.1", "localhost")
        seen = {name: run_extension("2026-07-28", name, url) for name in CHECKS}

    counted = {name: [check for check in checks if check.counts] for name, checks in seen.items()}
    wrong = [c for checks in counted.values() for c in checks if c.status != "SUCCESS"]
    assert wrong == []
    assert {name: len(checks) for name, checks in counted.items()} == CHECKS
