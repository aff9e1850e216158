"""The ways one URI may be meant, so that a rule about it cannot be dodged by another spelling."""

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote

_ROUNDS = 3
"""How often escapes of escapes are undone; servers undo one, careless ones two."""


def spellings(*uris: str) -> tuple[str, ...]:
    """Each URI as it came, with its escapes undone, and with `..`, `.` and `//` resolved."""
    return tuple(dict.fromkeys(way for uri in uris for way in _ways(uri)))


def _ways(uri: str) -> Iterator[str]:
    yield uri
    plain = uri
    for _ in range(_ROUNDS):
        plain = unquote(plain)
        yield plain
    yield _resolved(uri)
    yield _resolved(plain)


def _resolved(uri: str) -> str:
    scheme, colon, rest = uri.partition("://")
    if not colon:
        return uri
    authority, slash, path = rest.replace("\\", "/").partition("/")
    if not slash:
        return uri
    resolved = posixpath.normpath("/" + path.lstrip("/"))
    trailing = "/" if path.endswith("/") and resolved != "/" else ""
    return f"{scheme}://{authority}{resolved}{trailing}"
