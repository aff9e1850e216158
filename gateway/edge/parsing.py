"""Which requests are whole small POSTs: aiohttp's parser, asked for little."""

import asyncio
from typing import Any, cast

from aiohttp import web
from aiohttp.http import HttpRequestParser, HttpVersion11, RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError

from gateway.edge.connections import MOST_HEADERS
from gateway.edge.endpoint import PATHS
from gateway.edge.heads import HEAD_END

MOST_BYTES = 64 * 2**10
"""Head and body; what is larger goes to the handler that takes it piece by piece."""
UNREAD = (HttpProcessingError, AttributeError, TypeError, ValueError)
"""What a parser cannot read, it cannot read in whoever takes over either, who says so. The rest
of these would come of a parser that is not used like this any more: slower is not broken."""


class _Unpaused:
    """What a parser may tell to read no more. It never has to: nothing is larger than it holds."""

    def pause_reading(self, *_: object, **__: object) -> None: ...

    def resume_reading(self, *_: object, **__: object) -> None: ...


def new_parser(loop: asyncio.AbstractEventLoop, header_bytes: int) -> HttpRequestParser:
    """As strict as the one of whoever takes over."""
    return HttpRequestParser(
        cast(Any, _Unpaused()),
        loop,
        2 * MOST_BYTES,
        max_line_size=header_bytes,
        max_field_size=header_bytes,
        max_headers=MOST_HEADERS,
        payload_exception=web.RequestPayloadError,
    )


def needed(message: RawRequestMessage, data: bytes) -> int:
    """Bytes of the whole request, if it is one to be served directly; else 0. `data` begins
    with it."""
    if (
        message.method != "POST"
        or message.path not in PATHS
        or message.version != HttpVersion11
        or message.chunked
        or message.upgrade
        or message.compression
        or "Expect" in message.headers
    ):
        return 0
    at, length = data.find(HEAD_END), message.headers.get("Content-Length", "")
    # Only digits: the parser has seen to it, and whoever takes over would say so.
    return at + len(HEAD_END) + int(length) if at > 0 and length.isdecimal() else 0
