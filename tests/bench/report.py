"""Show the table to people, ratios first, and keep it for programs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.machine import Machine
from tests.bench.peers import CONSTANT, FLOOR, GATEWAY, HUB, PROXY
from tests.bench.rows import OURS, ROWS, Bound, Row
from tests.bench.workloads import Measured

COLUMNS = {
    GATEWAY.name: "onegate",
    FLOOR.name: "forwarder",
    HUB.name: "mcp-hub",
    PROXY.name: "mcp-proxy",
    CONSTANT.name: "constant",
}
SHORT = {FLOOR.name: "fwd", HUB.name: "hub", PROXY.name: "proxy"}
HEADINGS = ["work", "ratio", "required", "holds", *COLUMNS.values()]
Cells = list[str]


@dataclass(frozen=True, slots=True)
class Report:
    """All that one run of the bench found."""

    machine: Machine
    repeats: Sequence[Measured]
    workloads: Sequence[str]
    details: Sequence[dict[str, object]] = ()

    @property
    def rows(self) -> list[Row]:
        """Those whose workload was run."""
        return [row for row in ROWS if row.workload in self.workloads]

    def failing(self) -> list[str]:
        return [row.work for row in self.rows if self.holds(row) == "no"]

    def holds(self, row: Row) -> str:
        """`yes`, `no`, or `?` if a peer that one of its bounds needs was not measured."""
        if row.typical(OURS, self.repeats) is None:
            return "no"
        values = [(bound, bound.value(row, self.repeats)) for bound in row.bounds]
        if any(value is not None and not bound.holds(value) for bound, value in values):
            return "no"
        return "?" if any(value is None for _, value in values) else "yes"

    def table(self) -> str:
        """Aligned, and Markdown at the same time."""
        lines = [HEADINGS, *(self._cells(row) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        drawn = [_line(cells, widths) for cells in lines]
        return "\n".join([drawn[0], _line(["-" * width for width in widths], widths), *drawn[1:]])

    def as_json(self) -> dict[str, object]:
        return {
            "machine": self.machine.as_json(),
            "rows": [
                {
                    "work": row.work,
                    "figure": row.figure,
                    "unit": row.unit,
                    "holds": self.holds(row),
                    "required": [_required(bound, row.unit) for bound in row.bounds],
                    "ratios": [bound.value(row, self.repeats) for bound in row.bounds],
                    "medians": {name: row.typical(name, self.repeats) for name in COLUMNS},
                }
                for row in self.rows
            ],
            "repeats": self.repeats,
            "details": self.details,
        }

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"results-{datetime.now(UTC):%Y-%m-%dT%H%M%S}.json"
        file.write_text(json.dumps(self.as_json(), indent=1))
        return file

    def _cells(self, row: Row) -> Cells:
        ratios = [_ratio(bound, row, self.repeats) for bound in row.bounds]
        required = [_required(bound, row.unit) for bound in row.bounds]
        medians = [_figure(row.typical(name, self.repeats), row.unit) for name in COLUMNS]
        return [row.work, ", ".join(ratios), ", ".join(required), self.holds(row), *medians]


def _ratio(bound: Bound, row: Row, repeats: Sequence[Measured]) -> str:
    value = bound.value(row, repeats)
    if value is None:
        return "?"
    if bound.by_difference:
        return f"{_number(value, signed=True)} {row.unit}"
    return f"{_number(value)} {SHORT.get(bound.against or '', '')}".strip()


def _required(bound: Bound, unit: str) -> str:
    if bound.by_difference:
        return f"{bound.sense.value} +{bound.limit:g} {unit}"
    what = SHORT[bound.against] if bound.against else unit
    return f"{bound.sense.value} {bound.limit:g} {what}".strip()


def _figure(value: float | None, unit: str) -> str:
    return "" if value is None else f"{_number(value)} {unit}".strip()


def _number(value: float, signed: bool = False) -> str:
    if value % 1 == 0:
        return f"{value:{'+' if signed else ''},.0f}"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:{'+' if signed else ''},.{digits}f}"


def _line(cells: Cells, widths: Sequence[int]) -> str:
    return "| " + " | ".join(map(str.ljust, cells, widths)) + " |"
