"""What a client can answer, as each era says it. Pure.

A legacy server is told once, when its connection opens; so connections are kept apart by
*profile*: the part of a client's capabilities that lets servers ask it something.
Source: 2025-11-25, basic/lifecycle; 2026-07-28, basic/index ("clientCapabilities").
"""

import msgspec

from gateway.protocol.errors import InvalidParams
from gateway.protocol.jsonrpc import Fields, Json, Raw, decoded, raw, shallow, value

ASKABLE = ("sampling", "elicitation", "roots")

NEEDED_BY = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}
"""A server's question, and the capability without which it must not be asked."""


LONGEST = 8 * 2**10
"""Bytes of capabilities that are kept: ten times what clients have to say. There are as many as
sessions."""


class Profile(msgspec.Struct, frozen=True):
    """Capabilities to open a legacy connection with. Equal profiles may share a process."""

    text: bytes
    """Their JSON, in one spelling."""

    @property
    def capabilities(self) -> Json:
        return Raw(self.text)

    def allows(self, method: str, params: Fields) -> bool:
        """Whether a client with this profile may be asked this."""
        return allowed(decoded(Raw(self.text)), method, params)


def allowed(capabilities: Json, method: str, params: Fields) -> bool:
    """Whether a client that declared this, decoded, may be asked that."""
    asked = NEEDED_BY.get(method, "")
    declared = capabilities.get(asked) if isinstance(capabilities, dict) else None
    if not isinstance(declared, dict):
        return False
    if method == "elicitation/create":
        mode = value(params, "mode") or "form"
        return mode in declared or (mode == "form" and not declared)
    return not ("tools" in params and "tools" not in declared)


def refusal_of(method: str) -> tuple[int, str]:
    """What a legacy server is told that may not ask this."""
    code = -32602 if method == "elicitation/create" else -32601
    return code, f"This client cannot be asked {method}"


class Profiles:
    """Profiles of clients' capabilities, worked out once for each distinct text."""

    MOST = 256

    def __init__(self) -> None:
        self._known: dict[bytes, Profile | None] = {}

    def of(self, capabilities: Raw) -> Profile | None:
        """None where no server could ask this client anything."""
        text = bytes(capabilities)
        if text in self._known:
            return self._known[text]
        if len(self._known) >= self.MOST:
            self._known.clear()
        found = _profile(capabilities)
        if len(text) <= LONGEST:
            self._known[text] = found
        return found


def _profile(capabilities: Raw) -> Profile | None:
    declared = decoded(capabilities)
    kept = {
        name: declared[name]
        for name in ASKABLE
        if isinstance(declared, dict) and isinstance(declared.get(name), dict)
    }
    if not kept:
        return None
    return Profile(msgspec.json.encode(kept, order="deterministic"))


def declared_by(capabilities: Json) -> Raw | None:
    """What a legacy client declared at `initialize`, for its caller; None if nothing.

    Raises `InvalidParams` for more than a session can keep.
    """
    found = shallow(capabilities)
    kept = {n: found[n] for n in ASKABLE if found and shallow(found.get(n)) is not None}
    declared = raw(kept)
    if len(bytes(declared)) > LONGEST:
        raise InvalidParams(f"params.capabilities are longer than {LONGEST // 2**10} KiB")
    return declared if kept else None


def forward(capabilities: Raw) -> Json:
    """A legacy client's capabilities as a modern server reads them: no change of roots is
    ever told, and `elicitation: {}` meant forms."""
    declared = decoded(capabilities)
    if "roots" in declared:
        declared["roots"] = {}
    if declared.get("elicitation") == {}:
        declared["elicitation"] = {"form": {}}
    return declared
