"""What servers tell models about themselves, joined under a heading for each server."""

import re
from collections.abc import Iterable, Mapping

from gateway.catalog.entries import Listing
from gateway.catalog.naming import SEPARATOR

EACH, ALL = 2048, 8192
"""Bytes of one server's text, and of the whole: clients cut what is longer, or charge for it."""

_HEADING = re.compile(r"^( {0,3})(?=#)", re.MULTILINE)
_RULE = (
    "This gateway joins several servers. The names of a server's tools and prompts begin with "
    "its prefix, which the text below may leave out."
)


def joined_instructions(
    listings: Iterable[Listing], prefixes: Mapping[str, str]
) -> tuple[str | None, frozenset[str]]:
    """The joined text (None if no server has any), and whose text was cut or left out."""
    parts: list[str] = []
    short: set[str] = set()
    room = ALL - len(_RULE) - 2
    for listing in listings:
        text = (listing.instructions or "").strip()
        if not text:
            continue
        prefix = prefixes.get(listing.server, listing.server)
        section = _section(listing.server, prefix, cut(text, EACH))
        fits = cut(section, room)
        if fits != section or len(text.encode(errors="replace")) > EACH:
            short.add(listing.server)
        if fits:
            parts.append(fits)
        room = max(0, room - len(fits.encode()) - 2)
    if not parts:
        return None, frozenset(short)
    return "\n\n".join([_RULE, *parts]), frozenset(short)


def _section(server: str, prefix: str, text: str) -> str:
    named = f" (prefix {prefix}{SEPARATOR})" if prefix else ""
    below = _HEADING.sub(r"\1##", text)  # a server cannot begin a section in another's name
    return f"## {server}{named}\n{below}"


def cut(text: str, longest: int) -> str:
    """At most `longest` bytes of UTF-8, with a sign where something is missing."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= longest:
        return encoded.decode()
    sign = " […]"
    kept = encoded[: max(0, longest - len(sign.encode()))].decode(errors="ignore")
    return kept + sign if kept else ""
