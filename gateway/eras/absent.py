"""Answer in place of a gateway that cannot be reached: what both eras have in common. Pure."""

from gateway.eras.middle import error_result, failure_data
from gateway.eras.seen import LISTS, Seen
from gateway.protocol import methods
from gateway.protocol.errors import GatewayError, wire_code
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
}
"""What every gateway of ours has."""


class Away(GatewayError):
    """The gateway itself could not be asked, or left before it had answered."""

    kind, code, for_the_model = "unavailable", -31003, True

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


def known_list(seen: Seen, method: str, revision: str) -> dict[str, Json]:
    """The list as it was seen last, without what only one era says of it."""
    member = LISTS[method]
    found = seen.find(method, revision) or {}
    return {member: found.get(member, Raw(b"[]"))}


def known_instructions(found: Fields | None, away: Away) -> str:
    """What to tell a model that begins while the gateway is away."""
    before = value(found or {}, "instructions")
    told = f"When this conversation began: {away.message}"
    return f"{before}\n\n{told}" if isinstance(before, str) and before else told


def refused(request: Request, error: GatewayError, extra: Fields) -> bytes:
    """The answer to a request that nobody served: the model has to see why a tool failed.
    `extra` is what results of this era carry besides."""
    if request.method != methods.CALL_TOOL or not error.for_the_model:
        code, data = wire_code(error), failure_data(error)
        return encode(Failure(request.id, code, error.message, data))
    told: dict[str, Json] = error_result(error, None)
    return framed(request, {**told, **extra, "_meta": {**told["_meta"], **extra.get("_meta", {})}})


def framed(request: Request, result: Fields) -> bytes:
    return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (as_bytes(request.id), as_bytes(result))
