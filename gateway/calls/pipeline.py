"""How a call passes through stages. Read `chain(a, b, c, end=h)` left to right, outside in."""

from collections.abc import Awaitable, Callable
from functools import partial, reduce
from typing import Protocol

from gateway.calls.call import Call, Outcome

Handler = Callable[[Call], Awaitable[Outcome]]


class Stage(Protocol):
    """Wraps the rest of the pipeline. Call `proceed` at most once; raise to refuse."""

    def __call__(self, call: Call, proceed: Handler) -> Awaitable[Outcome]: ...


def chain(*stages: Stage, end: Handler) -> Handler:
    def wrap(inner: Handler, stage: Stage) -> Handler:
        return partial(stage, proceed=inner)

    return reduce(wrap, reversed(stages), end)
