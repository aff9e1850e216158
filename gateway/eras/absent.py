"""Answer in place of a gateway that cannot be reached: what both eras have in common. Pure."""

from gateway.eras.seen import LISTS, Seen
from gateway.protocol import methods
from gateway.protocol.errors import GatewayError
from gateway.protocol.jsonrpc import (
    Failure,
    Fields,
    Json,
    Raw,
    Request,
    as_bytes,
    encode,
    value,
)

CHANGING = {"listChanged": True}
CAPABILITIES: Fields = {
    "tools": CHANGING,
    "prompts": CHANGING,
    "resources": {"subscribe": True, **CHANGING},
    "completions": {},
    "logging": {},
}
"""What every gateway of ours has, or may turn out to have."""


class Away(GatewayError):
    """The gateway itself could not be asked, or left before it had answered."""

    kind, code, for_the_model = "unavailable", -31003, True

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class Slow(Away):
    """It has not answered yet, and that is all."""

    def __init__(self) -> None:
        super().__init__("The onegate gateway has not answered yet", retryable=True)


def known_list(seen: Seen, method: str, revision: str) -> dict[str, Json]:
    """The list as it was seen last, without what only one era says of it."""
    member = LISTS[method]
    found = seen.find(method, revision) or {}
    return {member: found.get(member, Raw(b"[]"))}


def instructions(found: Fields | None, away: Away) -> Fields:
    """What to tell a model that begins while the gateway is away, as a member of the result."""
    if isinstance(away, Slow):
        return {}
    before = value(found or {}, "instructions")
    told = f"When this conversation began: {away.message}"
    text = f"{before}\n\n{told}" if isinstance(before, str) and before else told
    return {"instructions": text}


def refused(request: Request, away: Away, extra: Fields) -> bytes:
    """The answer to a request that nobody served: the model has to see why a tool failed.
    `extra` is what results of this era carry besides."""
    if request.method != methods.CALL_TOOL:
        return encode(Failure(request.id, away.code, away.message, {"kind": away.kind}))
    told = {"kind": away.kind, "server": None, "retryable": away.retryable}
    result = {
        "content": [{"type": "text", "text": away.message}],
        "isError": True,
        **extra,
        "_meta": {"onegate/error": told, **extra.get("_meta", {})},
    }
    return framed(request, result)


def framed(request: Request, result: Fields) -> bytes:
    return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (as_bytes(request.id), as_bytes(result))
