"""Seals on what a client is given to bring back: nobody else can, nor for anything else.

A server that serves all principals over one connection cannot tell them apart, so its own check of
who comes back with a `requestState` says nothing. The keys follow from the tokens of the
configuration: the same on every replica, and others when a token is replaced.
Source: 2026-07-28 basic/patterns/mrtr, server requirements; RFC 2104.
"""

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from hashlib import sha256

from gateway.identity.tokens import Known

PURPOSE = b"onegate requestState"


class Seals:
    """`about` is what a state belongs to. Where there are no tokens, there is one principal, None,
    and nothing is sealed."""

    def __init__(self, tokens: Iterable[Known] = ()) -> None:
        self._keys = {
            token.name: hmac.digest(bytes.fromhex(token.sha256), PURPOSE, sha256)
            for token in tokens
        }

    def sealed(self, principal: str | None, about: str, state: str) -> str:
        """What to give to the client instead of the state."""
        key = None if principal is None else self._keys.get(principal)
        return state if key is None else f"{_mac(key, about, state)}.{state}"

    def opened(self, principal: str | None, about: str, sealed: str) -> str | None:
        """The state, exactly as it was; None if this was not given to them, or not for this."""
        if principal is None:
            return sealed
        mac, dot, state = sealed.partition(".")
        key = self._keys.get(principal)
        if not dot or key is None:
            return None
        good = hmac.compare_digest(_mac(key, about, state).encode(), _bytes(mac))
        return state if good else None


def _mac(key: bytes, about: str, state: str) -> str:
    """Of both, with the length of the first: no other pair has the same text."""
    said = _bytes(f"{len(about)}\0{about}\0{state}")
    return urlsafe_b64encode(hmac.digest(key, said, sha256)).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
