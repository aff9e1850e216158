"""Read a request's body, bounded in size and time, without a timer where it is there already."""

import asyncio

from aiohttp import web

from gateway.config.units import spelt_size
from gateway.edge.refusals import Refused

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class ClientGone(ConnectionError):
    """The client went away in the middle of its request; aiohttp drops the connection."""


def body_at_hand(request: web.BaseRequest, most_bytes: int) -> bytes | None:
    """The body, if all of it came with the head; None if it has to be waited for."""
    if not request.content.is_eof():
        return None
    try:
        body = request.content.read_nowait()
    except web.RequestPayloadError as error:
        raise _unreadable(error) from None
    if len(body) > most_bytes:
        raise too_large(most_bytes)
    return body


async def read_body(request: web.BaseRequest, most_bytes: int, within_s: float) -> bytes:
    """The body, as it arrives; stops reading at the bound, declared or not.

    Raises `Refused`: 413, 408 (too slow) or 400; `ClientGone`.
    """
    if request.transport is None:
        raise ClientGone
    declared = request.content_length
    if declared is not None and declared > most_bytes:
        raise too_large(most_bytes)
    try:
        async with asyncio.timeout(within_s):
            if request.headers.get("Expect", "").lower() == "100-continue":
                await request.writer.write(CONTINUE)
                request.writer.output_size = 0  # nothing of the answer itself is out yet
            return await _read(request, most_bytes)
    except TimeoutError:
        raise Refused(
            408,
            f"The body did not arrive within {within_s:g} s (`limits.request`).",
            close=True,
        ) from None
    except web.RequestPayloadError as error:
        raise _unreadable(error) from None
    except OSError as error:
        raise ClientGone from error


async def _read(request: web.BaseRequest, most_bytes: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while chunk := await request.content.readany():
        size += len(chunk)
        if size > most_bytes:
            raise too_large(most_bytes)
        chunks.append(chunk)
    return b"".join(chunks)


def too_large(most_bytes: int) -> Refused:
    """A body beyond the bound."""
    return Refused(
        413,
        f"The body is larger than {spelt_size(most_bytes)}. "
        "Send less, or raise `limits.body` in the gateway's configuration.",
        close=True,
    )


def _unreadable(error: Exception) -> Refused:
    return Refused(400, f"The body cannot be read: {error}", close=True)
