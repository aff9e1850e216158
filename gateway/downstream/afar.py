"""How the conversation with a server elsewhere is begun. Loaded with the first such server."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog
from yarl import URL

from gateway.config.model import HttpServer
from gateway.downstream.dialing import in_short
from gateway.downstream.transports.http import HttpTransport
from gateway.downstream.transports.remote import Remote, Tls, Web
from gateway.downstream.transports.sse import SseTransport
from gateway.downstream.transports.transport import StreamSink, Transport
from gateway.eras.manner import Learnt
from gateway.eras.over_http import manner_of
from gateway.protocol.revisions import Era

log = structlog.get_logger()

WAYS = {"http": "sse", "sse": "http"}
"""Each transport over HTTP, and the one to try where it is not understood."""


@dataclass(slots=True, eq=False)
class HttpDial:
    """Reaches a server elsewhere."""

    server: str
    section: HttpServer
    web: Web
    line_bytes: int
    """Of one message; see `limits.line`."""
    learnt: Learnt = field(default_factory=Learnt)
    _way: str = "http"

    def __post_init__(self) -> None:
        if self.section.transport != "auto":
            self._way = self.section.transport

    @property
    def shown(self) -> tuple[str, ...]:
        return in_short(self.section)

    async def open(self, era: Era, sink: StreamSink) -> Transport:
        section, manner = self.section, manner_of(era, self.learnt)
        url = URL(section.url)
        remote = Remote(
            self.server,
            url.with_user(None),
            self.web,
            _with_credentials(section.headers, url),
            await Tls(section.ca, section.cert, section.key).context(),
            section.proxy,
            section.connect_timeout_s,
        )
        if manner.opens and self._way == "sse":
            return SseTransport(remote, manner, sink, self.line_bytes)
        return HttpTransport(remote, manner, sink, self.line_bytes)

    def turn(self) -> bool:
        if self.section.transport != "auto":
            return False
        self._way = WAYS[self._way]
        log.info("transport.changed", server=self.server, transport=self._way)
        return True

    def recall(self, way: str | None) -> None:
        if self.section.transport == "auto" and way in WAYS:
            self._way = way


def _with_credentials(headers: Mapping[str, str], url: URL) -> Mapping[str, str]:
    """A user and password in the address travel as a header; one that is given counts more."""
    if url.user is None or any(name.lower() == "authorization" for name in headers):
        return headers
    pair = b64encode(f"{url.user}:{url.password or ''}".encode()).decode()
    return {**headers, "Authorization": f"Basic {pair}"}
