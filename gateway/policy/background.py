"""The stage that answers clients before a slow call has ended, and lets the call go on.

A tool rule says `background: after 20s`: what takes longer ends, for its client, with a
handle under which the rest is fetched, so that no client's time limit loses work. It stands
outside the record: the call is written down when it has really ended.
"""

import secrets
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from gateway.calls.call import Call, Caller, Completed, InputRequired, Outcome
from gateway.calls.notices import BackgroundMoved, Board
from gateway.calls.pipeline import Handler
from gateway.catalog.entries import OWN
from gateway.policy import phrases
from gateway.policy.going_on import GoingOn, done_of
from gateway.protocol.jsonrpc import Fields, Json
from gateway.protocol.methods import CALL_TOOL

KEPT_S = 3600.0
AGAIN_S = 1.0
"""Where there is no room for one more, its client waits so long or longer for the next look."""

RESULT = f"{OWN}__result"
"""The companion tool, as clients know it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of calls that go on, and of results that wait to be fetched."""

    most: int = 1000
    per_principal: int = 64
    all_bytes: int = 64 * 2**20
    kept_s: float = KEPT_S
    """How long a result waits."""


@dataclass(slots=True)
class Background:
    """`spawn` runs work in a task somebody owns; `wall` is seconds since 1970; `abandon` is
    told of questions nobody will answer."""

    spawn: Callable[[Coroutine[Any, Any, None]], object]
    wall: Callable[[], float]
    board: Board
    new_id: Callable[[], str]
    abandon: Callable[[Call, InputRequired], None]
    bounds: Bounds = field(default_factory=Bounds)
    _held: dict[str, GoingOn] = field(default_factory=dict)
    _proceed: dict[str, Handler] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._held)

    def __call__(self, call: Call, proceed: Handler) -> Awaitable[Outcome]:
        limit = call.verdict.background
        if limit is None or call.method != CALL_TOOL:
            return proceed(call)
        return self._begun(call, proceed, limit.value)

    async def _begun(self, call: Call, proceed: Handler, after_s: float) -> Outcome:
        now = self.wall()
        going = GoingOn(f"bg-{secrets.token_urlsafe(16)}", call, after_s, now, now, call)
        self.spawn(self._run(going, replace(call, emit=going.emit), proceed))
        wait_s = after_s
        try:
            while not await going.wait(wait_s):
                if self._has_room(call.caller.principal):
                    break
                wait_s = max(after_s, AGAIN_S)  # as ever: its client waits for it
            else:
                return going.outcome() if not _asks(going) else _asked(going)
        except BaseException:
            going.give_up()
            raise
        going.listener = None
        self._held[going.handle] = going
        self._proceed[going.handle] = proceed
        return Completed(handed(going, self.wall()), background=going)

    def find(self, handle: Json, caller: Caller) -> GoingOn | None:
        """Another principal's is as good as none. Handles cannot be guessed, so where there
        are no principals whoever has one may use it."""
        going = self._held.get(handle) if isinstance(handle, str) else None
        return going if going and going.call.caller.principal == caller.principal else None

    def answer(self, going: GoingOn, more: Fields) -> None:
        """Go on with the answers to what its server asked."""
        if isinstance(going.end, InputRequired):
            call = going.again(self.new_id(), more)
            self.spawn(self._run(going, call, self._proceed[going.handle]))
            self._moved(going)

    def give_up(self, going: GoingOn) -> None:
        """End it, if it has not ended by itself."""
        if going.is_over:
            return
        asked = going.end
        if isinstance(asked, InputRequired):
            self.abandon(going.call, asked)
        going.give_up()
        self._moved(going)

    def expire(self) -> None:
        """Forget results nobody fetched. Called now and then by whoever owns the time."""
        oldest = self.wall() - self.bounds.kept_s
        for going in [g for g in self._over() if g.changed <= oldest]:
            self._forget(going)

    def close(self) -> None:
        """The gateway stops: nobody will ask any more."""
        for going in tuple(self._held.values()):
            going.give_up()

    async def _run(self, going: GoingOn, call: Call, proceed: Handler) -> None:
        await going.run(call, proceed)
        if going.handle in self._held:
            if _asks(going) and not going.takes_questions:
                assert isinstance(going.end, InputRequired)
                self.abandon(going.call, going.end)
            self._moved(going)
            self._shed()

    def _moved(self, going: GoingOn) -> None:
        going.changed = self.wall()
        self.board.post(BackgroundMoved(going))

    def _over(self) -> Iterator[GoingOn]:
        return (going for going in self._held.values() if going.is_over)

    def _has_room(self, principal: str | None) -> bool:
        """Whether one more may go on. Results make room for it, the oldest first."""
        mine = [g for g in self._held.values() if g.call.caller.principal == principal]
        if len(mine) >= self.bounds.per_principal:
            return self._forget_first(going for going in mine if going.is_over)
        return len(self._held) < self.bounds.most or self._forget_first(self._over())

    def _shed(self) -> None:
        """Keep no more bytes than there is room for; the newest result stays in any case."""
        over = sorted(self._over(), key=lambda going: going.changed)
        size = sum(going.size for going in over)
        for going in over[:-1]:
            if size <= self.bounds.all_bytes:
                break
            size -= going.size
            self._forget(going)

    def _forget_first(self, some: Iterator[GoingOn]) -> bool:
        first = next(some, None)
        if first is not None:
            self._forget(first)
        return first is not None

    def _forget(self, going: GoingOn) -> None:
        del self._held[going.handle], self._proceed[going.handle]


def _asks(going: GoingOn) -> bool:
    return isinstance(going.end, InputRequired)


def _asked(going: GoingOn) -> Outcome:
    """Its client is still there to be asked."""
    assert isinstance(going.end, InputRequired)
    return going.end


def handed(going: GoingOn, now: float) -> dict[str, Json]:
    """The result of a tool whose real result is still to come."""
    elapsed_s = round(now - going.began, 1)
    name, handle = going.call.name, going.handle
    text = (
        f"{name} is still running after {phrases.duration(elapsed_s)}.{done_of(going.progress)} "
        f"It goes on by itself: call {RESULT} with handle {handle!r} to wait for its result."
    )
    told = {"handle": handle, "tool": name, "status": going.status, "elapsed_s": elapsed_s}
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": {**told, "ask_with": RESULT},
    }
