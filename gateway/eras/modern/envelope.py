"""Read the envelope of a modern request, in the order the specification checks it.

Source: 2026-07-28, basic/transports/streamable-http and basic/index ("_meta").
Headers repeat what the body says; the body decides, and a header that disagrees
is an error, since whoever routed by it has been misled.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from gateway.calls.notices import LEVELS
from gateway.eras.sides import Headers
from gateway.protocol import headers as header_names
from gateway.protocol import meta
from gateway.protocol.errors import (
    HeaderMismatch,
    MalformedEnvelope,
    UnsupportedVersion,
)
from gateway.protocol.headers import OPEN, decode_value
from gateway.protocol.jsonrpc import Fields, Json, Raw, Request, shallow, value
from gateway.protocol.methods import NAMED_BY
from gateway.protocol.recall import is_kept
from gateway.protocol.revisions import BY_NAME, OF_ERA, Era, Revision

SUPPORTED = [revision.name for revision in OF_ERA[Era.MODERN]]
ROUTING = (header_names.VERSION, header_names.METHOD, header_names.NAME)


class Envelope(msgspec.Struct, frozen=True):
    revision: Revision
    capabilities: Raw
    client_info: Json
    log_level: str | None
    progress_token: Json
    comes_again: bool = False
    """It is of a `_meta` that is kept."""


class Claimed(msgspec.Struct, frozen=True):
    """What a `_meta` says by itself."""

    version: str
    envelope: Envelope | None
    """None: of a version not served here, or with a level that nobody knows."""


def claimed(held: Fields) -> Claimed:
    """Raises `MalformedEnvelope` if it does not say what it must."""
    version = value(held, meta.VERSION)
    if not isinstance(version, str):
        raise MalformedEnvelope(f"params._meta lacks {meta.VERSION} (a string)")
    capabilities = held.get(meta.CAPABILITIES)
    if not isinstance(capabilities, Raw) or not bytes(capabilities).startswith(b"{"):
        raise MalformedEnvelope(f"params._meta lacks {meta.CAPABILITIES} (an object)")
    level = value(held, meta.LOG_LEVEL)
    if version not in SUPPORTED or not (level is None or level in LEVELS):
        return Claimed(version, None)
    info, token = held.get(meta.CLIENT_INFO), meta.progress_token(held)
    revision, comes_again = BY_NAME[version], is_kept(held)
    return Claimed(version, Envelope(revision, capabilities, info, level, token, comes_again))


def read_envelope(
    request: Request, headers: Headers, claims: Callable[[Fields], Claimed] = claimed
) -> Envelope:
    """Checks 7 to 10 of the ladder. Raises the error of the first rung that breaks."""
    given = [_only(headers, name) for name in ROUTING]
    held = shallow(request.params.get("_meta"))
    if held is None:
        raise MalformedEnvelope(f"params._meta is missing: it must carry {meta.VERSION}")
    claim = claims(held)
    _check_headers(request, given, claim.version)
    if claim.version not in SUPPORTED:
        raise UnsupportedVersion(
            f"Protocol version {claim.version!r:.40} is not served here",
            data={"supported": SUPPORTED, "requested": claim.version},
        )
    if claim.envelope is None:
        raise MalformedEnvelope(f"{meta.LOG_LEVEL} must be one of {', '.join(LEVELS)}")
    return claim.envelope


Given = Sequence[str | None]
"""The routing headers of a request, in the order of `ROUTING`; None where there is none."""


def _only(headers: Headers, name: str) -> str | None:
    values = headers.getall(name, ())
    if len(values) > 1:
        raise HeaderMismatch(f"The header {name} is there more than once")
    return values[0].strip(" \t") if values else None


def _check_headers(request: Request, given: Given, version: str) -> None:
    said, method, named = given
    if said != version:
        raise _differs(header_names.VERSION, said, version)
    if method != request.method:
        raise _differs(header_names.METHOD, method, request.method)
    member = NAMED_BY.get(request.method)
    if member is not None:
        if named is None:
            raise HeaderMismatch(f"The header {header_names.NAME} is missing")
        body = value(request.params, member)
        if not (named == body and _is_plain(named)) and decode_value(named) != body:
            raise HeaderMismatch(f"The header {header_names.NAME} is not params.{member}")


def _is_plain(text: str) -> bool:
    """Whether it stands for itself beyond doubt; nearly all names do."""
    return text.isascii() and text.isprintable() and not text.startswith(OPEN)


def _differs(name: str, said: str | None, body: str) -> HeaderMismatch:
    if said is None:
        return HeaderMismatch(f"The header {name} is missing")
    return HeaderMismatch(f"The header {name} says {said!r:.60}, the body {body!r:.60}")


def is_enveloped(params: Fields) -> bool:
    """Whether these params say of themselves which modern revision they are in."""
    return "_meta" in params and meta.VERSION in (shallow(params["_meta"]) or {})


def is_modern(headers: Headers, body: Mapping[str, Json] | None) -> bool:
    """Whether a POST belongs to this era: by its header, or by the envelope in its params.

    A version header of a revision nobody knows counts as modern, so that the answer can
    list what is supported, unless the body is a plain `initialize`: those negotiate.
    """
    if is_enveloped(body or {}):
        return True
    version = headers.get(header_names.VERSION)
    known = BY_NAME.get(version.strip(" \t")) if version is not None else None
    return version is not None and (known is None or known.era is Era.MODERN)
