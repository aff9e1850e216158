"""Compare the globs of rules: does one cover all that another matches, can two ever agree?

The language is that of `fnmatch`: `*` any text, `?` one character, `[ab]` or `[!ab]` one of a set.
Names come from a large alphabet, so one token of a glob can stand for what it matches.
"""

import re
from fnmatch import fnmatchcase

_TOKEN = re.compile(r"\*+|\[!?\]?[^\]]*\]|.", re.DOTALL)
_WILD = frozenset("*?[")

Tokens = tuple[str, ...]


def tokens(glob: str) -> Tokens:
    """`a*[xy]` as `("a", "*", "[xy]")`; several stars in a row are one."""
    return tuple("*" if one[0] == "*" else one for one in _TOKEN.findall(glob))


def literal(text: str) -> Tokens:
    """The tokens of a text in which nothing is special."""
    return tuple(f"[{one}]" if one in _WILD else one for one in text)


def covers(outer: str, inner: str) -> bool:
    """Whether everything that `inner` matches is matched by `outer` as well.

    Errs towards no: sets of characters are compared only where that is simple.
    """
    wide, narrow = tokens(outer), tokens(inner)
    # One row of the table at a time: row[j] = wide[i:] covers narrow[j:].
    row = [False] * len(narrow) + [True]
    for token in reversed(wide):
        below, row = row, [False] * (len(narrow) + 1)
        for j in range(len(narrow), -1, -1):
            if token == "*":
                row[j] = below[j] or (j < len(narrow) and row[j + 1])
            else:
                row[j] = j < len(narrow) and _one_covers(token, narrow[j]) and below[j + 1]
    return row[0]


def can_meet(one: Tokens, other: Tokens) -> bool:
    """Whether some text is matched by both. Errs towards yes."""
    for a, b in zip(one, other, strict=False):
        if a == "*" or b == "*":
            break
        if not _can_agree(a, b):
            return False
    row = [True]
    for j in range(len(other) - 1, -1, -1):
        row.insert(0, other[j] == "*" and row[0])
    for token in reversed(one):
        below, row = row, [False] * (len(other) + 1)
        for j in range(len(other), -1, -1):
            row[j] = _meets_here(token, other[j] if j < len(other) else None, j, below, row)
    return row[0]


def _meets_here(token: str, facing: str | None, j: int, below: list[bool], row: list[bool]) -> bool:
    if token == "*":
        return below[j] or (facing is not None and row[j + 1])
    if facing is None:
        return False
    if facing == "*":
        return row[j + 1] or below[j]
    return _can_agree(token, facing) and below[j + 1]


def _one_covers(wide: str, narrow: str) -> bool:
    if narrow == "*":
        return False
    if wide == "?" or wide == narrow:
        return True
    return wide[0] == "[" and len(narrow) == 1 and narrow != "?" and fnmatchcase(narrow, wide)


def _can_agree(a: str, b: str) -> bool:
    if "?" in (a, b) or (len(a) > 1 and len(b) > 1):
        return True
    return fnmatchcase(a, b) if len(a) == 1 else fnmatchcase(b, a)
