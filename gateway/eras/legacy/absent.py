"""Answer a client of a revision up to 2025-11-25 while the gateway cannot be reached. Pure."""

from gateway.eras.absent import (
    CAPABILITIES,
    Away,
    framed,
    instructions,
    known_list,
    refused,
)
from gateway.eras.seen import LISTS, Seen
from gateway.protocol import methods
from gateway.protocol.jsonrpc import Fields, Json, Request, Result, value
from gateway.protocol.revisions import BY_NAME, NEWEST, Era

NOTHING_TO_SAY = frozenset(
    {methods.PING, methods.SET_LEVEL, methods.SUBSCRIBE, methods.UNSUBSCRIBE}
)
"""Wishes, which whoever stands in remembers, and signs of life."""


def revision_of(asked: Json) -> str:
    """The revision of a conversation: the client's own if we know it, else our newest."""
    known = BY_NAME.get(asked) if isinstance(asked, str) else None
    return known.name if known and known.era is Era.LEGACY else NEWEST[Era.LEGACY].name


def stand_in(request: Request, revision: str, seen: Seen, away: Away, us: Fields) -> bytes:
    """The JSON-RPC answer to one request. `us`: our `serverInfo`, if none was ever seen."""
    if request.method == methods.INITIALIZE:
        return framed(request, _welcome(revision, seen, away, us))
    if request.method in LISTS:
        return framed(request, known_list(seen, request.method, revision))
    if request.method in NOTHING_TO_SAY:
        return framed(request, {})
    return refused(request, away, {})


def takes_arrays(revision: str) -> bool:
    known = BY_NAME.get(revision)
    return known is not None and known.batches


def opened(result: Result) -> str | None:
    """The revision that a gateway's answer to `initialize` settles on."""
    version = value(result.result, "protocolVersion")
    return version if isinstance(version, str) else None


def _welcome(revision: str, seen: Seen, away: Away, us: Fields) -> Fields:
    found = seen.find(methods.INITIALIZE, revision)
    known = dict(found) if found else {"capabilities": CAPABILITIES, "serverInfo": us}
    return {**known, "protocolVersion": revision, **instructions(found, away)}
