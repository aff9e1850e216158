"""`subscriptions/listen`: what a modern client hears between its calls.

Source: 2026-07-28, basic/patterns/subscriptions.
"""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from gateway.calls.call import Caller
from gateway.calls.notices import (
    BackgroundMoved,
    ListChanged,
    Notice,
    ResourceUpdated,
    TaskTold,
    Withdrawn,
)
from gateway.calls.watching import MOST_WATCHED, is_watched
from gateway.catalog.entries import Kind
from gateway.eras.middle import Middle
from gateway.eras.modern.tasks import TaskMethods, require_tasks
from gateway.eras.sides import Reply
from gateway.protocol import meta, methods
from gateway.protocol.errors import InvalidParams
from gateway.protocol.jsonrpc import Fields, Json, Notification, Request, RequestId, value

FLAGS = {
    Kind.TOOL: "toolsListChanged",
    Kind.PROMPT: "promptsListChanged",
    Kind.RESOURCE: "resourcesListChanged",
}
CHANGED = {Kind(kind): method for method, kind in methods.LIST_CHANGED.items()}
WATCHED = "resourceSubscriptions"
TASKS = "taskIds"
"""Of the extension."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What one listen asked for and gets."""

    kinds: frozenset[Kind]
    uris: frozenset[str]
    tasks: frozenset[str]
    honoured: Fields


async def listen(
    middle: Middle, tasks: TaskMethods, request: Request, caller: Caller, reply: Reply
) -> dict[str, Json]:
    """Serve one listen until the client goes (which cancels this), the gateway closes, the
    client's token is withdrawn, or the stream is old: its client then sends another.

    Returns the closing result. Raises `InvalidParams` for a filter that is none.
    """
    wanted = read_filter(request.params)
    if TASKS in wanted.honoured:
        require_tasks(caller.capabilities)
        wanted = _knowing(wanted, tasks, caller)
    try:
        async with asyncio.timeout(None) as until:
            leave = partial(_leave, until)
            with ExitStack() as last:
                board = middle.board  # from the first: the token may go while servers are told
                last.callback(board.subscribe(partial(_part, leave, caller.principal)))
                last.callback(middle.watching.drop, wanted.uris)
                await middle.watching.add(wanted.uris)  # the client may go meanwhile as well
                tell = partial(_tell, reply, request.id, wanted, tasks, caller.principal)
                last.callback(board.subscribe(tell))
                last.callback(middle.tasks.unfollow, wanted.tasks)
                await middle.tasks.follow(wanted.tasks)
                tag = {meta.SUBSCRIPTION: request.id}
                params = {"notifications": wanted.honoured, "_meta": tag}
                reply.push(Notification(methods.ACKNOWLEDGED, params))
                reply.when_old(leave)
                await middle.closing.wait()
    except TimeoutError:
        if not until.expired():
            raise
    return {"_meta": {meta.SUBSCRIPTION: request.id}}


def _leave(until: asyncio.Timeout) -> None:
    if until.when() is None:  # it can be told once
        until.reschedule(0.0)


def _part(leave: Callable[[], None], principal: str | None, notice: Notice) -> None:
    if isinstance(notice, Withdrawn) and principal in notice.principals:
        leave()


def _knowing(wanted: Filter, tasks: TaskMethods, caller: Caller) -> Filter:
    """Without the tasks that this client may not know of, or nobody does."""
    known = [id_ for id_ in sorted(wanted.tasks) if tasks.is_known(id_, caller)]
    return replace(wanted, tasks=frozenset(known), honoured={**wanted.honoured, TASKS: known})


def read_filter(params: Fields) -> Filter:
    asked = value(params, "notifications")
    if asked is None:
        asked = {}
    if not isinstance(asked, dict):
        raise InvalidParams("params.notifications must be an object of what to listen for")
    uris = asked.get(WATCHED, [])
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        raise InvalidParams(f"params.notifications.{WATCHED} must be a list of URIs")
    if len(uris) > MOST_WATCHED:
        raise InvalidParams(f"params.notifications.{WATCHED}: at most {MOST_WATCHED} URIs")
    honoured: dict[str, Json] = {flag: True for flag in FLAGS.values() if asked.get(flag) is True}
    if WATCHED in asked:
        honoured[WATCHED] = uris
    tasks = _task_ids(asked)
    if tasks is not None:
        honoured[TASKS] = tasks
    kinds = frozenset(kind for kind, flag in FLAGS.items() if flag in honoured)
    return Filter(kinds, frozenset(uris), frozenset(tasks or ()), honoured)


def _task_ids(asked: dict[str, Json]) -> list[str] | None:
    """The tasks that a filter names, if it speaks of any."""
    ids = asked.get(TASKS)
    if ids is None:
        return None
    if not isinstance(ids, list) or not all(isinstance(id_, str) for id_ in ids):
        raise InvalidParams(f"params.notifications.{TASKS} must be a list of ids")
    if len(ids) > MOST_WATCHED:
        raise InvalidParams(f"params.notifications.{TASKS}: at most {MOST_WATCHED} ids")
    return ids


def _tell(
    reply: Reply,
    id_: RequestId,
    wanted: Filter,
    tasks: TaskMethods,
    principal: str | None,
    notice: Notice,
) -> None:
    tag = {meta.SUBSCRIPTION: id_}
    match notice:
        case ListChanged(kind, owner) if kind in wanted.kinds:
            if owner is None or owner.is_(principal):
                reply.push(Notification(CHANGED[kind], {"_meta": tag}))
        case ResourceUpdated(uri, params, owner) if wanted.uris and is_watched(uri, wanted.uris):
            if owner is None or owner.is_(principal):
                reply.push(Notification(methods.UPDATED, {**params, "_meta": tag}))
        case TaskTold(task, _, params) if task in wanted.tasks:
            reply.push(Notification(methods.TASKS_TOLD, {**params, "_meta": tag}))
        case BackgroundMoved(going) if going.handle in wanted.tasks:
            told = {**tasks.detailed(going), "_meta": tag}
            reply.push(Notification(methods.TASKS_TOLD, told))
