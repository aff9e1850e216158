"""Log what became of entries on their way into the catalog: a little of each server.

A server may list anything, and something else each time it is asked: the log is not its to fill.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import structlog
from msgspec.structs import asdict

from gateway.catalog.notes import Note

log = structlog.get_logger()

BURST, PER_S = 200.0, 1.0
"""Lines of one server: at once, and then by and by."""


@dataclass(slots=True)
class _Share:
    """How many more lines may be written of one server."""

    at: float
    left: float = BURST
    unsaid: int = 0

    def takes(self, now: float, *, spare: float) -> bool:
        """Whether there is one to write now, and `spare` more for what is said at the end."""
        self.left, self.at = min(BURST, self.left + (now - self.at) * PER_S), now
        if self.left < 1 + spare:
            return False
        self.left -= 1
        return True


@dataclass(slots=True)
class Noting:
    clock: Callable[[], float]
    _shares: dict[str, _Share] = field(default_factory=dict)
    """By server: as many as the configuration has ever named."""

    def tell(self, notes: Iterable[Note]) -> None:
        """Log these, each server's up to its share, and then how many more there were."""
        now = self.clock()
        for note in notes:
            share = self._shares.setdefault(note.server, _Share(now))
            if share.takes(now, spare=1):
                about = {k: v for k, v in asdict(note).items() if v and k != "event"}
                log.warning(note.event, **about)
            else:
                share.unsaid += 1
        for server, share in self._shares.items():
            if share.unsaid and share.takes(now, spare=0):
                log.warning("notes.dropped", server=server, notes=share.unsaid)
                share.unsaid = 0
