"""How many clients there may be: so many that files can still be opened for everything else.

Without any file left the gateway could start no server, keep no record, and not even be
asked how it is. The kernel gives every new connection the lowest number that is free, so
the number alone tells how many are in use, whoever uses them.
"""

import asyncio

import structlog

from gateway.edge.refusals import INTERNAL_ERROR, error_body

try:
    import resource
except ImportError:
    resource = None  # type: ignore[assignment]  # there is no such module on Windows

log = structlog.get_logger()

TELL_EVERY_S = 60.0
LEAST_SPARE, MOST_SPARE = 16, 512

_BODY = error_body("The gateway has too many open connections; try again soon.", INTERNAL_ERROR)
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nServer: onegate\r\nContent-Type: application/json\r\n"
    b"Retry-After: 5\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
)


def open_files() -> int | None:
    """How many files this process may have open; None: nobody knows, or as many as it likes."""
    if not hasattr(resource, "getrlimit"):
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else int(soft)


def spare_of(limit: int) -> int:
    """How many of them are kept from clients: for servers, files, and the operator."""
    return max(LEAST_SPARE, min(limit // 8, MOST_SPARE))


class Crowd:
    """The clients of one listener."""

    def __init__(self, *, share: float = 1.0) -> None:
        """`share` of the spare files is out of reach for them."""
        self.refused = 0
        self._limit = open_files()
        self._highest = self._limit and self._limit - int(spare_of(self._limit) * share)
        self._told, self._tell_at = 0, 0.0

    def admits(self, transport: asyncio.BaseTransport, now_s: float) -> bool:
        """Whether there is room for this one; if not, that is said, once a minute."""
        sock = transport.get_extra_info("socket")
        if self._highest is None or sock is None or sock.fileno() < self._highest:
            return True
        self.refused += 1
        if now_s >= self._tell_at:
            log.error(
                "connections.refused",
                connections=self.refused - self._told,
                open_files=self._limit,
                remedy="let the gateway open more files (ulimit -n, LimitNOFILE=)",
            )
            self._told, self._tell_at = self.refused, now_s + TELL_EVERY_S
        return False
