"""What docs/protocol.md says of bounds, isolation and the suite is what the code and tests say."""

import re
from pathlib import Path
from typing import get_args, get_type_hints

from gateway.calls import watching
from gateway.config.model import Limits, Server
from gateway.downstream import apart
from gateway.downstream.pool import Pool
from gateway.downstream.seats import Places
from gateway.eras.legacy import asking, backlog, leg, parked, sessions
from gateway.eras.tasks import Tasks
from gateway.policy import background
from gateway.protocol.revisions import KNOWN
from tests.conformance.crossing import reasons

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "protocol.md").read_text()
BOUNDS = PAGE.partition("## Bounds")[2].partition("\n## ")[0]
MIB = 2**20


def bound(what: str) -> str:
    """The cell of the table of bounds that begins with these words."""
    (found,) = [row.split("|")[2] for row in BOUNDS.splitlines() if row.startswith(f"| {what}")]
    return found.replace(",", "")


def numbers(what: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+", bound(what))]


def default(section: type, name: str) -> object:
    return section.__dataclass_fields__[name].default  # type: ignore[attr-defined]


def test_bounds_are_those_of_the_code() -> None:
    limits, waiting, server = Limits(), parked.Bounds(), Server()
    assert numbers("sessions") == [limits.sessions, limits.session_idle_s / 60]
    assert numbers("private") == [
        *(server.processes, limits.processes, server.queue, apart.WAITING_SHARE * 100),
    ]
    idle = [server.process_idle_s, server.owned_process_idle_s]
    assert [minutes * 60 for minutes in numbers("idle private")] == idle
    assert numbers("parked") == [
        *(limits.parked, limits.parked_per_principal, limits.parked_call_bytes / MIB),
        *(limits.parked_total_bytes / MIB, limits.answer_s / 60),
    ]
    assert numbers("an answer") == [waiting.kept_s]
    assert numbers("questions") == [limits.rounds, leg.MOST_ASKS]
    assert numbers("changes kept") == [sessions.UNHEARD]
    assert numbers("URIs") == [watching.MOST_WATCHED]


def test_what_is_made_without_a_configuration_has_the_same_bounds() -> None:
    limits, server = Limits(), Server()
    assert parked.Bounds() == parked.Bounds(
        *(limits.parked, limits.parked_per_principal, limits.rounds),
        *(limits.parked_call_bytes, limits.answer_s),
    )
    assert parked.Room().most_bytes == limits.parked_total_bytes
    assert asking.Patience() == asking.Patience(limits.answer_s, limits.rounds)
    assert Places().most == limits.processes
    made = [default(Pool, name) for name in ("most", "queue", "idle_s", "claimed_idle_s")]
    assert made == [
        *(server.processes, server.queue, server.process_idle_s, server.owned_process_idle_s),
    ]


def test_bounds_of_streams_tasks_and_background_calls_are_those_of_the_code() -> None:
    kept, gone_on = backlog.Bounds(), background.Bounds()
    sizes = [kept.stream_bytes / MIB, kept.session_bytes / MIB, kept.all_bytes / MIB]
    assert numbers("events kept") == [kept.events, *sizes, kept.kept_s / 60]
    assert numbers("tasks of servers") == [default(Tasks, "most"), default(Tasks, "per_principal")]
    told = [gone_on.most, gone_on.per_principal, gone_on.all_bytes / MIB]
    assert numbers("calls gone on") == told
    assert gone_on.kept_s == 3600
    assert f"A person has {Limits().answer_s / 60:g} minutes" in PAGE
    assert f"within {leg.TOGETHER_S * 1000:g} ms" in PAGE


def test_each_isolation_and_each_revision_is_explained() -> None:
    kinds = get_args(get_type_hints(Server)["isolation"])
    table = PAGE.partition("## Who shares a process")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert set(rows) - {"isolation"} == set(kinds)
    assert all(revision.name in PAGE for revision in KNOWN)


def test_scenarios_that_cannot_pass_are_named() -> None:
    assert all(f"- `{name}`" in PAGE for name in reasons("2026-07-28 with a legacy server"))
    assert reasons("2025-11-25 with a modern server") == {}


def test_links_lead_somewhere() -> None:
    headings = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert links
    assert {link[1:] for link in links if link.startswith("#")} <= anchors
    assert all((DOCS / link).is_file() for link in links if not link.startswith("#"))
