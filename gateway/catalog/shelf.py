"""Where the current catalog is found."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from gateway.catalog.catalog import Catalog, changed_kinds
from gateway.catalog.entries import Kind, Listing
from gateway.catalog.merging import merge


class Shelf:
    """Holds one immutable catalog and swaps it whole.

    A reader takes `current` once and keeps it: what it saw cannot change under it. As long
    as nothing changes it stays the same object, so that what others derive from it holds.
    """

    def __init__(
        self,
        prefixes: Mapping[str, str],
        longest: int,
        own: Callable[[], Iterable[Listing]] = tuple,
    ) -> None:
        self.prefixes, self.longest = prefixes, longest
        """As `merge` takes them; a reload sets them before it restocks."""
        self._own = own
        self.current = Catalog()

    def restock(self, listings: Iterable[Listing]) -> frozenset[Kind]:
        """Offer what these listings merge to. Returns the kinds clients must re-list."""
        before = self.current
        after = merge([*listings, *self._own()], self.prefixes, self.longest, before.serial + 1)
        if replace(after, serial=before.serial) == before:
            return frozenset()
        self.current = after
        return changed_kinds(before, after)
