"""Where a gateway is: what `--url` may say."""

from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

PORTS = {"http": 80, "https": 443}
PATH = "/mcp"


@dataclass(frozen=True, slots=True)
class Place:
    """One MCP endpoint. `shown` is its address as a person knows it; it holds no secret."""

    shown: str
    host: str
    port: int
    target: str
    """Path and query."""
    is_tls: bool = False
    socket: str | None = None
    """Path of a Unix socket."""

    @classmethod
    def parse(cls, text: str) -> "Place":
        """Read `http://HOST:PORT/mcp`, `https://…` or `unix:PATH`. Raises `ValueError`, and
        says what is wrong without repeating the text: it may hold a password."""
        if text.startswith("unix:"):
            path = text.removeprefix("unix:")
            if not path:
                raise ValueError("unix: needs the path of a socket")
            return cls(text, "localhost", 0, PATH, socket=path)
        split = urlsplit(text)
        if split.scheme not in PORTS or not split.hostname:
            raise ValueError("expected http://HOST:PORT/mcp, https://HOST/mcp or unix:PATH")
        if split.username is not None:
            raise ValueError("a token belongs into ONEGATE_TOKEN or --token-file, not into the URL")
        port = split.port or PORTS[split.scheme]  # raises ValueError for one that is none
        return cls(
            text, _host(split.hostname), port, _target(split), is_tls=split.scheme == "https"
        )

    @property
    def authority(self) -> str:
        """What `Host` says."""
        if self.socket is not None:
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (
            host
            if self.port == PORTS["https" if self.is_tls else "http"]
            else (f"{host}:{self.port}")
        )

    @property
    def is_local(self) -> bool:
        """What is sent there does not leave this machine."""
        return (
            self.socket is not None
            or self.host in ("localhost", "::1")
            or (self.host.startswith("127."))
        )


def _host(name: str) -> str:
    """As it is asked for, and said in `Host`: a name in another script has a spelling in ASCII."""
    try:
        return name if ":" in name else name.encode("idna").decode()
    except UnicodeError:
        raise ValueError("its host can be no name") from None


def _target(split: SplitResult) -> str:
    path = split.path if split.path not in ("", "/") else PATH
    target = f"{path}?{split.query}" if split.query else path
    if not target.isascii() or not target.isprintable() or " " in target:
        raise ValueError("the path of the URL holds characters that must be percent-encoded")
    return target
