"""Every way a call can fail, and how each says so on the wire.

`kind` is the one word an operator meets everywhere: on the wire, in the record
of the call, as a metric label and in the log. Codes of our own lie at -31000 and
below: 2026-07-28 keeps -32768..-32000 for itself (basic/index, error codes).
"""

from typing import Any, ClassVar


class GatewayError(Exception):
    """A named cause. Raised where it is known, met by the wire in one place (`eras`)."""

    kind: ClassVar[str] = "crashed"
    code: ClassVar[int] = -32603
    status: ClassVar[int] = 200
    """HTTP status for a modern client, while the answer is not yet a stream."""
    for_the_model: ClassVar[bool] = False
    """A failed call of a known tool is a result with `isError`, so that the model sees it."""
    retryable: bool = False
    """Nothing was done: the same call may be made again."""

    def __init__(self, message: str, *, data: Any = None, request_id: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data
        self.request_id = request_id
        """The JSON-RPC id the error belongs to, where only a broken message told it."""


class NotJson(GatewayError):
    kind, code, status = "invalid", -32700, 400


class InvalidMessage(GatewayError):
    """JSON, but not a message one may send here."""

    kind, code, status = "invalid", -32600, 400


class NotAcceptable(GatewayError):
    """The only answer there is comes as a stream, and the client takes none."""

    kind, code, status = "invalid", -32600, 406


class InvalidParams(GatewayError):
    kind, code, status = "invalid", -32602, 200


class MalformedEnvelope(GatewayError):
    """2026-07-28: `_meta` lacks what every request must carry."""

    kind, code, status = "invalid", -32602, 400


class HeaderMismatch(GatewayError):
    """2026-07-28: a routing header is missing, doubled, or disagrees with the body."""

    kind, code, status = "invalid", -32020, 400


class MissingCapability(GatewayError):
    """2026-07-28: the request needs a client capability it did not declare."""

    kind, code, status = "invalid", -32021, 400


class UnsupportedVersion(GatewayError):
    kind, code, status = "invalid", -32022, 400


class UnknownMethod(GatewayError):
    kind, code, status = "invalid", -32601, 404


class UnknownEntry(GatewayError):
    """No such tool, prompt or resource, or none this caller may know of."""

    kind, code, status = "invalid", -32602, 200


class Denied(UnknownEntry):
    """Refused by policy. On the wire it cannot be told from an unknown entry."""

    kind = "denied"


class Throttled(GatewayError):
    """Too often, or too many at once: nothing was sent to the server."""

    kind, code, for_the_model = "throttled", -31001, True
    retryable = True


class TooManyWaiting(Throttled):
    """So many calls wait for answers of their clients that this one cannot. Its server had
    begun with it: what it did is done."""

    retryable = False


class DeadlineExceeded(GatewayError):
    """The call was given up; the server has been told so."""

    kind, code, for_the_model = "timeout", -31002, True


class ServerUnavailable(GatewayError):
    """The server is not there, or went away before it answered. `retryable` only if it
    surely never saw the call."""

    kind, code, for_the_model = "unavailable", -31003, True

    def __init__(
        self, message: str, *, server: str = "", retryable: bool = False, data: Any = None
    ) -> None:
        super().__init__(message, data=data)
        self.server = server
        self.retryable = retryable


class Cancelled(GatewayError):
    kind, code = "cancelled", -31004


class Superseded(GatewayError):
    """Two retries of one parked call met: the later one is served."""

    kind, code = "cancelled", -32603


class BadAnswer(GatewayError):
    """The server answered, but with something that is no answer."""

    kind, code, for_the_model = "server_error", -31005, True


class CannotAnswer(GatewayError):
    """The server asked for input, and this client has no way to give it."""

    kind, code, for_the_model = "refused", -31006, True


class ServerFailure(GatewayError):
    """The server answered with a JSON-RPC error of its own; code and data pass through."""

    kind = "server_error"

    def __init__(self, code: int, message: str, *, data: Any = None) -> None:
        super().__init__(message, data=data)
        self.own_code = code


def wire_code(error: GatewayError) -> int:
    return error.own_code if isinstance(error, ServerFailure) else error.code


HTTP_STATUS = {-32700: 400, -32600: 400, -32020: 400, -32021: 400, -32022: 400, -32601: 404}
"""What a modern client's HTTP answer says for codes that servers themselves send."""
