"""HTTP as the revisions up to 2025-11-25 use it: a session, named in a header.

Source: 2025-11-25, basic/transports, "Session Management" and "Protocol Version Header".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.eras.manner import Learnt
from gateway.protocol import methods
from gateway.protocol.headers import SESSION, VERSION
from gateway.protocol.jsonrpc import Fields, Message, Request, value


@dataclass(slots=True)
class LegacyManner:
    """Implements `eras.manner.Manner`."""

    learnt: Learnt
    session: str | None = None
    opens: bool = field(default=True, init=False)
    leaving_cancels: bool = field(default=False, init=False)
    _version: str | None = None
    """What the server chose, known after the handshake."""

    def headers(self, message: Message | None) -> dict[str, str]:
        made = {}
        if self._version is not None:
            made[VERSION] = self._version
        if self.session is not None:
            made[SESSION] = self.session
        return made

    def begun(self, request: Request, headers: Mapping[str, str]) -> None:
        if request.method == methods.INITIALIZE:
            self.session = headers.get(SESSION)

    def answered(self, request: Request, headers: Mapping[str, str], result: Fields) -> None:
        if request.method == methods.LIST_TOOLS:
            self.learnt.page(result, first="cursor" not in request.params)
            return
        version = value(result, "protocolVersion")
        self._version = version if isinstance(version, str) else None
