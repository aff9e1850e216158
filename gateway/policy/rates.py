"""How often something may happen: token buckets, each kept as one number."""

from collections.abc import Callable, Hashable

_FEW = 1024


class Rates:
    """A bucket for each key: `count` may come at once, the rest as they would trickle in.

    Instead of tokens a bucket remembers the moment at which it will be full again (the
    virtual scheduling of GCRA, ITU-T I.371): a full one need not be remembered at all.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._full_at: dict[Hashable, float] = {}
        self._sweep_at = _FEW

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, key: Hashable, count: float, per_s: float) -> float:
        """Take one of the `count` allowed in `per_s` seconds. Returns 0 if there was one,
        else the seconds until there is."""
        now = self._clock()
        full_at = max(self._full_at.get(key, now), now) + per_s / count
        wait_s = full_at - now - per_s
        if wait_s > 1e-9:
            return wait_s
        if len(self._full_at) >= self._sweep_at:
            self._sweep(now)
        self._full_at[key] = full_at
        return 0.0

    def _sweep(self, now: float) -> None:
        self._full_at = {key: at for key, at in self._full_at.items() if at > now}
        self._sweep_at = max(_FEW, 2 * len(self._full_at))
