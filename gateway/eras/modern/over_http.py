"""HTTP as 2026-07-28 uses it: headers repeat what routing needs, and there is no session.

Source: 2026-07-28, basic/transports/streamable-http, "Request Metadata".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.eras.manner import Learnt
from gateway.protocol import meta, methods
from gateway.protocol.headers import METHOD, NAME, VERSION, encode_value, param_headers
from gateway.protocol.jsonrpc import Fields, Message, Notification, Request, shallow, value
from gateway.protocol.revisions import NEWEST, Era

SPOKEN = NEWEST[Era.MODERN].name


@dataclass(slots=True)
class ModernManner:
    """Implements `eras.manner.Manner`."""

    learnt: Learnt
    session: str | None = field(default=None, init=False)
    opens: bool = field(default=False, init=False)
    leaving_cancels: bool = field(default=True, init=False)

    def headers(self, message: Message | None) -> dict[str, str]:
        made = {VERSION: SPOKEN}
        if isinstance(message, Notification):
            made[METHOD] = message.method
        if not isinstance(message, Request):
            return made
        envelope = shallow(message.params.get("_meta")) or {}
        made[VERSION] = value(envelope, meta.VERSION) or SPOKEN
        made[METHOD] = message.method
        member = methods.NAMED_BY.get(message.method)
        name = value(message.params, member) if member else None
        if isinstance(name, str):
            made[NAME] = encode_value(name)
        if message.method == methods.CALL_TOOL and isinstance(name, str):
            mirrored = self.learnt.mirrored.get(name, ())
            made |= param_headers(mirrored, message.params.get("arguments"))
        return made

    def begun(self, request: Request, headers: Mapping[str, str]) -> None:
        """There is no session to learn of."""

    def answered(self, request: Request, headers: Mapping[str, str], result: Fields) -> None:
        if request.method == methods.LIST_TOOLS:
            self.learnt.page(result, first="cursor" not in request.params)
