"""Who may talk to a listener at all: Host, Origin, media types, bearer token, CORS.

Everything is judged over plain header values; verdicts on values that come again with every
request are remembered, so that a usual request costs a few look-ups.
Source: 2026-07-28 basic/transports (DNS rebinding), RFC 6750, the Fetch standard (CORS).
"""

import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Generic, TypeVar

import msgspec

from gateway.config.units import Address
from gateway.edge.accepting import Accepts, accepts, is_json
from gateway.edge.refusals import Refused
from gateway.eras.sides import Headers
from gateway.identity.tokens import Tokens, bearer_token

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
EVERYWHERE = ("", "0.0.0.0", "::")
DEFAULT_PORT = 80

METHODS = "POST, GET, DELETE, OPTIONS"
CORS_HEADERS = (
    "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, "
    "mcp-protocol-version, mcp-session-id"
)
PARAM = "mcp-param-"
"""Prefix of headers that tools define; a preflight has to name each, wildcards do not do."""
EXPOSED = "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate"

TOKEN = frozenset(string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~")
"""Characters of a header's name (RFC 9110, 5.6.2)."""
UNKNOWN_TOKEN = (
    "This bearer token is not known here: `auth.tokens` holds the hashes of those that are."
)
NO_TOKEN = "A bearer token is needed: send `Authorization: Bearer TOKEN`."

V = TypeVar("V")
NOTHING: Mapping[str, str] = {}


class Remembered(dict[str, V], Generic[V]):
    """A pure function's answers, kept; emptied when there are too many of them."""

    MOST, LONGEST = 256, 256

    def __init__(self, decide: Callable[[str], V]) -> None:
        super().__init__()
        self._decide = decide

    def __missing__(self, key: str) -> V:
        answer = self._decide(key)
        if len(key) <= self.LONGEST:
            if len(self) >= self.MOST:
                self.clear()
            self[key] = answer
        return answer


class Admission(msgspec.Struct, frozen=True):
    """What a guard has found out about the head of a request that may come in."""

    guard: "Guard"
    principal: str | None
    accepts: Accepts


@dataclass(frozen=True, slots=True)
class Names:
    """What a listener is called, and the web origins that may call it. All lower-case."""

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()
    foreign: frozenset[str] = frozenset()
    """Configured origins: browsers may read our answers from them (CORS)."""
    any_address_ports: frozenset[int] = frozenset()
    """Ports bound on every interface: any IP address with one of these is ours, and only a
    name, never an address, can be made to point somewhere else (DNS rebinding)."""

    def has_host(self, host: str) -> bool:
        host = host.lower()
        return host in self.hosts or (bool(self.any_address_ports) and self._is_address(host))

    def has_origin(self, origin: str) -> bool:
        origin = origin.lower()
        return origin in self.origins or origin in self.foreign

    def _is_address(self, host: str) -> bool:
        name, colon, port = host.rpartition(":")
        try:
            ip_address(name.removeprefix("[").removesuffix("]"))
            return bool(colon) and int(port) in self.any_address_ports
        except ValueError:
            return False


def own_names(
    addresses: Iterable[Address], allowed_hosts: Iterable[str], allowed_origins: Iterable[str]
) -> Names:
    """The names for listeners bound to these addresses (real ports, not 0)."""
    hosts: set[str] = set()
    origins: set[str] = set()
    anywhere: set[int] = set()
    ports: set[int] = set()
    for address in addresses:
        if address.path is not None:
            hosts.add("localhost")  # what clients of a Unix socket write, for want of a name
            continue
        own = {*LOOPBACK, str(Address(address.host)).rpartition(":")[0].lower()} - {"", "[::]"}
        hosts |= with_port(own, address.port)
        ports.add(address.port)
        if address.host in EVERYWHERE:
            anywhere.add(address.port)
        if address.is_loopback or address.host in EVERYWHERE:
            origins |= {f"http://{name}" for name in with_port(LOOPBACK, address.port)}
    for host in (host.lower() for host in allowed_hosts):
        hosts.add(host)
        if ":" not in host.rpartition("]")[2]:  # written without a port: on ours as well
            hosts |= {f"{host}:{port}" for port in ports}
    foreign = frozenset(origin.lower() for origin in allowed_origins)
    return Names(frozenset(hosts), frozenset(origins), foreign, frozenset(anywhere))


def with_port(names: Iterable[str], port: int) -> set[str]:
    """`NAME:PORT`, and the bare name where the port goes without saying."""
    bare = set(names)
    return {f"{name}:{port}" for name in bare} | (bare if port == DEFAULT_PORT else set())


class Guard:
    """Asks every request of one listener the same questions. Raises `Refused`."""

    def __init__(self, names: Names, tokens: Tokens | None) -> None:
        self._names = names
        self._tokens = tokens
        self._has_host = Remembered(names.has_host)
        self._has_origin = Remembered(names.has_origin)
        self._is_json = Remembered(is_json)
        self._accepts = Remembered(accepts)

    def may_post(self, headers: Headers) -> Admission:
        """Whose POST it is, and which answers it takes."""
        principal = self.principal(headers)
        self.media_type(headers)
        return Admission(self, principal, self.accepted(headers))

    def admit(self, headers: Headers) -> None:
        """Host and Origin: is this request meant for us, by somebody who may?"""
        host = headers.get("Host", "") or ""
        if not self._has_host[host]:
            raise Refused(
                403,
                f"Host {host[:100]!r} is not a name of this gateway. "
                "Use the address it listens on, or add the host to `allowed_hosts`.",
            )
        origin = headers.get("Origin")
        if origin is not None and not self._has_origin[origin]:
            raise Refused(
                403,
                f"Origin {origin[:100]!r} may not call this gateway. "
                "If it should, add it to `allowed_origins`.",
            )

    def principal(self, headers: Headers) -> str | None:
        """Who calls, by bearer token; None where no token is asked for."""
        return None if self._tokens is None else self.required_principal(headers)

    def required_principal(self, headers: Headers) -> str:
        """Who calls, by bearer token. Without configured tokens that is nobody: refused."""
        values = headers.getall("Authorization", ())
        presented = bearer_token(values)
        if self._tokens is not None and presented is not None:
            owner = self._tokens.owner(presented)
            if owner is not None:
                return owner
        challenge = 'Bearer realm="onegate"' + (', error="invalid_token"' if values else "")
        raise Refused(
            401, UNKNOWN_TOKEN if values else NO_TOKEN, headers={"WWW-Authenticate": challenge}
        )

    def media_type(self, headers: Headers) -> None:
        """A body must say that it is JSON. (It also makes browsers ask before they send.)"""
        content_type = headers.get("Content-Type", "") or ""
        if not self._is_json[content_type]:
            raise Refused(415, "Send the body as `Content-Type: application/json`.")

    def accepted(self, headers: Headers) -> Accepts:
        """Which answers the client takes."""
        values = headers.getall("Accept", ())
        accepted = self._accepts[values[0] if len(values) == 1 else ",".join(values)]
        if not (accepted.json or accepted.stream):
            raise Refused(
                406,
                "Answers are application/json or text/event-stream, and `Accept` allows neither. "
                "Send `Accept: application/json, text/event-stream`.",
            )
        return accepted

    def cors(self, headers: Headers) -> Mapping[str, str]:
        """Headers for every answer, so that a configured origin may read it, errors too."""
        if not self._names.foreign:
            return NOTHING
        origin = headers.get("Origin")
        if origin is None or origin.lower() not in self._names.foreign:
            return {"Vary": "Origin"}
        return {
            "Vary": "Origin",
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": EXPOSED,
        }

    def preflight(self, headers: Headers) -> Mapping[str, str]:
        """Headers for the answer to OPTIONS, beside `cors`."""
        origin = headers.get("Origin")
        if origin is None or origin.lower() not in self._names.foreign:
            return {"Allow": METHODS}
        wanted = headers.get("Access-Control-Request-Headers", "") or ""
        params = [name for name in wanted.lower().replace(" ", "").split(",") if _is_param(name)]
        return {
            "Allow": METHODS,
            "Access-Control-Allow-Methods": METHODS,
            "Access-Control-Allow-Headers": ", ".join((CORS_HEADERS, *params)),
            "Access-Control-Max-Age": "7200",
        }


def _is_param(name: str) -> bool:
    """A header a tool may define, and nothing that could break out of ours."""
    return name.startswith(PARAM) and TOKEN.issuperset(name)
