"""Answer a client of 2026-07-28 while the gateway cannot be reached. Pure."""

from gateway.eras.absent import (
    CAPABILITIES,
    Away,
    framed,
    instructions,
    known_list,
    refused,
)
from gateway.eras.modern.envelope import SUPPORTED
from gateway.eras.seen import LISTS, Seen
from gateway.protocol import meta, methods
from gateway.protocol.jsonrpc import (
    Fields,
    Notification,
    Request,
    RequestId,
    encode_line,
    shallow,
    value,
)

UNCACHED: Fields = {"ttlMs": 0, "cacheScope": "private"}
FLAG_OF = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
WATCHED = "resourceSubscriptions"


def stand_in(request: Request, revision: str, seen: Seen, away: Away, us: Fields) -> bytes:
    """The JSON-RPC answer to one request. `us`: our `serverInfo`."""
    stamp: Fields = {"resultType": "complete", "_meta": {meta.SERVER_INFO: us}}
    if request.method == methods.DISCOVER:
        found = seen.find(methods.DISCOVER, revision)
        known = found or {"supportedVersions": SUPPORTED, "capabilities": CAPABILITIES}
        return framed(request, {**UNCACHED, **stamp, **known, **instructions(found, away)})
    if request.method in LISTS:
        listed = known_list(seen, request.method, revision)
        return framed(request, {**listed, **UNCACHED, **stamp})
    return refused(request, away, stamp)


def version_of(request: Request) -> str:
    """The revision that a request says it is in."""
    version = value(_envelope(request), meta.VERSION)
    return version if isinstance(version, str) else SUPPORTED[-1]


def acknowledgement(request: Request) -> bytes:
    """What a gateway says first to this `subscriptions/listen`, one line."""
    asked = value(request.params, "notifications")
    wanted = asked if isinstance(asked, dict) else {}
    honoured = {flag: True for flag in FLAG_OF.values() if wanted.get(flag) is True}
    if WATCHED in wanted:
        honoured |= {WATCHED: wanted[WATCHED]}
    params = {"notifications": honoured, "_meta": {meta.SUBSCRIPTION: request.id}}
    return encode_line(Notification(methods.ACKNOWLEDGED, params))


def changes(request: Request) -> dict[str, bytes]:
    """What tells the client of this listen to read its lists again: a line for each list."""
    asked = value(request.params, "notifications")
    wanted = asked if isinstance(asked, dict) else {}
    return {
        method: encode_line(Notification(method, _tag(request.id)))
        for method, flag in FLAG_OF.items()
        if wanted.get(flag) is True
    }


def _tag(listen: RequestId) -> Fields:
    return {"_meta": {meta.SUBSCRIPTION: listen}}


def _envelope(request: Request) -> Fields:
    return shallow(request.params.get("_meta")) or {}
