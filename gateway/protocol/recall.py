"""What was made of an object before: clients say much the same with every request.

For pure functions of values that never change. Bounded: emptied when full.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from gateway.protocol.jsonrpc import Fields, Json, Raw, shallow

MOST = 256
LONGEST = 2048
"""Bytes of a `_meta` that is kept."""

K = TypeVar("K")
V = TypeVar("V")


class Kept(dict[str, Json]):
    """The members of a `_meta` that is kept, and pins nothing but its own bytes: what follows
    from it is worth recalling. Of any other, the memory would hold whole requests."""

    __slots__ = ()


def is_kept(held: object) -> bool:
    return isinstance(held, Kept)


class Recall(Generic[K, V]):
    """A function's answers, kept by the identity of what it was asked about."""

    __slots__ = ("_comes_again", "_known", "_work")

    def __init__(self, work: Callable[[K], V], comes_again: Callable[[K], bool] = is_kept) -> None:
        self._work, self._comes_again = work, comes_again
        self._known: dict[int, tuple[K, V]] = {}

    def __call__(self, held: K) -> V:
        """Raises what the function raises; that is not kept."""
        known = self._known.get(id(held))
        if known is not None and known[0] is held:
            return known[1]
        answer = self._work(held)
        if not self._comes_again(held):
            return answer
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[id(held)] = (held, answer)
        return answer


class Metas:
    """The members of `_meta` objects: the same mapping for the same bytes, so that what
    follows from it can be recalled. Never to be changed."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, Fields] = {}

    def opened(self, held: Json) -> Fields | None:
        """None if it is no object."""
        if not isinstance(held, Raw):
            return shallow(held)
        key = bytes(held)
        known = self._known.get(key)
        if known is None:
            known = shallow(held)
            if known is not None and len(key) <= LONGEST and _comes_again(known):
                known = Kept(shallow(Raw(key)) or {})
                if len(self._known) >= MOST:
                    self._known.clear()
                self._known[key] = known
        return known


def _comes_again(meta: Fields) -> bool:
    """Not what is another's with every request."""
    return "progressToken" not in meta and "traceparent" not in meta
