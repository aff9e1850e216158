"""How a request over HTTP fails, by what may be done about it."""

from gateway.protocol.errors import GatewayError, ServerUnavailable

LONGEST_S = 300.0
"""No server is left alone for longer, whatever it asks for."""


class NotTaken(ServerUnavailable):
    """The server surely did not take the request: a new connection may be tried."""


class BrokenOff(ServerUnavailable):
    """The connection broke before the answer. Whether the request was served is not known."""


class NotAdmitted(ServerUnavailable):
    """The server refuses our credentials: trying again soon will not help."""


class WrongTransport(ServerUnavailable):
    """The server does not answer to this transport; there is another one."""


def asked_for_s(error: GatewayError) -> float:
    """How long a server that refuses asks to be left alone (`Retry-After`)."""
    told = error.data.get("retry_after_s") if isinstance(error.data, dict) else None
    return min(float(told), LONGEST_S) if isinstance(told, int | float) else 0.0
