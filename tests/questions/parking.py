"""A parked call without a server: a channel that only remembers, and a clock that is told."""

import asyncio
from asyncio import Future
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from gateway.calls.call import Call, Caller, Completed, InputRequired, Outcome, Spent
from gateway.calls.notices import Emitted, LogLine, Progress
from gateway.catalog.entries import Kind
from gateway.eras.legacy.leg import Leg
from gateway.eras.legacy.parked import Bounds, Parked, Room
from gateway.eras.sides import Answered
from gateway.protocol.jsonrpc import Fields, Raw, Request, decoded, raw, value
from gateway.protocol.revisions import BY_NAME
from tests.kit.waiting import run

T = TypeVar("T")
MODERN = BY_NAME["2026-07-28"]
LEGACY = BY_NAME["2025-11-25"]
ALL = Raw(b'{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{}}')


@dataclass(eq=False)
class Opened:
    """Implements `eras.sides.OpenRequest`."""

    id: int
    answer: "Future[Answered]"
    call: Call | None
    cancelled: list[str] = field(default_factory=list)

    def cancel(self, reason: str) -> None:
        self.cancelled.append(reason)
        self.answer.cancel()


@dataclass(eq=False)
class Memo:
    """Implements `eras.sides.Channel`: what the server was told."""

    server: str = "it"
    about: int | None = None
    answered: dict[Any, Any] = field(default_factory=dict)
    refused: dict[Any, tuple[int, str]] = field(default_factory=dict)

    async def open(self, method: str, params: Fields, call: Call | None = None) -> Opened:
        raise NotImplementedError

    def calls(self) -> Sequence[Call]:
        return ()

    def tell(self, method: str, params: Fields) -> None:
        raise NotImplementedError

    def bid(self, method: str, params: Fields) -> None:
        raise NotImplementedError

    def answer(self, request: Request, result: Fields) -> None:
        assert request.id not in self.answered, "answered twice"
        self.answered[request.id] = {key: decoded(held) for key, held in result.items()}

    def refuse(self, request: Request, code: int, message: str) -> None:
        self.refused[request.id] = (code, message)


@dataclass(eq=False)
class Lot:
    """One server's parked calls, and everything around them."""

    now: float = 1000.0
    bounds: Bounds = field(default_factory=Bounds)
    room: Room = field(default_factory=Room)
    channel: Memo = field(default_factory=Memo)
    freed: list[Leg] = field(default_factory=list)
    emitted: list[Emitted] = field(default_factory=list)
    parked: Parked = field(init=False)
    _count: int = 0

    def __post_init__(self) -> None:
        self.parked = Parked("it", lambda: self.now, self.bounds, self.room, self.freed.append)

    def call(
        self,
        name: str = "it__ask",
        arguments: str = '{"a": 1, "b": [2]}',
        principal: str | None = "ann",
        session: str | None = None,
        can: Raw | None = None,
        **more: Any,
    ) -> Call:
        params = {"name": raw(name), "arguments": Raw(arguments.encode())}
        params |= {key: raw(held) for key, held in more.items()}
        caller = Caller(MODERN, principal, capabilities=can or ALL, session=session)
        return Call(
            "c", "tools/call", Kind.TOOL, name, params, caller, Spent(), emit=self.emitted.append
        )

    def begin(self, call: Call | None = None, channel: Memo | None = None) -> Leg:
        self._count += 1
        call = call or self.call()
        future: Future[Answered] = asyncio.get_running_loop().create_future()
        opened = Opened(self._count, future, call)
        return self.parked.begin(opened, channel or self.channel, call, LEGACY)

    async def asked(self, call: Call | None = None, *ids: Any, size: int = 0) -> tuple[Leg, str]:
        """A call that the server has interrupted: its leg, and the token."""
        call = call or self.call()
        leg = self.begin(call)
        for id_ in ids or (self._count - 1,):
            leg.asked(question(id_, size=size))
        return leg, token_of(await leg.wait(call))

    def retry(self, token: str, call: Call | None, answers: Fields) -> Call:
        """The call again, with its token and these answers."""
        call = call or self.call()
        more = {"requestState": raw(token), "inputResponses": raw(answers)}
        return msgspec.structs.replace(call, params={**call.params, **more})

    async def resume(self, token: str, call: Call | None = None, **answers: Any) -> Outcome:
        return await self.parked.resume(self.retry(token, call, answers))


def question(id_: Any, *, size: int = 0) -> Request:
    params = {"message": Raw(b'"' + b"x" * size + b'"'), "mode": raw("form")}
    return Request(id_, "elicitation/create", params)


def token_of(outcome: Outcome) -> str:
    assert isinstance(outcome, InputRequired) and outcome.ours, outcome
    token: str = outcome.result["requestState"]
    return token


def keys_of(outcome: Outcome) -> list[str]:
    assert isinstance(outcome, InputRequired), outcome
    return list(outcome.result["inputRequests"])


def text_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Completed), outcome
    return str(value(outcome.result, "text"))


def answered(leg: Leg, text: str = "done", size: int = 10) -> None:
    """The server answers at last."""
    leg.opened.answer.set_result(Answered({"text": raw(text)}, size))


def opened(leg: Leg) -> Opened:
    assert isinstance(leg.opened, Opened)
    return leg.opened


async def settled() -> None:
    """Everything that was ready to run has run."""
    for _ in range(5):
        await asyncio.sleep(0)


def told(progress: float) -> Progress:
    return Progress({"progress": progress})


def logged(text: str) -> LogLine:
    return LogLine("info", {"data": text})


def conversation(body: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """A test's body as a test: run on a loop of its own, bounded."""

    def test() -> None:
        run(body(), within_s=10)

    test.__name__, test.__doc__ = body.__name__, body.__doc__
    return test


async def both(first: Awaitable[T], then: Awaitable[T]) -> tuple[T | BaseException, ...]:
    """Begin one, and while it waits the other; what came of each."""
    return tuple(await asyncio.gather(first, then, return_exceptions=True))
