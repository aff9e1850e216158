"""Which resources clients want to hear about, counted over all of them.

Servers keep a set, not a count: one client's farewell must not end another's watch.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

Watch = Callable[[frozenset[str]], Awaitable[None]]
"""Told all URIs that anybody watches; returns once the servers know."""


@dataclass(slots=True)
class Watching:
    watch: Watch
    later: Callable[[Awaitable[None]], object]
    """Runs what need not be waited for, in a task somebody owns."""
    _counts: Counter[str] = field(default_factory=Counter)

    async def add(self, uris: Iterable[str]) -> None:
        """Count one more watcher for each. Returns when their servers have been told."""
        added = set(uris)
        news = any(not self._counts[uri] for uri in added)
        self._counts.update(added)
        if news:
            await self.watch(self._watched())

    def drop(self, uris: Iterable[str]) -> None:
        """Count one watcher less for each; never waits, so that it can be said on the way out."""
        self._counts.subtract(set(uris))
        gone = [uri for uri, count in self._counts.items() if count <= 0]
        for uri in gone:
            del self._counts[uri]
        if gone:
            self.later(self.watch(self._watched()))

    def _watched(self) -> frozenset[str]:
        return frozenset(uri for uri, count in self._counts.items() if count > 0)
