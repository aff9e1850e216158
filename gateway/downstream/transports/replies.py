"""What an HTTP response of a server amounts to: messages, or the error it stands for."""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Mapping
from email.utils import parsedate_to_datetime

import aiohttp

from gateway.downstream.transports.failures import NotAdmitted, NotTaken
from gateway.downstream.transports.remote import Remote
from gateway.protocol.errors import BadAnswer, GatewayError, ServerFailure, ServerUnavailable
from gateway.protocol.framing import (
    HEAD_BYTES,
    TAIL_BYTES,
    Event,
    EventSplitter,
    Oversized,
)
from gateway.protocol.jsonrpc import Failure, decode, decode_batch

EVENTS = "text/event-stream"
JSON = "application/json"
BOTH = f"{JSON}, {EVENTS}"

REFUSAL_BYTES = 64 * 1024
"""As much of a refusal's body is read."""

REFUSAL_S = 5.0
"""And waited for so long."""

SAID_CHARACTERS = 200
"""And so much of it shown."""

MOST_LATER_S = 999_999
"""The longest that a server may ask us to stay away."""

_FORGOTTEN = re.compile(
    r"session.{0,60}(not found|invalid|expired|unknown|no longer|does not exist|terminated|closed)"
    r"|\b(no|not found|invalid|expired|unknown|no valid)\b.{0,30}session"
    r"|server (is )?not initialized",
    re.IGNORECASE | re.DOTALL,
)
"""Among them what the TypeScript SDK says after a restart, where it holds one session alone."""


def is_events(response: aiohttp.ClientResponse) -> bool:
    return response.content_type == EVENTS


async def events_of(
    response: aiohttp.ClientResponse, splitter: EventSplitter
) -> AsyncIterator[Event | Oversized]:
    """Every event until the stream ends, in whatever way: a broken one ends as well. Raises
    `aiohttp.ServerTimeoutError` if it is silent for too long."""
    try:
        async for chunk in response.content.iter_any():
            for event in splitter.feed(chunk):
                yield event
    except aiohttp.ServerTimeoutError:
        raise
    except (aiohttp.ClientError, OSError, TimeoutError):
        return


async def whole_of(response: aiohttp.ClientResponse, limit: int) -> bytes | Oversized:
    """The body, up to `limit` bytes. Raises what aiohttp raises."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit:
            size = max(response.content_length or 0, len(body))
            return Oversized(size, bytes(body[:HEAD_BYTES]), bytes(body[-TAIL_BYTES:]))
    return bytes(body)


def messages_in(body: bytes) -> list[bytes]:
    """The messages of a JSON body: one, or an array of them (2025-03-26)."""
    body = body.strip()
    if body.startswith(b"["):
        return [bytes(part) for part in decode_batch(body)]
    return [body] if body else []


def failure_in(body: bytes) -> Failure | None:
    """The JSON-RPC error that a refusal carries, if it does."""
    try:
        message = decode(body)
    except GatewayError:
        return None
    return message if isinstance(message, Failure) else None


def has_lapsed(status: int, text: str) -> bool:
    """Whether the server refuses a request for its session, which it does not know (any more).

    404 says so; others say 400, or 401 (the Rust SDK), and only their words tell.
    """
    return status == 404 or (status in (400, 401) and _FORGOTTEN.search(text) is not None)


async def said_by(response: aiohttp.ClientResponse) -> bytes:
    """The body of a refusal, as far as anybody reads it. Bounded in time as well."""
    try:
        async with asyncio.timeout(REFUSAL_S):
            read = await whole_of(response, REFUSAL_BYTES)
    except (aiohttp.ClientError, OSError, TimeoutError):
        return b""
    return read.head if isinstance(read, Oversized) else read


async def refused(
    remote: Remote, response: aiohttp.ClientResponse, *, has_session: bool
) -> tuple[GatewayError, bool]:
    """Why a server did not take a message, and whether only because the session is gone."""
    server, body = remote.server, remote.masked(await said_by(response))
    if has_session and has_lapsed(response.status, body.decode(errors="replace")):
        said = f"The server {server} has forgotten our session"
        return NotTaken(said, server=server, retryable=True), True
    failure = failure_in(body)
    if failure is not None:
        return ServerFailure(failure.code, failure.message, data=failure.data), False
    return refusal(server, response.status, response.headers, body), False


def refusal(server: str, status: int, headers: Mapping[str, str], body: bytes) -> GatewayError:
    """The error a status stands for, where no JSON-RPC error tells more."""
    text = f"The server {server} answers HTTP {status}"
    match status:
        case 401 | 403:
            said = f"{text}: it does not accept the credentials it gets (`headers` of the server)"
            return NotAdmitted(said, server=server)
        case 407:
            said = f"{text}: the proxy on the way wants other credentials (`proxy` of the server)"
            return NotAdmitted(said, server=server)
        case 429 | 503:
            after = _retry_after_s(headers)
            data = None if after is None else {"retry_after_s": after}
            later = "" if after is None else f"; it asks to come again in {after} s"
            return ServerUnavailable(text + later, server=server, retryable=True, data=data)
        case 301 | 302 | 303 | 307 | 308:
            said = f"{text}, which leads elsewhere; give the address it leads to as `url`"
            return ServerUnavailable(said, server=server)
    return BadAnswer(text + _excerpt(headers, body), data={"status": status})


def _retry_after_s(headers: Mapping[str, str]) -> int | None:
    """Seconds, or a date (RFC 9110, 10.2.3), which is told by the clock that `Date` is told by."""
    after = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"\d{1,6}", after):
        return int(after)
    try:
        left = parsedate_to_datetime(after) - parsedate_to_datetime(headers.get("Date", ""))
    except (TypeError, ValueError):
        return None
    return min(max(0, math.ceil(left.total_seconds())), MOST_LATER_S)


def _excerpt(headers: Mapping[str, str], body: bytes) -> str:
    kind = headers.get("Content-Type", "")
    if "html" in kind or not body.strip():
        return ""
    said = " ".join(body[: 4 * SAID_CHARACTERS].decode(errors="replace").split())
    return f": {said[:SAID_CHARACTERS]}"
