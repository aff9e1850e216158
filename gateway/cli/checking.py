"""Look over a configuration, and print the schema of all of them."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.reach import here
from gateway.cli.screen import count, is_terminal, show_json
from gateway.config.complaints import Complaint, ConfigError, render
from gateway.config.environ import environment
from gateway.config.load import examine, load
from gateway.config.loaded import Loaded
from gateway.config.schema import schema as made_schema

if TYPE_CHECKING:
    from gateway.config.model import StdioServer


def check(file: Path | None, *, strict: bool, as_json: bool) -> None:
    """Exit 2 for errors, 1 for warnings where `strict` asks for it."""
    try:
        loaded = load(file, environment(), here())
    except ConfigError as error:
        if as_json:
            show_json({"ok": False, "problems": [_told(one) for one in error.complaints]})
        else:
            click.echo(str(error), err=True)
        sys.exit(2)
    warnings = examine(loaded, program_of)
    if as_json:
        problems = [_told(one) for one in warnings]
        show_json({"ok": not (strict and warnings), "file": str(loaded.file), "problems": problems})
    else:
        if warnings:
            click.echo(render(warnings), err=True)
        click.echo("\n".join(summary(loaded, len(warnings))))
    if strict and warnings:
        sys.exit(1)


def summary(loaded: Loaded, warnings: int) -> list[str]:
    """What the file amounts to."""
    config = loaded.config
    verdict = f"OK, with {count(warnings, 'warning')}" if warnings else "OK"
    if is_terminal():
        verdict = click.style(verdict, fg="yellow" if warnings else "green", bold=True)
    names = list(config.servers)
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return [
        f"{_shown(loaded.file)}: {verdict}",
        f"  {count(len(names), 'server')}" + (f": {listed}" if names else ""),
        f"  {count(len(config.tools), 'rule')} for tools; else {config.default_decision}",
        f"  clients connect to {', '.join(map(str, config.listen))}",
        f"  operators connect to {config.admin or 'nothing (admin: off)'}",
    ]


def program_of(server: "StdioServer") -> str | None:
    """The program a server would start, on the PATH that its process will have."""
    from gateway.downstream.environment import CannotStart, Launch, find_program

    launch = Launch.of("", server, environment())
    try:
        return find_program(launch.argv, {**launch.env, **launch.env_over}, launch.cwd)
    except CannotStart:
        return None


def schema() -> None:
    click.echo(json.dumps(made_schema(), indent=2))


def _told(complaint: Complaint) -> dict[str, Any]:
    return {
        "file": complaint.file,
        "line": complaint.line,
        "column": complaint.column,
        "path": list(complaint.path),
        "severity": complaint.severity,
        "problem": complaint.problem,
        "meant": complaint.meant,
    }


def _shown(file: Path) -> str:
    return str(file.relative_to(here()) if file.is_relative_to(here()) else file)
