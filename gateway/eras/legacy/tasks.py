"""Serve `tasks/...` of a legacy client whose call a legacy server made a task.

Source: 2025-11-25, basic/utilities/tasks.
"""

import asyncio
from dataclasses import dataclass

from msgspec.structs import replace

from gateway.calls.call import Call, Caller, Completed, Emit
from gateway.catalog.entries import Kind
from gateway.eras.middle import Middle
from gateway.eras.tasks import Task
from gateway.protocol import meta, methods
from gateway.protocol.errors import DeadlineExceeded, GatewayError, InvalidParams
from gateway.protocol.jsonrpc import Fields, Json, Request, shallow, value

ANSWERED_WITHIN_S = 30.0
"""How long a server may take to say how a task is."""

OFFERED: Fields = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
"""The capability, where some server has it."""


@dataclass(slots=True)
class TaskMethods:
    middle: Middle

    async def ask(self, request: Request, caller: Caller) -> Fields:
        """`tasks/get` and `tasks/cancel`: what the server says, under our id."""
        return await self._ask(self._named(request, caller), request.method)

    async def list(self, request: Request, caller: Caller) -> dict[str, Json]:
        """`tasks/list`: this client's, however many servers have them, on one page."""
        if "cursor" in request.params:
            raise InvalidParams("Unknown cursor: this list has one page")
        async with asyncio.TaskGroup() as asking:
            asked = [asking.create_task(self._known(task)) for task in self.middle.tasks.of(caller)]
        return {"tasks": [found for one in asked if (found := one.result()) is not None]}

    def fetching(
        self, request: Request, caller: Caller, size: int, emit: Emit
    ) -> tuple[Task, Call]:
        """`tasks/result`: the task, and the call that waits for its result where it lives."""
        task = self._named(request, caller)
        own = Request(request.id, request.method, {**request.params, "taskId": task.own})
        call = self.middle.call(own, caller, size, emit, about=(Kind.TOOL, task.name))
        return task, replace(call, at=task.host)

    def fetched(self, task: Task, outcome: Completed) -> Completed:
        """The result, which says whose it is by our id."""
        own = shallow(outcome.result.get("_meta")) or {}
        held = {**own, meta.RELATED_TASK: {"taskId": task.id}}
        return replace(outcome, result={**outcome.result, "_meta": held})

    def adopted(self, call: Call, outcome: Completed) -> Completed:
        """What a call ends with that goes on as a task: the same, under our id."""
        if outcome.task is None:
            return outcome
        said = shallow(outcome.result.get("task")) or {}
        task = self.middle.tasks.begun(call, outcome.task, value(said, "ttl"))
        return replace(outcome, result={**outcome.result, "task": task.shown(said)})

    async def _known(self, task: Task) -> Fields | None:
        """As its server sees it now; None if it does not any more."""
        if task.has_ended:
            return task.last
        try:
            return await self._ask(task, methods.GET_TASK)
        except GatewayError:
            return None

    async def _ask(self, task: Task, method: str) -> Fields:
        try:
            async with asyncio.timeout(ANSWERED_WITHIN_S):
                said = await task.host.ask(method, {"taskId": task.own}, task.caller)
        except TimeoutError:
            raise DeadlineExceeded(
                f"The server did not answer {method} within {ANSWERED_WITHIN_S:g} s"
            ) from None
        return task.shown(said)

    def _named(self, request: Request, caller: Caller) -> Task:
        return self.middle.tasks.find(value(request.params, "taskId"), caller)
