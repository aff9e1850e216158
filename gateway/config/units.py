"""How the values of a configuration are written: durations, sizes, rates, counts, addresses.

Each kind is a `Written`. Errors never repeat the value: it may be a secret that was put in the
wrong place.
"""

import math
import re
from dataclasses import dataclass
from ipaddress import ip_address

from gateway.config.annotations import JsonSchema, Misfit, Written

LONGEST_DURATION_S = 366 * 86_400.0
"""A year: far beyond any sensible setting, and still safe to add to every clock."""

_DURATION = r"[0-9]+(\.[0-9]+)?(ms|s|m|h|d)"
_DURATION_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_SIZE = r"[0-9]+(\.[0-9]+)?(B|kB|KB|MB|GB|KiB|MiB|GiB)"
_SIZE_BYTES = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
_RATE = r"[1-9][0-9]{0,8}/(s|min|h)"
_RATE_S = {"s": 1.0, "min": 60.0, "h": 3600.0}
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")
_PORT = re.compile(r"[0-9]{1,5}")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252})")


class Substituted(str):
    """Text that came out of `${...}`: counts as a number where one is wanted; hides in a repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def expected(what: str) -> Misfit:
    """The complaint that a value is not `what`, without repeating the value."""
    return Misfit(f"expected {what}")


def unsupported(what: str) -> Misfit:
    """The complaint that a value will mean something in a later version."""
    return Misfit(f"{what} is not supported yet")


def number_in(value: object) -> float | int | None:
    """The number a value is, or that substituted text spells; None if it is none."""
    if isinstance(value, Substituted) and _NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return value
    return None


def seconds(*, or_zero: bool = False) -> Written:
    """A duration: `500ms`, `30s`, `5m`, `2h`, `1d`, or a number of seconds. Value in seconds."""
    what = "a duration such as 500ms, 30s or 5m" + ("" if or_zero else ", longer than nothing")

    def read(value: object) -> float:
        found = number_in(value)
        if found is None and isinstance(value, str) and re.fullmatch(_DURATION, value):
            digits = value.rstrip("mshd")
            found = float(digits) * _DURATION_S[value[len(digits) :]]
        if found is None or found < 0 or (found == 0 and not or_zero):
            raise expected(what)
        if found > LONGEST_DURATION_S:
            raise expected("a duration of at most 366d")
        return float(found)

    lower = {"minimum": 0} if or_zero else {"exclusiveMinimum": 0}
    text = f"^{_DURATION}$" if or_zero else f"^(?=.*[1-9]){_DURATION}$"
    return Written(
        read,
        {
            "anyOf": [
                {"type": "number", **lower, "maximum": LONGEST_DURATION_S},
                {"type": "string", "pattern": text},
            ]
        },
    )


def seconds_or_off() -> Written:
    """A duration, or `off`. Value in seconds, infinite for off."""
    some = seconds()

    def read(value: object) -> object:
        if value == "off" or (isinstance(value, float) and math.isinf(value)):
            return math.inf
        try:
            return some.read(value)
        except Misfit:
            raise expected("`off`, or a duration such as 30s, 5m or 1h") from None

    return Written(read, {"anyOf": [*some.schema["anyOf"], {"const": "off"}]})


def size_bytes(least: int, most: int) -> Written:
    """A size: `64KiB`, `4MiB`, or a number of bytes. Value in bytes, between the bounds."""
    what = f"a size such as 64KiB or 4MiB, from {spelt_size(least)} to {spelt_size(most)}"

    def read(value: object) -> int:
        found = number_in(value)
        if found is None and isinstance(value, str) and re.fullmatch(_SIZE, value):
            digits = value.rstrip("BkKMGi")
            found = float(digits) * _SIZE_BYTES[value[len(digits) :]]
        if found is None or found != int(found) or not least <= found <= most:
            raise expected(what)
        return int(found)

    return Written(
        read,
        {
            "anyOf": [
                {"type": "integer", "minimum": least, "maximum": most},
                {"type": "string", "pattern": f"^{_SIZE}$"},
            ]
        },
    )


def spelt_size(size: int) -> str:
    """A size in bytes as a person writes it: the largest binary unit that divides it."""
    for unit in ("GiB", "MiB", "KiB"):
        if size and size % _SIZE_BYTES[unit] == 0:
            return f"{size // _SIZE_BYTES[unit]}{unit}"
    return f"{size}B"


def whole(least: int, most: int) -> Written:
    """A whole number between two bounds."""

    def read(value: object) -> int:
        found = number_in(value)
        # JSON Schema counts 3.0 as a whole number, and so do we.
        if found is None or found != int(found) or not least <= found <= most:
            raise expected(f"a whole number from {least} to {most}")
        return int(found)

    return Written(read, {"type": "integer", "minimum": least, "maximum": most})


def _read_flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, Substituted) and value in {"true", "false"}:
        return value == "true"
    raise expected("true or false (yes, no, on and off are plain text)")


FLAG = Written(_read_flag, {"type": "boolean"})
"""true or false. YAML 1.2 has no other spelling, which is why `no` can be a country."""


@dataclass(frozen=True, slots=True)
class Rate:
    """So many calls in so many seconds."""

    count: int
    per_s: float

    @classmethod
    def parse(cls, text: str) -> "Rate":
        """Read `10/s`, `60/min` or `100/h`. Raises ValueError."""
        if not re.fullmatch(_RATE, text):
            raise ValueError("not a rate")
        count, _, unit = text.partition("/")
        return cls(int(count), _RATE_S[unit])


def _read_rate(value: object) -> Rate:
    if isinstance(value, Rate):
        return value
    try:
        return Rate.parse(value if isinstance(value, str) else "")
    except ValueError:
        raise expected("a rate such as 10/s, 60/min or 100/h") from None


RATE = Written(_read_rate, {"type": "string", "pattern": f"^{_RATE}$"})


_AFTER = f"after {_DURATION}"


def _read_background(value: object) -> float:
    if isinstance(value, float) and math.isinf(value):
        return value
    if value == "never":
        return math.inf
    if not isinstance(value, str) or not re.fullmatch(_AFTER, value):
        raise expected("`never`, or `after` and a duration, such as after 20s")
    found = seconds().read(value.removeprefix("after "))
    assert isinstance(found, float)
    return found


BACKGROUND = Written(
    _read_background,
    {"type": "string", "pattern": f"^(never|after (?=.*[1-9]){_DURATION})$"},
)
"""`after 20s`, or `never`. Value in seconds, infinite for never."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: `host` and `port`, or the `path` of a Unix socket.

    An empty host means every interface; port 0 lets the system choose.
    """

    host: str = ""
    port: int = 0
    path: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read `127.0.0.1:8765`, `[::1]:80`, `:8765` or `unix:/run/x.sock`. Raises ValueError."""
        if text.startswith("unix:"):
            path = text.removeprefix("unix:")
            if not path or "\0" in path:
                raise ValueError("a socket needs a path")
            return cls(path=path)
        host, colon, port = text.rpartition(":")
        if not colon or not _PORT.fullmatch(port) or int(port) > 65_535:
            raise ValueError("not HOST:PORT")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
            if ip_address(host).version != 6:
                raise ValueError("brackets are for IPv6")
        elif host and not _HOST.fullmatch(host):
            raise ValueError("not a host")
        return cls(host=host, port=int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.path is not None or self.host.lower() == "localhost":
            return True
        try:
            found = ip_address(self.host)
        except ValueError:
            return False
        mapped = getattr(found, "ipv4_mapped", None)
        return (mapped or found).is_loopback

    def __str__(self) -> str:
        if self.path is not None:
            return f"unix:{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def _read_address(value: object) -> Address:
    if isinstance(value, Address):
        return value
    try:
        return Address.parse(value if isinstance(value, str) else "")
    except ValueError:
        raise expected("an address such as 127.0.0.1:8765, [::1]:8765 or unix:PATH") from None


ADDRESS_SCHEMA: JsonSchema = {
    "type": "string",
    "pattern": r"^(unix:.+|(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9._-]*)?:[0-9]{1,5})$",
    "examples": ["127.0.0.1:8765", "[::1]:8765", "unix:/run/onegate.sock"],
}
ADDRESS = Written(_read_address, ADDRESS_SCHEMA)
