"""A way to a gateway for messages that carry their headers: what the bridge walks on."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import msgspec

from gateway.protocol.errors import GatewayError
from gateway.protocol.jsonrpc import Failure, Message, Request, Result, decode, encode, one_line

Hear = Callable[[Message, bytes], Awaitable[None]]
"""Takes one message that is not the answer."""


class Lapsed(Exception):
    """The gateway knows nothing of this session: nothing was done."""


def addressed(body: bytes, request: Request) -> bytes | None:
    """The answer to this request in a body, on one line; None if there is none. An error
    that names no request (whoever refused had not read it) is this one's."""
    try:
        message = decode(body)
    except GatewayError:
        return None
    if isinstance(message, Result | Failure) and message.id == request.id:
        return one_line(body)
    if isinstance(message, Failure):
        return encode(Failure(request.id, message.code, message.message, message.data))
    return None


def said_in(body: bytes) -> str:
    """What a body says is wrong; empty if it is no JSON-RPC error."""
    try:
        message = decode(body)
    except GatewayError:
        return ""
    return message.message if isinstance(message, Failure) else ""


class Posting(msgspec.Struct, frozen=True):
    """One message for the gateway. `line`: as bytes; `request`: if it is one."""

    headers: Mapping[str, str]
    line: bytes
    request: Request | None = None


class Returned(msgspec.Struct, frozen=True):
    """The JSON-RPC answer to a request, empty for other messages. Header names in lower case."""

    body: bytes
    headers: Mapping[str, str]


class Way(Protocol):
    async def post(self, message: Posting, hear: Hear | None = None) -> Returned:
        """Bring one message. What the gateway says ahead of the answer goes to `hear`, else
        to the client.

        Raises `Away`, and `Lapsed` if the headers name a session that is no more.
        """

    async def listen(self, headers: Mapping[str, str]) -> None:
        """Pass on what the gateway says in a session unasked, as long as there is any to come.
        Raises `Lapsed` when the session is no more."""

    async def delete(self, headers: Mapping[str, str]) -> None:
        """End a session, if there is anybody to be told."""
