"""How long to wait before the gateway is tried again."""

import random

FIRST_S = 0.2
LONGEST_S = 5.0


class Waits:
    """Longer each time, up to a bound, and not the same for all who wait for one gateway."""

    def __init__(self) -> None:
        self._next_s = FIRST_S

    def next_s(self) -> float:
        wait_s, self._next_s = self._next_s, min(LONGEST_S, self._next_s * 2)
        return wait_s * random.uniform(0.75, 1.25)

    def restart(self) -> None:
        self._next_s = FIRST_S
