"""How the edge says no: a status, and a JSON-RPC error that says what to do instead."""

from collections.abc import Mapping

from aiohttp import web

from gateway.eras.sides import Answer
from gateway.protocol.errors import GatewayError
from gateway.protocol.jsonrpc import Failure, Request, decode, encode

INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603
SERVER = {"Server": "onegate"}
JSON = {"Content-Type": "application/json", **SERVER}


class Refused(Exception):
    """This request goes no further. `close`: and neither does its connection."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        code: int = INVALID_REQUEST,
        close: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers or {}
        self.code = code
        self.close = close

    def answer(self, more: Mapping[str, str]) -> Answer:
        """What to say; `more` headers go with every answer of this request."""
        last = {"Connection": "close"} if self.close else {}
        body = error_body(self.message, self.code)
        return Answer(self.status, body, {**self.headers, **more, **last})

    def response(self, more: Mapping[str, str]) -> web.Response:
        """The same for aiohttp."""
        answer = self.answer(more)
        response = web.Response(
            status=answer.status, body=answer.body, headers={**JSON, **answer.headers}
        )
        if self.close:
            response.force_close()
        return response


def addressed(answer: Answer, asked: bytes) -> Answer:
    """The same error for the request that `asked` is: on a stream, where no status says that it
    is over, its client waits for its id."""
    assert answer.body is not None, "an error has words"
    try:
        request, error = decode(asked), decode(answer.body)
    except GatewayError:
        return answer
    if not (isinstance(request, Request) and isinstance(error, Failure)):
        return answer
    body = encode(Failure(request.id, error.code, error.message))
    return Answer(answer.status, body, answer.headers)


def error_body(message: str, code: int = INVALID_REQUEST) -> bytes:
    """A JSON-RPC error that belongs to no request: its id was not read, or there is none."""
    return encode(Failure(None, code, message))
