"""Read a server's list of tools again where it misses headers that its tools ask for.

Source: 2026-07-28, basic/transports/streamable-http: after -32020 for a missing
`Mcp-Param-*` a client reads `tools/list` anew, rebuilds its headers and tries once more.
"""

from gateway.downstream.transports.remote import Remote
from gateway.downstream.transports.replies import BOTH, JSON, refused
from gateway.downstream.transports.streams import Streams
from gateway.eras.manner import Manner
from gateway.protocol import methods
from gateway.protocol.errors import GatewayError, ServerFailure
from gateway.protocol.jsonrpc import (
    Failure,
    Fields,
    Notification,
    Request,
    Result,
    decode,
    encode_line,
    shallow,
    value,
)
from gateway.protocol.meta import PROGRESS_TOKEN

PAGES = 100


async def list_again(remote: Remote, manner: Manner, streams: Streams, request: Request) -> None:
    """Let the manner learn the list as it is now, under the envelope of this request. The
    gateway is told as well, as if by the server: others depend on the list.

    Raises `GatewayError` if it cannot be had.
    """
    envelope = shallow(request.params.get("_meta")) or {}
    meta = {key: held for key, held in envelope.items() if key != PROGRESS_TOKEN}
    params: Fields = {"_meta": meta}
    for page in range(PAGES):
        asked = Request(f"{request.id}/{page}", methods.LIST_TOOLS, params)
        result = await _ask(remote, manner, streams, asked)
        cursor = value(result, "nextCursor")
        if not isinstance(cursor, str):
            break
        params = {"_meta": meta, "cursor": cursor}
    changed = Notification("notifications/tools/list_changed", {})
    streams.sink.line(encode_line(changed), None)


async def _ask(remote: Remote, manner: Manner, streams: Streams, asked: Request) -> Fields:
    found: list[Result | Failure] = []

    def hear(line: bytes, _about: int | None) -> None:
        message = decode(line)
        if isinstance(message, Result | Failure):
            found.append(message)

    headers = {"Accept": BOTH, "Content-Type": JSON, **manner.headers(asked)}
    response = await remote.request("POST", headers, encode_line(asked))
    async with response:
        if not 200 <= response.status < 300:
            raise (await refused(remote, response, has_session=False))[0]
        await streams.answer(asked, response, hear)
    match found:
        case [Result(_, result), *_]:
            return result
        case [Failure(_, code, message, data), *_]:
            raise ServerFailure(code, message, data=data)
    raise GatewayError(f"{remote.server} answered {methods.LIST_TOOLS} with nothing")
