"""Tasks that servers run for clients: whose each one is, where it lives, what it is called here.

A server's own id means nothing beyond its connection, and whoever knows it can read the
result; so clients get ids of ours, which are good only for the principal they were given to.
Source: 2025-11-25, basic/utilities/tasks, "Security"; the extension
`io.modelcontextprotocol/tasks` (SEP-2663).
"""

import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from gateway.calls.call import Call, Caller, Host, TaskRef
from gateway.calls.notices import Board, HostReplaced, Notice, TaskChanged, TaskTold
from gateway.protocol.errors import GatewayError, UnknownEntry
from gateway.protocol.jsonrpc import Fields, Json, value

ENDED = frozenset({"completed", "failed", "cancelled"})

KEPT_S = 24 * 3600.0
"""How long a task is known whose server sets no `ttl`, or one beyond this."""
SPARE_S = 60.0
"""Beyond the server's own `ttl`: it may forget later than it said, not sooner."""


@dataclass(slots=True, eq=False)
class Task:
    id: str
    """Ours."""
    own: str
    """The server's."""
    host: Host
    """The connection it lives on."""
    name: str
    """Of the tool, as clients know it."""
    caller: Caller
    """Who began it."""
    expires: float
    followers: int = 0
    """How many clients listen for it."""
    last: Fields = field(default_factory=dict)
    """What its server said of it last, under our id."""

    @property
    def has_ended(self) -> bool:
        return value(self.last, "status") in ENDED

    def is_of(self, caller: Caller) -> bool:
        """Ids cannot be guessed, so without principals whoever has one may use it; and the
        shape of tasks is another in each era."""
        mine = self.caller
        return mine.principal == caller.principal and mine.revision.era is caller.revision.era

    def shown(self, fields: Fields) -> Fields:
        """What the server says of it, under our id; remembered."""
        self.last = {**fields, "taskId": self.id}
        return self.last


@dataclass(slots=True)
class Tasks:
    """All of them, oldest first; bounded in number, for each principal too, and in age."""

    clock: Callable[[], float]
    board: Board
    most: int = 10_000
    per_principal: int = 256
    _held: dict[str, Task] = field(default_factory=dict)
    _by_own: dict[tuple[int, str], Task] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.board.subscribe(self._heard)

    def __len__(self) -> int:
        return len(self._held)

    def begun(self, call: Call, ref: TaskRef, ttl_ms: Json) -> Task:
        """A server has made this call a task."""
        self._make_room(call.caller)
        lasting = isinstance(ttl_ms, int | float) and ttl_ms / 1000 < KEPT_S
        kept_s = ttl_ms / 1000 + SPARE_S if lasting else KEPT_S
        task = Task(
            f"{ref.server}~{secrets.token_urlsafe(16)}",
            ref.id,
            ref.host,
            call.name,
            call.caller,
            self.clock() + kept_s,
        )
        self._held[task.id] = task
        self._by_own[id(ref.host), ref.id] = task
        return task

    def find(self, id_: Json, caller: Caller) -> Task:
        """Raises `UnknownEntry`, in the same words whatever is wrong with the id."""
        task = self._held.get(id_) if isinstance(id_, str) else None
        if task is None or not task.is_of(caller):
            raise UnknownEntry("Unknown task: it has expired, or never was")
        return task

    def is_known(self, id_: str, caller: Caller) -> bool:
        task = self._held.get(id_)
        return task is not None and task.is_of(caller)

    async def follow(self, ids: Iterable[str]) -> None:
        """A client wants to be told how these are, from now on."""
        tasks = [task for id_ in ids if (task := self._held.get(id_)) is not None]
        for task in tasks:
            task.followers += 1
        for host in {id(task.host): task.host for task in tasks}.values():
            followed = [t.own for t in self._held.values() if t.host is host and t.followers]
            with suppress(GatewayError):  # it may be gone, and with it what there is to tell
                await host.follow(frozenset(followed))

    def unfollow(self, ids: Iterable[str]) -> None:
        """The server need not know at once: what it tells too much is dropped here."""
        for id_ in ids:
            if id_ in self._held:
                self._held[id_].followers -= 1

    def of(self, caller: Caller) -> list[Task]:
        """What this client may see listed. Without principals, what its own session began."""
        mine = [task for task in self._held.values() if task.is_of(caller)]
        if caller.principal is None:
            return [task for task in mine if task.caller.session == caller.session]
        return mine

    def forget(self, task: Task) -> None:
        self._held.pop(task.id, None)
        self._by_own.pop((id(task.host), task.own), None)

    def expire(self) -> None:
        """Called now and then by whoever owns the time."""
        now = self.clock()
        for task in [task for task in self._held.values() if task.expires <= now]:
            self.forget(task)

    def _make_room(self, caller: Caller) -> None:
        mine = [t for t in self._held.values() if t.caller.principal == caller.principal]
        if len(mine) >= self.per_principal:
            self.forget(next((task for task in mine if task.has_ended), mine[0]))
        elif len(self._held) >= self.most:
            self.forget(next(iter(self._held.values())))

    def _heard(self, notice: Notice) -> None:
        match notice:
            case TaskChanged(host, own, params):
                # Said again under our id, to whoever may know.
                task = self._by_own.get((id(host), own))
                if task is not None:
                    shown = task.shown(params)
                    self.board.post(TaskTold(task.id, task.caller.session, shown))
            case HostReplaced(before, after):
                for task in [task for task in self._held.values() if task.host is before]:
                    del self._by_own[id(before), task.own]
                    task.host = after
                    self._by_own[id(after), task.own] = task
