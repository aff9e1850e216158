"""The names and URIs we offer things under, decided by the configuration and the name alone.

A name must be one every model and client takes: `^[A-Za-z0-9_-]{1,64}$` is what the
strictest of them allow, and clients put a prefix of their own before it, hence the budget.
Names are routed by table, never by splitting them again: what servers call things
may contain anything.
"""

import hashlib
import re

SEPARATOR = "__"
"""Two underscores: one is common inside tool names, and dots are not allowed by every client."""

LONGEST = 64
"""What the strictest clients take."""

_LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS = 8
_UI = "ui://"


def joined(prefix: str, name: str) -> str:
    """The name before it is made fit: `PREFIX__NAME`, or the name itself if there is no prefix."""
    return f"{prefix}{SEPARATOR}{name}" if prefix else name


def exposed(server: str, prefix: str, name: str, longest: int) -> str:
    """What the tool or prompt `name` of `server` is offered as, in at most `longest` characters.

    Characters no client takes become `_`; what is too long is cut and ends in a hash of
    server and name. Without a prefix a legal name stays exactly as it is, whatever its length.
    """
    if not prefix and _LEGAL.fullmatch(name):
        return name
    wanted = _ILLEGAL.sub("_", joined(prefix, name))
    return wanted if len(wanted) <= longest else _hashed(wanted, server, name, longest)


def distinct(server: str, prefix: str, name: str, longest: int) -> str:
    """Like `exposed`, and with the hash in any case: for a name that is taken already."""
    return _hashed(_ILLEGAL.sub("_", joined(prefix, name)), server, name, longest)


def is_rewritten(prefix: str, name: str, offered: str) -> bool:
    """Whether more than a prefix was needed; such names are reported."""
    return offered != joined(prefix, name)


def _hashed(wanted: str, server: str, name: str, longest: int) -> str:
    source = f"{server}\0{name}".encode("utf-8", "surrogatepass")
    digits = hashlib.sha256(source).hexdigest()[:_DIGITS]
    return f"{wanted[: longest - _DIGITS - 1]}_{digits}"


def apart(server: str, uri: str) -> str:
    """A URI (or URI template) that another server has as well, under this server's name.

    `server+uri` holds for opaque URIs too; of `ui://` the scheme stays, because hosts
    know apps by it.
    """
    if uri.startswith(_UI):
        return f"{_UI}{server}+{uri.removeprefix(_UI)}"
    return f"{server}+{uri}"


def together(server: str, uri: str) -> str:
    """The inverse of `apart`: the URI its server knows."""
    if uri.startswith(_UI):
        return _UI + uri.removeprefix(f"{_UI}{server}+")
    return uri.removeprefix(f"{server}+")
