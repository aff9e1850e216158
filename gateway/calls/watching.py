"""Which resources clients want to hear about, counted over all of them.

Servers keep a set, not a count: one client's farewell must not end another's watch.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Container, Iterable
from dataclasses import dataclass, field

MOST_WATCHED = 1000
"""URIs one client may name at a time: each is kept in memory, and told to a server."""

PARTS = frozenset("/?#")
"""Where the name of a part begins, in a URI."""

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


def is_watched(uri: str, watched: Container[str]) -> bool:
    """Whether who watches these is told of this one: of itself, or of what it is a part of.
    (Of `uri` in `notifications/resources/updated` each schema says: "This might be a sub-resource
    of the one that the client actually subscribed to.")"""
    if uri in watched:
        return True
    ends = (at for at, letter in enumerate(uri) if letter in PARTS)
    return any(uri[:at] in watched or uri[: at + 1] in watched for at in ends)
