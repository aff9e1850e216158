"""A configuration that has been read: its values, and where each of them is written."""

from dataclasses import dataclass, field
from pathlib import Path

from gateway.config.complaints import Complaint, Finding, Quotes, veiled
from gateway.config.document import Document, Flaw, Marks
from gateway.config.model import Config


@dataclass(frozen=True, slots=True)
class Places:
    """Gives findings their place in the file."""

    shown: str
    document: Document
    marks: Marks
    quotes: Quotes

    def complaint(self, finding: Finding) -> Complaint:
        span = self.marks.span_of(finding.path, at_key=finding.at_key) if finding.path else None
        return Complaint(
            file=self.shown,
            problem=finding.problem,
            path=self.marks.as_written(veiled(finding.path)),
            line=span.line if span else None,
            column=span.column if span else None,
            excerpt=self.quotes.quote(span) if span else "",
            meant=finding.meant,
            severity=finding.severity,
        )

    def flaw(self, flaw: Flaw) -> Complaint:
        span, quoted = flaw.span, self.quotes.quote(flaw.span)
        return Complaint(self.shown, flaw.problem, (), span.line, span.column, quoted)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration that holds, and where each setting came from."""

    config: Config
    file: Path
    marks: Marks = field(repr=False)
    warnings: tuple[Complaint, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """Values that must not be shown anywhere: from `${...}`, and all of `env` and `headers`."""
    places: Places | None = field(default=None, repr=False)
    """There where it was read in this process: `load.examine` needs them."""
    secret_files: frozenset[Path] = frozenset()
    """What `${file:PATH}` read."""
