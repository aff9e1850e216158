"""Whether a call goes to a legacy server as a task, and what it answers then.

Source: 2025-11-25, basic/utilities/tasks, "Capabilities" and "Creating Tasks".
"""

from asyncio import Future
from dataclasses import dataclass

from gateway.calls.call import Call
from gateway.eras.shapes import without
from gateway.eras.sides import Answered, Channel, OpenRequest
from gateway.protocol import methods
from gateway.protocol.jsonrpc import Fields, RequestId, shallow, value

TASK = "task"
"""The member of params that asks for a task, and of the result that tells of one."""

TASKS = "tasks"
"""The capability."""


def makes_tasks(capabilities: Fields) -> bool:
    """Whether a server with these capabilities may be called so at all."""
    tasks = value(capabilities, TASKS)
    requests = tasks.get("requests") if isinstance(tasks, dict) else None
    tools = requests.get("tools") if isinstance(requests, dict) else None
    return isinstance(tools, dict) and "call" in tools


def is_asked_for(call: Call) -> bool:
    """The client itself wants a task, in a revision that has them."""
    return TASK in call.params and call.caller.revision.tasks


def is_demanded(call: Call) -> bool:
    """The tool cannot be called otherwise."""
    execution = shallow(call.entry.definition.get("execution")) if call.entry else None
    return execution is not None and value(execution, "taskSupport") == "required"


def tasked(call: Call, params: Fields, *, possible: bool) -> Fields:
    """The params as they go to the server: with `task` if it is to make one, else without."""
    if possible and is_asked_for(call):
        return params
    plain = without(params, (TASK,))
    if possible and call.method == methods.CALL_TOOL and is_demanded(call):
        return {**plain, TASK: {}}
    return plain


def begun_in(result: Fields) -> str | None:
    """The id of the task that this result tells of, if it does."""
    id_ = value(shallow(result.get(TASK)) or {}, "taskId")
    return id_ if isinstance(id_, str) else None


@dataclass(slots=True, eq=False)
class InItsStead:
    """Waiting for the result of a task that the client does not know to be one: whoever gives
    the request up, gives the task up. Implements `eras.sides.OpenRequest`."""

    opened: OpenRequest
    channel: Channel
    task: str

    @property
    def id(self) -> RequestId:
        return self.opened.id

    @property
    def answer(self) -> "Future[Answered]":
        return self.opened.answer

    @property
    def call(self) -> Call | None:
        return self.opened.call

    @call.setter
    def call(self, call: Call | None) -> None:
        self.opened.call = call

    def cancel(self, reason: str) -> None:
        self.opened.cancel(reason)
        self.channel.bid(methods.CANCEL_TASK, {"taskId": self.task})
