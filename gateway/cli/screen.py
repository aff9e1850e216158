"""How output looks: tables and colour on a terminal, plain columns in a pipe, JSON for programs."""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

_WORDS = {
    "green": "ready allow ok",
    "yellow": "starting waiting tool_error input_required",
    "red": "deny denied refused invalid throttled timeout unavailable server_error",
    "bold red": "failed crashed",
    "dim": "stopped disabled cancelled",
}
STYLES = {word: style for style, words in _WORDS.items() for word in words.split()}
"""Words that mean something wherever they stand alone: states, decisions, outcomes."""


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    right: bool = False
    """Numbers stand at the right."""
    style: str = ""
    elastic: bool = False
    """Takes what width is left, and is cut on a terminal; all others are shown whole."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table, not yet drawn."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]


def is_terminal() -> bool:
    return sys.stdout.isatty()


def console(*, err: bool = False) -> "Console":
    """A terminal to draw on; honours NO_COLOR. Only what is drawn there pays for rich."""
    from rich.console import Console

    return Console(stderr=err, highlight=False, soft_wrap=False)


def show(grid: Grid) -> None:
    """Print a table, whoever reads it."""
    if is_terminal():
        draw(grid, console())
    else:
        click.echo("\n".join(plain(grid)))


def draw(grid: Grid, on: "Console") -> None:
    """As a person sees it: no frames, one line a row."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in grid.columns:
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            style=column.style,
            overflow="ellipsis",
            no_wrap=True,
            min_width=None if column.elastic else _widest(grid, column),
            ratio=1 if column.elastic else None,
        )
    table.expand = any(column.elastic for column in grid.columns)
    for row in grid.rows:
        table.add_row(*(Text(visible(cell), STYLES.get(cell, "")) for cell in row))
    on.print(table)


def _widest(grid: Grid, column: Column) -> int | None:
    at = list(grid.columns).index(column)
    widest = max((len(row[at]) for row in grid.rows), default=0)
    return max(widest, len(column.title)) if widest <= 40 else None


def plain(grid: Grid) -> Iterable[str]:
    """Aligned columns, nothing cut: for pipes, grep and awk."""
    titles = [column.title for column in grid.columns]
    rows = [titles, *([visible(cell) or "-" for cell in row] for row in grid.rows)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(titles))]
    for row in rows:
        padded = (
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(row, widths, grid.columns, strict=True)
        )
        yield "  ".join(padded).rstrip()


def show_json(value: Any) -> None:
    """For programs: what it is, indented, in UTF-8."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def visible(text: str) -> str:
    """One line that cannot steer a terminal, whatever a server or client wrote into it."""
    from gateway.observe.visible import visible as spelt

    return spelt(text)


def first_line(text: str | None) -> str:
    """What a description says at a glance."""
    lines = (text or "").strip().splitlines()
    return lines[0].strip() if lines else ""


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
