"""Whether a call goes to a legacy server as a task, and what it answers then. Pure.

Source: 2025-11-25, basic/utilities/tasks, "Capabilities" and "Creating Tasks".
"""

from gateway.calls.call import Call
from gateway.eras.shapes import without
from gateway.protocol import methods
from gateway.protocol.jsonrpc import Fields, shallow, value

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
