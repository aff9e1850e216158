"""Make text from outside safe to show: what a reader cannot see, or a terminal obeys, is spelt out.

Names, client versions and a server's stderr are written by others. A newline in
one forges a line of the log, an escape code repaints the operator's terminal, and
bidi, zero-width and tag characters hide what is really there (Unicode TR36 and
TR39, "Trojan Source" CVE-2021-42574). Here they become `\\n`, `\\x1b`, `\\u202e`.
"""

import re

LONGEST = 2048
"""Characters of one value. Long enough for any honest name or message; a log is no archive."""

_INVISIBLE = (
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1: line ends, escape codes
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # hyphen, joiner, Arabic, fillers
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, line separators, bidi
    "\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"  # fillers, BOM; not FE0F: it makes emoji
    "\ud800-\udfff"  # halves of a pair: not encodable, so they would crash the writer
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # shorthand and music controls
    "\U000e0000-\U000e0fff"  # tags and more variation selectors: whole hidden sentences
)
_HOSTILE = re.compile(f"[{_INVISIBLE}]")
_HOSTILE_BUT_LINES = re.compile(f"[{_INVISIBLE}]".replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, longest: int = LONGEST) -> str:
    """One line of text, at most `longest` characters plus a note of how many were cut."""
    if len(text) > longest:
        return f"{_HOSTILE.sub(_spelt, text[:longest])}… ({len(text) - longest} more)"
    # The usual case, spared the search. Not for all scripts: `isprintable` lets fillers pass.
    return text if text.isascii() and text.isprintable() else _HOSTILE.sub(_spelt, text)


def visible_lines(text: str, longest: int = 16 * LONGEST) -> str:
    """The same for text that has lines of its own (a traceback): newline and tab stay."""
    shown = _HOSTILE_BUT_LINES.sub(_spelt, text[:longest])
    return shown if len(text) <= longest else f"{shown}… ({len(text) - longest} more)"


def _spelt(found: re.Match[str]) -> str:
    character = found[0]
    point = ord(character)
    if point < 0x100:
        return _SHORT.get(character) or f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
