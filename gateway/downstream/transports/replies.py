"""What an HTTP response of a server amounts to: messages, or the error it stands for."""

import re
from collections.abc import AsyncIterator, Mapping

import aiohttp

from gateway.downstream.transports.failures import NotAdmitted, NotTaken
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

SAID_CHARACTERS = 200
"""And so much of it shown."""

_FORGOTTEN = re.compile(
    r"session.{0,60}(not found|invalid|expired|unknown|no longer|does not exist|terminated|closed)"
    r"|(no|not found|invalid|expired|unknown|no valid).{0,30}session",
    re.IGNORECASE | re.DOTALL,
)


def is_events(response: aiohttp.ClientResponse) -> bool:
    return response.content_type == EVENTS


async def events_of(
    response: aiohttp.ClientResponse, splitter: EventSplitter
) -> AsyncIterator[Event | Oversized]:
    """Every event until the stream ends, in whatever way: a broken one ends as well."""
    try:
        async for chunk in response.content.iter_any():
            for event in splitter.feed(chunk):
                yield event
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

    404 says so; older servers say 400, and only their words tell.
    """
    return status == 404 or (status == 400 and _FORGOTTEN.search(text) is not None)


async def refused(
    server: str, response: aiohttp.ClientResponse, *, has_session: bool
) -> tuple[GatewayError, bool]:
    """Why a server did not take a message, and whether only because the session is gone."""
    try:
        read = await whole_of(response, REFUSAL_BYTES)
    except (aiohttp.ClientError, OSError, TimeoutError):
        read = b""
    body = read.head if isinstance(read, Oversized) else read
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
        case 429 | 503:
            data = {"retry_after_s": int(after)} if (after := _retry_after(headers)) else None
            later = f"; it asks to come again in {after} s" if after else ""
            return ServerUnavailable(text + later, server=server, retryable=True, data=data)
        case 301 | 302 | 303 | 307 | 308:
            said = f"{text}, which leads elsewhere; give the address it leads to as `url`"
            return ServerUnavailable(said, server=server)
    return BadAnswer(text + _excerpt(headers, body), data={"status": status})


def _retry_after(headers: Mapping[str, str]) -> str | None:
    after = headers.get("Retry-After", "").strip()
    return after if re.fullmatch(r"\d{1,6}", after) else None


def _excerpt(headers: Mapping[str, str], body: bytes) -> str:
    kind = headers.get("Content-Type", "")
    if "html" in kind or not body.strip():
        return ""
    said = " ".join(body[: 4 * SAID_CHARACTERS].decode(errors="replace").split())
    return f": {said[:SAID_CHARACTERS]}"
