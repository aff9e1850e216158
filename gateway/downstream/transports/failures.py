"""How a request over HTTP fails, by what may be done about it."""

from gateway.protocol.errors import ServerUnavailable


class NotTaken(ServerUnavailable):
    """The server surely did not take the request: a new connection may be tried."""


class BrokenOff(ServerUnavailable):
    """The connection broke before the answer. Whether the request was served is not known."""


class NotAdmitted(ServerUnavailable):
    """The server refuses our credentials: trying again soon will not help."""


class WrongTransport(ServerUnavailable):
    """The server does not answer to this transport; there is another one."""
