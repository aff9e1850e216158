"""Judge a configuration as a whole: contradictions refuse it, doubts are worth a warning.

Pure: whether a command exists is asked of the function given.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

from gateway.config.complaints import Finding
from gateway.config.globs import can_meet, covers, literal, tokens
from gateway.config.model import Config, HttpServer, Server, StdioServer, ToolRule

Which = Callable[[StdioServer], str | None]
"""The program a server would start, found on the PATH that its process will have; or None."""

SETTINGS = ("decision", "timeout_s", "longest_s", "concurrency", "queue", "rate", "background_s")

OWN = "onegate"
"""The gateway's own name among servers: of the tool that fetches results."""

_HASH = 9
"""`_` and 8 hex digits: what a name that is too long ends with."""


def contradictions(config: Config, given: Collection[str]) -> Iterator[Finding]:
    """What no gateway can be started with. `given`: the keys that are written."""
    yield from _addresses(config, given)
    if config.auth.mode == "unset":
        for at, address in enumerate(config.listen):
            if not address.is_loopback:
                yield Finding(
                    ("listen", at),
                    "reaches beyond this machine: give `auth.tokens`, or write `auth: none`",
                )
    for name, server in config.servers.items():
        if isinstance(server, HttpServer):
            yield from _remote(name, server)
    if OWN in config.servers and any(rule.background_s is not None for rule in config.tools):
        said = "with `background` in `tools`, this name is the gateway's own"
        yield Finding(("servers", OWN), said, at_key=True)
    seen: dict[str, int] = {}
    for at, token in enumerate(config.auth.tokens):
        for key, value in (("name", token.name), ("sha256", token.sha256)):
            first = seen.setdefault(f"{key} {value}", at)
            if first != at:
                path = ("auth", "tokens", at, key)
                yield Finding(path, f"the same as that of auth.tokens[{first}]")


OURS = re.compile(
    r"mcp-.*|accept|accept-encoding|content-.*|transfer-encoding|connection|host|last-event-id",
    re.IGNORECASE,
)
"""Headers that the protocol sets itself, for each request."""


def _remote(name: str, server: HttpServer) -> Iterator[Finding]:
    for header in server.headers:
        if OURS.fullmatch(header):
            said = "the protocol sets this header itself"
            yield Finding(("servers", name, "headers", header), said, at_key=True)
    if server.key is not None and server.cert is None:
        yield Finding(("servers", name, "key"), "given without `cert`, whose key it is")
    if server.transport == "sse" and server.protocol == "modern":
        said = "`protocol: modern` has no such transport; leave one of the two out"
        yield Finding(("servers", name, "transport"), said)


def _addresses(config: Config, given: Collection[str]) -> Iterator[Finding]:
    taken: set[str] = set()
    for at, address in enumerate(config.listen):
        if str(address) in taken and (address.port or address.path):
            yield Finding(("listen", at), "listed twice")
        taken.add(str(address))
    admin = config.admin
    if admin is not None and str(admin) in taken and (admin.port or admin.path):
        said = "the same address for `listen` and `admin`"
        yield Finding(("admin",) if "admin" in given else ("listen",), said)


def doubts(config: Config, which: Which) -> Iterator[Finding]:
    """What can be started, but hardly means what it says."""
    if not config.servers:
        yield _doubt((), "no servers are configured, so there is nothing to offer")
    yield from _missing_commands(config, which)
    yield from _in_the_clear(config)
    yield from _shared_prefixes(config)
    yield from _idle_rules(config)


def _missing_commands(config: Config, which: Which) -> Iterator[Finding]:
    for name, server in config.servers.items():
        if isinstance(server, HttpServer) or server.disabled or which(server) is not None:
            continue
        said = "no such program on the PATH that this server gets"
        if " " in server.command and not server.args:
            said += "; what it is given goes under `args`"
        yield _doubt(("servers", name, "command"), said)


def _in_the_clear(config: Config) -> Iterator[Finding]:
    for name, server in config.servers.items():
        if not isinstance(server, HttpServer) or server.url.lower().startswith("https:"):
            continue
        for key in ("ca", "cert"):
            if getattr(server, key) is not None:
                yield _doubt(("servers", name, key), "of no use: the address is not https")
        if server.headers and not _is_near(server.url):
            said = "its headers travel in the clear; use https"
            yield _doubt(("servers", name, "url"), said)


def _is_near(url: str) -> bool:
    """Whether it stays on this machine, or on a network that only this machine is on."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or "." not in host.strip(".") or ip_address(host).is_private
    except ValueError:
        return False


def _shared_prefixes(config: Config) -> Iterator[Finding]:
    sharing: dict[str, list[str]] = defaultdict(list)
    for name, server in config.servers.items():
        if not server.disabled:
            sharing[prefix_of(name, server)].append(name)
    for first, *others in sharing.values():
        for name in others:
            said = f"the same prefix as `{first}`: their tools may clash"
            given = config.servers[name].prefix is not None
            yield _doubt(("servers", name, "prefix") if given else ("servers", name), said)


def prefix_of(name: str, server: Server) -> str:
    """What the server's tools' names begin with, the separator not included."""
    return name if server.prefix is None else server.prefix


def _idle_rules(config: Config) -> Iterator[Finding]:
    names = _possible_names(config)
    for at, rule in enumerate(config.tools):
        given = settings_of(rule)
        if not given:
            yield _doubt(("tools", at), "gives no setting, so it changes nothing")
        elif names and not _may_match(rule, names):
            said = "can never match: names begin with a server's prefix, and none fits"
            yield _doubt(("tools", at, "match"), said)
        elif shadows := _shadows(config.tools[:at], rule, given):
            earlier = " and ".join(f"tools[{one}]" for one in shadows)
            said = f"can never matter: all it gives is given before, by {earlier}"
            yield _doubt(("tools", at), said)


def _may_match(rule: ToolRule, names: list[tuple[str, ...]]) -> bool:
    if rule.decision == "deny" and ":" in rule.match:
        return True  # a resource's URI: any server may offer it
    return any(can_meet(tokens(rule.match), name) for name in names)


def settings_of(rule: ToolRule) -> frozenset[str]:
    """The settings a rule gives, by attribute."""
    return frozenset(name for name in SETTINGS if getattr(rule, name) is not None)


def _shadows(earlier: tuple[ToolRule, ...], rule: ToolRule, given: frozenset[str]) -> list[int]:
    """The earlier rules that leave nothing for this one to decide; empty if something is left."""
    left, found = set(given), []
    for at, other in enumerate(earlier):
        common = left & settings_of(other)
        if common and covers(other.match, rule.match):
            left -= common
            found.append(at)
    return [] if left else found


def _possible_names(config: Config) -> list[tuple[str, ...]]:
    """What exposed names look like, a glob for each prefix; empty if they may be anything."""
    prefixes = {prefix_of(name, server) for name, server in config.servers.items()} | {OWN}
    longest = max((len(prefix) for prefix in prefixes), default=0)
    if "" in prefixes or longest + 2 > config.names.longest - _HASH:
        return []
    return [(*literal(f"{prefix}__"), "*") for prefix in sorted(prefixes)]


def _doubt(path: tuple[str | int, ...], problem: str) -> Finding:
    return Finding(path, problem, severity="warning")
