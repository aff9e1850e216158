"""Read the NAME=VALUE lines of an `env_file`.

The common ground of what other tools take: `export`, comments, single quotes for
text as it stands, double quotes with escapes. Nothing is replaced inside values and
nothing is executed.
"""

import re

_LINE = re.compile(
    r"""
    (?:export\s+)? (?P<name>[A-Za-z_][A-Za-z0-9_]*) \s*=\s*
    (?: '(?P<literal>[^']*)' \s*(?:\#.*)?
      | "(?P<quoted>(?:[^"\\]|\\.)*)" \s*(?:\#.*)?
      | (?P<bare>(?!['"]).*)
    )
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(.)")
_MEANINGS = {"n": "\n", "r": "\r", "t": "\t"}


def parse_env(text: str) -> dict[str, str]:
    """Names and values; the last of a name counts.

    Raises ValueError naming the line, never its content: that may be a secret.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        value = None if match is None else _value(match)
        if match is None or value is None or "\0" in value:
            raise ValueError(f"line {number}: expected NAME=VALUE")
        found[match["name"]] = value
    return found


def _value(match: re.Match[str]) -> str:
    if match["literal"] is not None:
        return match["literal"]
    if match["quoted"] is not None:
        return _ESCAPE.sub(lambda found: _MEANINGS.get(found[1], found[1]), match["quoted"])
    return re.split(r"\s+#", match["bare"], maxsplit=1)[0].strip()
