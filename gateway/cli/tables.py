"""Servers, tools and calls as tables."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from gateway.cli.screen import Column, Grid, first_line
from gateway.edge.admin.operator import ServerReport, ToolReport


def servers(
    reports: Sequence[ServerReport], *, restarts: bool = False, errors: bool = False
) -> Grid:
    """The servers. A terminal has no room for `errors`, and shows them below."""
    columns = [
        Column("SERVER", style="bold"),
        Column("STATE"),
        Column("PROTOCOL"),
        Column("TOOLS", right=True),
        Column("RESOURCES", right=True),
        Column("PROMPTS", right=True),
    ]
    rows = [
        [
            each.name,
            each.state,
            "+".join(each.eras),
            *map(str, (each.tools, each.resources, each.prompts)),
            *([str(each.restarts)] if restarts else []),
            *([each.last_error or ""] if errors else []),
        ]
        for server in reports
        for each in (server, *_second(server))
    ]
    columns += [Column("RESTARTS", right=True)] if restarts else []
    columns += [Column("LAST ERROR")] if errors else []
    return Grid(columns, rows)


def _second(server: ServerReport) -> Iterable[ServerReport]:
    """A line of its own for the process of a server's second era."""
    if (second := server.second) is not None:
        yield ServerReport(
            f"{server.name} ({second.era})",
            second.state,
            (second.era,),
            restarts=second.restarts,
            tools=server.tools,
            prompts=server.prompts,
            resources=server.resources,
            last_error=second.last_error,
        )


def troubles(reports: Iterable[ServerReport]) -> list[tuple[str, str]]:
    """Of the servers that are not well: name, and why."""
    every = [each for server in reports for each in (server, *_second(server))]
    return [(each.name, each.last_error) for each in down(every) if each.last_error]


def down(reports: Iterable[ServerReport]) -> list[ServerReport]:
    """Those that are not ready, though they should be."""
    return [each for each in reports if each.state not in ("ready", "disabled")]


def tools(reports: Sequence[ToolReport], *, decided: bool | None = None) -> Grid:
    """The tools. `decided`: with what the rules say of each; default: if they deny any."""
    if decided is None:
        decided = any(each.decision != "allow" for each in reports)
    columns = [Column("TOOL", style="bold")]
    columns += [Column("DECISION")] if decided else []
    columns += [Column("WHAT IT DOES", elastic=True)]
    rows = [[each.name, *([each.decision] if decided else []), said(each)] for each in reports]
    return Grid(columns, rows)


def said(tool: ToolReport) -> str:
    return first_line(tool.description) or first_line(tool.title)


def calls(records: Sequence[Mapping[str, Any]]) -> Grid:
    """Records of calls, one a row."""
    return Grid(
        [
            Column("WHEN", style="dim"),
            Column("TOOL", style="bold"),
            Column("OUTCOME"),
            Column("TOOK", right=True),
            Column("CLIENT"),
            Column("ERROR", elastic=True),
        ],
        [row(record) for record in records],
    )


def row(record: Mapping[str, Any]) -> list[str]:
    """When, what, how it ended, how long it took, for whom, and why it failed."""
    told = [str(record.get(key) or "") for key in ("name", "outcome", "client", "error")]
    return [when(record), *told[:2], took(record.get("duration_s")), *told[2:]]


def when(record: Mapping[str, Any]) -> str:
    """Local time; with the day if it is another one."""
    try:
        at = datetime.fromisoformat(str(record.get("ts"))).astimezone()
    except ValueError:
        return ""
    today = datetime.now().astimezone().date()
    return f"{at:%H:%M:%S}" if at.date() == today else f"{at:%m-%d %H:%M:%S}"


def took(seconds: object) -> str:
    if not isinstance(seconds, int | float):
        return ""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
