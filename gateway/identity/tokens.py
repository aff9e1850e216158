"""Static bearer tokens: who presents one, told from its hash alone.

The file holds SHA-256 digests, so a leaked configuration leaks no token. A token made by
`onegate token new` has 256 random bits, which is why a fast hash without salt is enough.
"""

import hmac
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Protocol


class Known(Protocol):
    """A configured token: its owner's name, and the SHA-256 of its text in hex."""

    @property
    def name(self) -> str: ...
    @property
    def sha256(self) -> str: ...


class Tokens:
    """Compares a presented token with every configured one, in constant time."""

    def __init__(self, tokens: Iterable[Known]) -> None:
        self._known = tuple((bytes.fromhex(token.sha256), token.name) for token in tokens)

    def owner(self, token: str) -> str | None:
        """The name of the one who holds this token; None if nobody does."""
        # `surrogateescape`: header bytes beyond ASCII reach us as lone surrogates.
        digest = sha256(token.encode("utf-8", "surrogateescape")).digest()
        owner = None
        for known, name in self._known:  # to the end: time must not tell which one it was
            if hmac.compare_digest(digest, known):
                owner = name
        return owner


def withdrawn(before: Iterable[Known] | None, now: Iterable[Known] | None) -> frozenset[str | None]:
    """Principals who may have come with a token that is none any more, though another of the
    same name may be left. Without tokens, which is None, there is one principal, and it is None.
    """
    if before is None:
        return frozenset() if now is None else frozenset({None})
    kept = {(token.name, token.sha256.lower()) for token in now or ()}
    return frozenset(one.name for one in before if (one.name, one.sha256.lower()) not in kept)


def bearer_token(values: Sequence[str]) -> str | None:
    """The token in a request's `Authorization` fields (RFC 6750, 2.1).

    None unless there is exactly one field, and it says `Bearer TOKEN`: two would leave open
    which of them a proxy in front of us has checked.
    """
    if len(values) != 1:
        return None
    scheme, _, token = values[0].partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None
