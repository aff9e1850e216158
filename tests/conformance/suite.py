"""The suite itself: install it, run one revision's scenarios, read what each check said."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.kit.installs import CACHE, node_environment, npm_packages
from tests.kit.processes import ROOT

PACKAGE = "@modelcontextprotocol/conformance"
VERSION = "0.2.0-alpha.12"
# The longest scenario waits a few seconds; a scenario that hangs is given up after 30 s.
WAIT_S = 600
CLIENT_S = 60
# `server-NAME-2026-07-28T10-11-12-131Z`: one folder for each scenario that ran.
_FOLDER = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


@dataclass(frozen=True)
class Check:
    """One thing that a scenario looked at. `status`: SUCCESS, FAILURE, WARNING, SKIPPED or INFO."""

    name: str
    status: str
    message: str

    @property
    def counts(self) -> bool:
        return self.status in ("SUCCESS", "FAILURE", "WARNING")


Results = Mapping[str, Sequence[Check]]


def scored(revision: str) -> list[str]:
    """The server scenarios that this revision requires, in the order of the suite."""
    listed = _run("list", "--requirements", revision).stdout
    section = listed.partition("Server scenarios")[2].partition("Client scenarios")[0]
    return re.findall(r"^ +- (\S+)", section, re.MULTILINE)


def run_requirements(revision: str, url: str) -> Results:
    """Every scenario of a revision, scored or not, against the endpoint at `url`.

    What the scenarios saw is kept in the cache, for whoever has to find out why one failed.
    """
    folder = CACHE / "conformance-results" / revision
    shutil.rmtree(folder, ignore_errors=True)
    _run("server", "--url", url, "--requirements", revision, "--output-dir", str(folder))
    return _read(folder)


def run_extension(revision: str, scenario: str, url: str) -> Sequence[Check]:
    """One scenario of an extension: of no revision, so that it has to be forced."""
    folder = CACHE / "conformance-results" / f"extension-{revision}" / scenario
    shutil.rmtree(folder, ignore_errors=True)
    _run(
        *("server", "--url", url, "--scenario", scenario, "--spec-version", revision, "--force"),
        *("--output-dir", str(folder)),
    )
    return [check for file in folder.glob("*/checks.json") for check in _checks(file)]


def warm_up(revision: str, url: str) -> None:
    """Have a server in front of which the suite asks questions start what it needs for that.

    The suite allows an answer 600 ms; a legacy server's process for a client that can be
    asked is started with the first call that needs one, and that takes longer when busy.
    """
    asking = {"2025-11-25": "tools-call-sampling"}
    scenario = asking.get(revision, "server-stateless")
    _run("server", "--url", url, "--scenario", scenario, "--spec-version", revision)


def run_client(revision: str, scenario: str) -> Sequence[Check]:
    """One scenario of a revision in which the suite is the server, and the gateway its client."""
    folder = CACHE / "conformance-results" / f"client-{revision}" / scenario
    shutil.rmtree(folder, ignore_errors=True)
    command = f"{sys.executable} -m tests.conformance.client"
    _run(
        *("client", "--command", command, "--scenario", scenario, "--spec-version", revision),
        *("--timeout", str(CLIENT_S * 1000), "--output-dir", str(folder)),
    )
    return [check for file in folder.glob("*/checks.json") for check in _checks(file)]


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    installed = npm_packages("conformance", [f"{PACKAGE}@{VERSION}"])
    program = installed / "node_modules" / PACKAGE / "dist" / "index.js"
    return subprocess.run(
        ["node", str(program), *arguments],
        cwd=ROOT,
        env=node_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


def _read(folder: Path) -> dict[str, list[Check]]:
    results: dict[str, list[Check]] = {}
    for file in sorted(folder.glob("*/checks.json")):
        if named := _FOLDER.fullmatch(file.parent.name):
            results[named[1]] = _checks(file)
    return results


def _checks(file: Path) -> list[Check]:
    return [
        Check(each["id"], each["status"], each.get("errorMessage") or "")
        for each in json.loads(file.read_text())
    ]
