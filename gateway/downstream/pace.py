"""How soon a changed list is read: soon, and less soon if that never ends.

Changes come in bursts, which are read once. Some servers announce a change whenever their list
is read: at full speed that would go on for ever.
"""

from dataclasses import dataclass

QUIET_S, LONGEST_S = 0.1, 5.0
"""How long after the first of a burst it is read, and after that of a server without end."""

IN_A_ROW_S = 1.0
"""A change so soon after the last reading goes with it."""

PATIENCE = 5
"""So many in a row may be a server that is just starting up."""


@dataclass(slots=True)
class Pace:
    """Of one server's lists. Told the time."""

    _in_a_row: int = 0
    _read_at: float = float("-inf")

    def wait_s(self, now: float) -> float:
        """A change has been announced: how long to wait before it is read."""
        goes_on = now - self._read_at < IN_A_ROW_S
        self._in_a_row = self._in_a_row + 1 if goes_on else 0
        wait_s = min(QUIET_S * 2.0 ** min(max(0, self._in_a_row - PATIENCE), 30), LONGEST_S)
        self._read_at = now + wait_s
        return wait_s
