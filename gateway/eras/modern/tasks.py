"""The extension `io.modelcontextprotocol/tasks`, for modern clients that declare it.

A modern server may answer such a client's call with a task. Ids are mapped, all else goes
through as it came. Source: SEP-2663 (the ext-tasks specification).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from gateway.calls.call import Call, Caller, Completed, InputRequired
from gateway.eras.middle import Middle
from gateway.eras.questions import ANSWERED, ASKED, STATE, as_modern
from gateway.policy.background import KEPT_S
from gateway.policy.going_on import GoingOn, done_of
from gateway.protocol import meta, methods
from gateway.protocol.errors import DeadlineExceeded, MissingCapability
from gateway.protocol.jsonrpc import Fields, Json, Request, raw, shallow, value

ANSWERED_WITHIN_S = 30.0
"""How long a server may take to say how a task is."""

POLL_MS = 1000
"""How often a client should ask; who listens need not."""

METHODS = (methods.GET_TASK, methods.UPDATE_TASK, methods.CANCEL_TASK)
TASK = "task"
"""The `resultType` of a call that goes on."""

NEEDED: Json = {"requiredCapabilities": {"extensions": {meta.TASKS: {}}}}


def declares_tasks(capabilities: Json) -> bool:
    """Whether a client or server with these capabilities has the extension."""
    return meta.TASKS in (shallow((shallow(capabilities) or {}).get("extensions")) or {})


def require_tasks(capabilities: Json) -> None:
    """Raises `MissingCapability` where the extension is not declared."""
    if not declares_tasks(capabilities):
        raise MissingCapability(f"This needs the extension {meta.TASKS}", data=NEEDED)


@dataclass(slots=True)
class TaskMethods:
    middle: Middle
    ended: Callable[[GoingOn], Fields]
    """What a call of ours that went on has ended with: `result` or `error`."""

    def adopted(self, call: Call, outcome: Completed) -> Completed:
        """What a call ends with that goes on as a task: the same, under our id."""
        if outcome.task is None:
            return self._ours(call.caller, outcome)
        task = self.middle.tasks.begun(call, outcome.task, value(outcome.result, "ttlMs"))
        return Completed({**outcome.result, "taskId": task.id}, outcome.size, outcome.task)

    async def ask(self, request: Request, caller: Caller) -> Completed:
        """`tasks/get`, `tasks/update` and `tasks/cancel`: what the server answers."""
        require_tasks(caller.capabilities)
        going = self.middle.background.find(value(request.params, "taskId"), caller)
        if going is not None:
            return Completed(self._answer(request, going))
        task = self.middle.tasks.find(value(request.params, "taskId"), caller)
        params = {name: held for name, held in request.params.items() if name != "_meta"}
        try:
            async with asyncio.timeout(ANSWERED_WITHIN_S):
                said = await task.host.ask(request.method, {**params, "taskId": task.own}, caller)
        except TimeoutError:
            raise DeadlineExceeded(
                f"The server did not answer {request.method} within {ANSWERED_WITHIN_S:g} s"
            ) from None
        return Completed(_under(task.id, said))

    def is_known(self, id_: str, caller: Caller) -> bool:
        return (
            self.middle.tasks.is_known(id_, caller)
            or self.middle.background.find(id_, caller) is not None
        )

    # --- calls that go on here ---

    def _ours(self, caller: Caller, outcome: Completed) -> Completed:
        """A call that goes on: a task for who knows tasks, else the handle it is."""
        handle = outcome.background.handle if outcome.background else None
        going = self.middle.background.find(handle, caller)
        if going is None or not declares_tasks(caller.capabilities):
            return Completed(outcome.result)
        going.takes_questions = True
        return Completed(_seen(going), background=going)

    def _answer(self, request: Request, going: GoingOn) -> Fields:
        if request.method == methods.GET_TASK:
            return self.detailed(going)
        if request.method == methods.CANCEL_TASK:
            self.middle.background.give_up(going)
            return {}
        asked = going.end.result if isinstance(going.end, InputRequired) else {}
        given = {ANSWERED: request.params.get(ANSWERED, {})}
        state = {STATE: asked[STATE]} if STATE in asked else {}
        self.middle.background.answer(going, {**given, **state})
        return {}

    def detailed(self, going: GoingOn) -> Fields:
        """How it is, with all there is to know."""
        if going.end is None:
            return _seen(going)
        if isinstance(going.end, InputRequired):
            asked = going.end.result
            questions = as_modern(asked) if going.end.ours else asked.get(ASKED, {})
            return {**_seen(going), ASKED: questions}
        return {**_seen(going), **(self.ended(going) if going.status != "cancelled" else {})}


def _seen(going: GoingOn) -> dict[str, Json]:
    said = done_of(going.progress).strip()
    return {
        "taskId": going.handle,
        "status": going.status,
        **({"statusMessage": said} if said else {}),
        "createdAt": _iso(going.began),
        "lastUpdatedAt": _iso(going.changed),
        "ttlMs": int((going.call.verdict.longest.value + KEPT_S) * 1000),
        "pollIntervalMs": POLL_MS,
    }


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _under(id_: str, said: Fields) -> Fields:
    return {**said, "taskId": raw(id_)} if "taskId" in said else said
