"""What both eras do alike when they call a server: rewrite names, read pages, own log lines."""

from collections.abc import Awaitable, Callable, Container, Sequence

import structlog

from gateway.calls.call import Call
from gateway.calls.notices import LogLine
from gateway.catalog.entries import Kind, Listing
from gateway.eras.sides import Answered, Channel
from gateway.protocol import methods
from gateway.protocol.errors import BadAnswer, ServerFailure
from gateway.protocol.jsonrpc import Fields, elements, shallow, value

log = structlog.get_logger()

PAGES = 1000
"""More pages than any list has; a server that always names another cursor ends here."""

MOST_ITEMS, MOST_BYTES = 20_000, 64 * 2**20
"""Of one list, over all its pages. It stays in memory, and nobody is served while it is merged
with the others: what is beyond is not offered."""

LISTS = (
    (Kind.TOOL, methods.LIST_TOOLS, "tools", "tools"),
    (Kind.PROMPT, methods.LIST_PROMPTS, "prompts", "prompts"),
    (Kind.RESOURCE, methods.LIST_RESOURCES, "resources", "resources"),
    (Kind.TEMPLATE, methods.LIST_TEMPLATES, "resourceTemplates", "resources"),
)
"""Kind, the method that lists it, the member of the result, the capability that offers it."""

Ask = Callable[[str, Fields], Awaitable[Answered]]


def downward(call: Call) -> Fields:
    """The call's params under the server's own name or URI; nothing else is touched."""
    assert call.entry is not None, "authorize runs before any call goes out"
    own = call.entry.route.name
    if call.method == methods.COMPLETE:
        ref = shallow(call.params.get("ref")) or {}
        return {**call.params, "ref": {**ref, ("name" if "name" in ref else "uri"): own}}
    return {**call.params, methods.NAMED_BY[call.method]: own}


async def listing(
    server: str,
    ask: Ask,
    kinds: frozenset[Kind],
    advertised: Container[str],
    offers: frozenset[str],
) -> Listing:
    """What a server lists of these kinds, as far as it `advertised` them. Raises `GatewayError`."""
    found: dict[Kind, tuple[Fields, ...]] = {}
    for kind, method, member, capability in LISTS:
        if kind in kinds and capability in advertised:
            found[kind] = await pages(server, ask, method, member)
    return Listing(
        server,
        tools=found.get(Kind.TOOL, ()),
        prompts=found.get(Kind.PROMPT, ()),
        resources=found.get(Kind.RESOURCE, ()),
        templates=found.get(Kind.TEMPLATE, ()),
        capabilities=offers,
    )


async def pages(server: str, ask: Ask, method: str, member: str) -> tuple[Fields, ...]:
    """Every item of a list, over all its pages; what is no object is left out.

    A server without the method (-32601) has an empty list; one without end is cut, with a
    warning. Raises `GatewayError`.
    """
    items: list[Fields] = []
    size = 0
    params: Fields = {}
    seen: set[str] = set()
    for _ in range(PAGES):
        try:
            answered = await ask(method, params)
        except ServerFailure as error:
            if error.own_code == -32601:
                return tuple(items)
            raise
        page = answered.result
        found = elements(page.get(member))
        if found is None:
            raise BadAnswer(f"{server} answered {method} without a list of {member}")
        room, size = MOST_ITEMS - len(items), size + answered.size
        items += _objects(server, method, found[:room])
        cursor = value(page, "nextCursor")
        is_last = not isinstance(cursor, str)
        if len(found) > room or not (is_last or size < MOST_BYTES):
            log.warning("list.cut", server=server, method=method, items=len(items), bytes=size)
            return tuple(items)
        if is_last:
            return tuple(items)
        if cursor in seen:
            break
        seen.add(cursor)
        params = {"cursor": cursor}
    log.warning("cursor.repeated", server=server, method=method, items=len(items))
    return tuple(items)


def _objects(server: str, method: str, found: Sequence[object]) -> list[Fields]:
    objects = [fields for fields in map(shallow, found) if fields is not None]
    if len(objects) < len(found):
        left_out = len(found) - len(objects)
        log.warning("entry.left_out", server=server, method=method, count=left_out, why="no object")
    return objects


def deliver(channel: Channel, params: Fields, owners: Sequence[Call]) -> None:
    """A log line names no request: it goes to the call that alone can have caused it."""
    level = value(params, "level")
    if len(owners) != 1 or not isinstance(level, str):
        return
    own = value(params, "logger")
    logger = f"{channel.server}.{own}" if isinstance(own, str) and own else channel.server
    owners[0].emit(LogLine(level, {**params, "logger": logger}))
