"""Who is waiting for what on one message channel. Sans-io: it never awaits.

Hands out request ids (which serve as progress tokens too), matches answers to
questions, and says which messages are nobody's. The driver is `downstream.link`.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from gateway.protocol.jsonrpc import Json

Waiter = TypeVar("Waiter")

REMEMBERED = 1024
"""Requests given up whose late answers are still told from strays: more than a server
of any sense has in the works."""


@dataclass(slots=True)
class Exchange(Generic[Waiter]):
    """Ids are integers from one counter and never used again, so that an answer that
    comes too late cannot be taken for another's."""

    waiting: dict[int, Waiter] = field(default_factory=dict)
    late: int = 0
    """Answers that came after their request had been given up."""
    stray: int = 0
    """Answers to nothing we ever asked."""
    _next_id: int = 1
    _given_up: "OrderedDict[int, None]" = field(default_factory=OrderedDict)

    def next_id(self) -> int:
        id_ = self._next_id
        self._next_id += 1
        return id_

    def unheard_id(self) -> int:
        """The id of a request whose answer, which may come, nobody waits for."""
        id_ = self.next_id()
        self._give_up(id_)
        return id_

    def wait(self, id_: int, waiter: Waiter) -> None:
        self.waiting[id_] = waiter

    def find(self, id_: Json) -> Waiter | None:
        """Whose progress token or id this is; some servers hand integers back as text."""
        return self.waiting.get(_number(id_))

    def settle(self, id_: Json) -> Waiter | None:
        """Take whoever waits for this answer; None if nobody does, which is counted."""
        number = _number(id_)
        waiter = self.waiting.pop(number, None)
        if waiter is None:
            if number in self._given_up:
                del self._given_up[number]
                self.late += 1
            else:
                self.stray += 1
        return waiter

    def sole(self) -> Waiter | None:
        """The one who waits, if there is only one: the only honest owner of what names no id."""
        return next(iter(self.waiting.values())) if len(self.waiting) == 1 else None

    def forget(self, id_: int) -> bool:
        """Give a request up. False if it had ended already."""
        if self.waiting.pop(id_, None) is None:
            return False
        self._give_up(id_)
        return True

    def close(self) -> tuple[Waiter, ...]:
        """Everyone still waiting; they will get no answer from here."""
        waiting = tuple(self.waiting.values())
        self.waiting.clear()
        return waiting

    def _give_up(self, id_: int) -> None:
        self._given_up[id_] = None
        if len(self._given_up) > REMEMBERED:
            self._given_up.popitem(last=False)


def _number(id_: Json) -> int:
    if isinstance(id_, int):
        return id_
    return (
        int(id_)
        if isinstance(id_, str) and id_.isascii() and id_.isdigit() and len(id_) < 19
        else -1
    )
