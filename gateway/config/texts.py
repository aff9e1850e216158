"""The kinds of text a configuration holds: names, paths, hosts, and words that come later.

Each pairs a check with its JSON Schema pattern, like `units.py` does for quantities.
"""

import re
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from gateway.config.annotations import After, Before, Situation, Written
from gateway.config.units import ADDRESS, Address, expected, unsupported

SERVER_NAME = r"^(?!_)(?!.*__)[A-Za-z0-9_-]{0,39}[A-Za-z0-9-]$"
"""Tools are offered as SERVER__TOOL. Without `__` inside a name or `_` at its ends, two servers'
names can never meet; 40 characters leave room for the tool's own name."""

LONGEST_NAME = 40

_WHY_NAMES = (
    "1 to 40 of A-Z a-z 0-9 _ and -, without `__` inside and without `_` at either end "
    "(tools are offered as SERVER__TOOL, and names of two servers must never meet)"
)
_NO_NUL = r"^[^\x00]*$"
_SOME_TEXT = r"^[^\x00]*[^\x00\s][^\x00]*$"
_ENV_NAME = r"^[^=\x00]+$"
_HOST = r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?$"
_ORIGIN = r"^[A-Za-z][A-Za-z0-9+.-]*://[^/\s*]+$"
_URL = r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#]+[^\s#]*$"
_HEADER_NAME = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"
_HEADER_TEXT = r"^[^\x00-\x08\x0a-\x1f\x7f]*$"
_SHA256 = r"^[0-9A-Fa-f]{64}$"


def _matching(pattern: str, what: str, *, lower: bool = False) -> Written:
    compiled = re.compile(pattern.removesuffix("$") + r"\Z")

    def read(value: object) -> str:
        if not isinstance(value, str) or compiled.match(value) is None:
            raise expected(what)
        return value.lower() if lower else str(value)

    return Written(read, {"type": "string", "pattern": pattern})


def _address(what: str) -> Written:
    """An http or https URL that has a host, and a port in range if any."""
    written = _matching(_URL, what)

    def read(value: object) -> str:
        text = str(written.read(value))
        try:
            parts = urlsplit(text)
            if not parts.hostname or parts.port == 0:
                raise expected(what)
        except ValueError:
            raise expected(what) from None
        return text

    return Written(read, written.schema)


def later(name: str, *words: str) -> Before:
    """Refuse words that only a later version will understand."""

    def check(value: object) -> object:
        if isinstance(value, str) and value in words:
            raise unsupported(f"`{name}: {value}`")
        return value

    return Before(check)


def _anchor(path: Path, where: Situation) -> Path:
    """Relative paths count from the file's folder, `~` is the user's home (both in `context`)."""
    known = where.context or {}
    if path.parts[:1] == ("~",) and known.get("home"):
        return Path(known["home"], *path.parts[1:])
    return Path(known["folder"], path) if "folder" in known else path


def _anchor_socket(address: Address, where: Situation) -> Address:
    if address.path is None:
        return address
    return Address(path=str(_anchor(Path(address.path), where)))


def _as_text(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    if not isinstance(value, str) or not value or "\0" in value:
        raise expected("a path")
    return value


Text = Annotated[str, _matching(_NO_NUL, "text")]
SomeText = Annotated[str, _matching(_SOME_TEXT, "some text")]
Program = Annotated[
    str, _matching(_SOME_TEXT, "one program, as text; what it is given goes under `args`")
]
ServerName = Annotated[str, _matching(SERVER_NAME, _WHY_NAMES)]
Prefix = Annotated[str, _matching(f"^$|{SERVER_NAME}", f'"" or {_WHY_NAMES}')]
EnvName = Annotated[str, _matching(_ENV_NAME, "the name of an environment variable")]
Host = Annotated[str, _matching(_HOST, "a host such as gateway.example or gateway.example:8765")]
Origin = Annotated[
    str, _matching(_ORIGIN, "an origin such as https://app.example (scheme and host, no path)")
]
Url = Annotated[str, _address("an address such as https://tracker.example/mcp")]
ProxyUrl = Annotated[str, _address("the address of a proxy, such as http://proxy:3128")]
HeaderName = Annotated[str, _matching(_HEADER_NAME, "the name of an HTTP header")]
HeaderText = Annotated[str, _matching(_HEADER_TEXT, "text on one line, without control characters")]
Sha256 = Annotated[
    str,
    _matching(
        _SHA256,
        "the SHA-256 of the token, 64 hex digits (`onegate token new` prints both)",
        lower=True,
    ),
]
AnchoredPath = Annotated[Path, Before(_as_text), After(_anchor)]
ListenAddress = Annotated[Address, ADDRESS, After(_anchor_socket)]
