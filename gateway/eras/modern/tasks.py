"""The extension `io.modelcontextprotocol/tasks`, for modern clients that declare it.

A modern server may answer such a client's call with a task. Ids are mapped, all else goes
through as it came. Source: SEP-2663 (the ext-tasks specification).
"""

import asyncio
from dataclasses import dataclass

from gateway.calls.call import Call, Caller, Completed
from gateway.eras.middle import Middle
from gateway.protocol import meta, methods
from gateway.protocol.errors import DeadlineExceeded, MissingCapability
from gateway.protocol.jsonrpc import Fields, Json, Request, raw, shallow, value

ANSWERED_WITHIN_S = 30.0
"""How long a server may take to say how a task is."""

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

    def adopted(self, call: Call, outcome: Completed) -> Completed:
        """What a call ends with that goes on as a task: the same, under our id."""
        assert outcome.task is not None
        task = self.middle.tasks.begun(call, outcome.task, value(outcome.result, "ttlMs"))
        return Completed({**outcome.result, "taskId": task.id}, outcome.size, outcome.task)

    async def ask(self, request: Request, caller: Caller) -> Completed:
        """`tasks/get`, `tasks/update` and `tasks/cancel`: what the server answers."""
        require_tasks(caller.capabilities)
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


def _under(id_: str, said: Fields) -> Fields:
    return {**said, "taskId": raw(id_)} if "taskId" in said else said
