"""Conversations with legacy clients: who holds which, what each wants to hear, when they end.

Source: 2025-11-25, basic/transports, "Session Management"; basic/lifecycle.
"""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field

import structlog
from msgspec.structs import replace

from gateway.calls.call import Caller
from gateway.calls.notices import Elicited, ListChanged, Notice, Owner, ResourceUpdated, TaskTold
from gateway.calls.watching import is_watched
from gateway.catalog.entries import Kind
from gateway.eras.legacy.asking import Patience, Questions
from gateway.eras.legacy.backlog import Backlog, Track
from gateway.eras.legacy.streams import Streams
from gateway.eras.sides import Stream
from gateway.protocol import methods
from gateway.protocol.errors import Throttled
from gateway.protocol.jsonrpc import Fields, Notification, RequestId, encode_line, value

log = structlog.get_logger()

CHANGED = {Kind(kind): method for method, kind in methods.LIST_CHANGED.items()}

UNHEARD = 256
"""Updated resources remembered for a client with no stream open; beyond, the oldest go."""


@dataclass(slots=True, eq=False)
class Session:
    """One client's conversation. `calls` maps ids in flight to the tasks that serve them."""

    id: str
    caller: Caller
    last_seen: float
    streams: Streams
    is_pair: bool = False
    """Of the transport with two endpoints: not to be had over the other one."""
    is_dismissed: bool = False
    """Over but for the calls under way."""
    patience: Patience = field(default_factory=Patience)
    level: str | None = None
    """Set by the client; None: whatever servers say."""
    watched: set[str] = field(default_factory=set)
    calls: dict[RequestId, "asyncio.Task[object]"] = field(default_factory=dict)
    overtaken: set["asyncio.Task[object]"] = field(default_factory=set)
    """Serve requests whose ids the client has used again meanwhile."""
    cancelled: set["asyncio.Task[object]"] = field(default_factory=set)
    questions: Questions = field(init=False)
    """What servers ask this client."""
    unsubscribe: Callable[[], None] = lambda: None
    _unheard: dict[str, tuple[str, Fields]] = field(default_factory=dict)
    """Method and params, for when a stream opens: of lists by method, of resources by URI, of
    tasks by id."""

    def __post_init__(self) -> None:
        self.introduce(self.caller)

    def introduce(self, caller: Caller) -> None:
        """This is who the client says it is."""
        self.caller = replace(caller, session=self.id)
        self.questions = Questions(caller.revision, caller.declared, self.patience)

    def hear(self, notice: Notice) -> None:
        """Implements `calls.notices.Hear`."""
        match notice:
            case ListChanged(kind, owner) if self._is_told(owner):
                self._say(CHANGED[kind], CHANGED[kind], {})
            case ResourceUpdated(uri, params, owner) if self.watched and is_watched(
                uri, self.watched
            ):
                if self._is_told(owner):
                    self._say(uri, methods.UPDATED, params)
            case TaskTold(id_, session, params) if session == self.id:
                self._say(id_, methods.TASK_STATUS, params)
            case Elicited(params, session) if session == self.id:
                self._say(str(value(params, "elicitationId")), methods.ELICITED, params)

    def attach(self, stream: Stream, broken: tuple[Track, int] | None = None) -> None:
        """Go on over this stream with the one that broke, after the event its client saw
        last; without one, and with the session's own, it is where news go from now on."""
        if broken is None:
            self.streams.open(stream)
        else:
            self.streams.resume(stream, *broken)
        if self.streams.standalone.stream is stream:
            unheard, self._unheard = self._unheard, {}
            for key, (method, params) in unheard.items():
                self._say(key, method, params)

    def cancel(self, id_: RequestId) -> None:
        """The client gives a request up. Unknown ids are nothing special: it may have ended.
        Saying so twice asks for one cancellation: the connection's task has to outlive it."""
        task = self.calls.get(id_)
        if task is not None and not isinstance(id_, bool):  # True is 1 to Python, and no id
            self._cancel(task)

    def overtake(self, id_: RequestId, task: "asyncio.Task[object]") -> None:
        """The client has used an id twice at once; from now on it means the later request."""
        self.overtaken.add(self.calls[id_])
        self.calls[id_] = task

    def dismiss(self) -> None:
        """Its client may not be here any more. It is told nothing further and cannot be asked;
        what it has called already comes to its end, as that may not be undone."""
        self.is_dismissed = True
        self.unsubscribe()
        self.questions.give_up()
        if not self.is_pair:  # else it is the stream that its answers go out on
            self.streams.end()

    def end(self) -> None:
        self.unsubscribe()
        self.streams.end()
        for task in (*self.calls.values(), *self.overtaken):
            self._cancel(task)

    @property
    def serving(self) -> int:
        """How many requests are being served."""
        return len(self.calls) + len(self.overtaken)

    @property
    def is_busy(self) -> bool:
        return self.streams.standalone.stream is not None or self.serving > 0

    def _cancel(self, task: "asyncio.Task[object]") -> None:
        if task not in self.cancelled:
            self.cancelled.add(task)
            task.cancel()

    def _is_told(self, owner: Owner | None) -> bool:
        return owner is None or owner.is_(self.caller.principal, self.id)

    def _say(self, key: str, method: str, params: Fields) -> None:
        if self.streams.standalone.stream is not None:
            self.streams.standalone.push(encode_line(Notification(method, params)))
            return
        self._unheard.pop(key, None)
        self._unheard[key] = method, params
        if len(self._unheard) > UNHEARD:
            del self._unheard[next(iter(self._unheard))]


@dataclass(slots=True)
class Sessions:
    """All of them, least recently used first. Bounded in number and in idleness."""

    most: int
    idle_s: float
    clock: Callable[[], float]
    ended: Callable[[Session], None]
    """Told of each session that is over, whatever ended it."""
    patience: Patience = field(default_factory=Patience)
    """With clients that are asked something."""
    backlog: Backlog = field(init=False)
    """What their streams remember."""
    _held: "OrderedDict[str, Session]" = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.backlog = Backlog(self.clock)

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Session]:
        return iter(self._held.values())

    def open(self, caller: Caller, *, is_pair: bool = False) -> Session:
        """A new session; at the bound the longest idle one makes room, or else one that only
        listens. Raises `Throttled` if all have calls under way."""
        if len(self._held) >= self.most:
            self._end(self._least_busy())
        streams = Streams(self.backlog, caller.revision.polling)
        id_ = secrets.token_hex(16)
        session = Session(id_, caller, self.clock(), streams, is_pair, patience=self.patience)
        self._held[session.id] = session
        return session

    def find(self, id_: str, principal: str | None, *, is_pair: bool = False) -> Session | None:
        """The session, if it lives and is this principal's: another's is as good as none."""
        session = self._held.get(id_)
        if session is None or session.caller.principal != principal:
            return None
        if session.is_pair != is_pair or session.is_dismissed:
            return None
        session.last_seen = self.clock()
        self._held.move_to_end(id_)
        return session

    def close(self, session: Session) -> None:
        if session.id in self._held:
            self._end(session)

    def dismiss(self, principals: Container[str | None]) -> None:
        """These may not be here any more: whatever they hold ends, calls under way excepted."""
        for session in [one for one in self if one.caller.principal in principals]:
            session.dismiss()
            self.settle(session)

    def expire(self) -> None:
        """End what has been idle too long. Called now and then by whoever owns the time."""
        for session in tuple(self):
            session.streams.expire()
            self.settle(session)
        now = self.clock()
        for session in tuple(self):
            if session.last_seen > now - self.idle_s:
                break  # they are in order of last use
            if session.is_busy:
                session.last_seen = now  # it is idle from the end of its call on
                self._held.move_to_end(session.id)
            else:
                self._end(session)

    def close_all(self) -> None:
        for session in tuple(self):
            self._end(session)

    def settle(self, session: Session) -> None:
        """End it if it is dismissed, and its last call is over."""
        if session.is_dismissed and not session.serving:
            self.close(session)

    def _least_busy(self) -> Session:
        idle = (session for session in self if not session.is_busy)
        listening = (session for session in self if not session.serving)
        found = next(idle, None) or next(listening, None)
        if found is None:
            log.warning("session.refused", sessions=len(self), limit="limits.sessions")
            raise Throttled(
                f"There are {len(self)} sessions, as many as may be (`limits.sessions`), and all "
                "have calls under way. Try again when some have ended",
                data={"limit": "limits.sessions"},
            )
        return found

    def _end(self, session: Session) -> None:
        del self._held[session.id]
        session.end()
        self.ended(session)
