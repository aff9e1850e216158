"""The shape of the configuration: one frozen section each, unknown keys refused.

A key is the attribute's name without its unit: `timeout: 30s` becomes `timeout_s = 30.0`,
`line: 16MiB` becomes `line_bytes`. Fields that may hold secrets have `repr=False`: the same
mark keeps them out of a repr and out of the lines that errors quote.

Plain dataclasses, so that a gateway that runs need not hold what reads and checks them: pydantic
does that by the annotations, in `judge`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, ClassVar, Literal

from gateway.config.annotations import After, Before, Kinds, Situation
from gateway.config.texts import (
    AnchoredPath,
    EnvName,
    HeaderName,
    HeaderText,
    Host,
    ListenAddress,
    Origin,
    Prefix,
    Program,
    ProxyUrl,
    ServerName,
    Sha256,
    SomeText,
    Text,
    Url,
    later,
)
from gateway.config.units import (
    ADDRESS_SCHEMA,
    BACKGROUND,
    FLAG,
    RATE,
    Address,
    Rate,
    expected,
    seconds,
    seconds_or_off,
    size_bytes,
    whole,
)

KIB, MIB, GIB = 2**10, 2**20, 2**30

Decision = Literal["allow", "deny"]
_Decision = Annotated[Decision, later("decision", "ask")]
_DefaultDecision = Annotated[Decision, later("default_decision", "ask")]


def key_of(attribute: str) -> str:
    """The key in the file for an attribute: its name without the unit."""
    return attribute.removesuffix("_bytes").removesuffix("_s")


NO_KEYS = frozenset({"mode"})
"""Attributes that are not written, but follow from what is. Inside, `Auth.mode` is passed under
a key that nobody can mean: `(mode)`."""


def _written_as(attribute: str) -> str:
    return f"({attribute})" if attribute in NO_KEYS else key_of(attribute)


@dataclass(frozen=True, kw_only=True, repr=False)
class Section:
    """A mapping in the file. Frozen; unknown keys are errors; a repr tells no texts."""

    __pydantic_config__: ClassVar[Mapping[str, object]] = {
        "extra": "forbid",
        "alias_generator": _written_as,
    }

    def __repr__(self) -> str:
        """Numbers, flags and sections only: any text may have come from `${...}`."""
        told = ((one.name, getattr(self, one.name)) for one in fields(self) if one.repr)
        words = (f"{name}={value!r}" if _is_plain(value) else f"{name}=***" for name, value in told)
        return f"{type(self).__name__}({', '.join(words)})"


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(one, Section) for one in value)
    return isinstance(value, int | float | Section | Mapping | None)


@dataclass(frozen=True, kw_only=True, repr=False)
class Server(Section):
    """What can be said of every server."""

    prefix: Prefix | None = None
    """What its tools' names begin with. Default: the server's key; "" leaves names as they are."""
    isolation: Literal["auto", "shared", "session", "principal"] = "auto"
    """Who shares a process or session of it: auto = all clients that no server could ask anything,
    shared = everybody, session = nobody, principal = who has the same token."""
    protocol: Literal["auto", "legacy", "modern"] = "auto"
    """Which era of MCP to speak with it. auto = find out and remember."""
    required: Annotated[bool, FLAG] = False
    """Whether the gateway counts as ready only when this server is."""
    start_timeout_s: Annotated[float, seconds()] = 30.0
    """How long its handshake may take, and each of its lists."""
    concurrency: Annotated[int, whole(1, 100_000)] | None = None
    """How many calls it gets at a time. Default: no bound."""
    queue: Annotated[int, whole(0, 100_000)] = 64
    """How many calls may wait for their turn, or for a process; one more is refused."""
    processes: Annotated[int, whole(1, 10_000)] = 32
    """How many processes, or sessions, it may have for clients that do not share (`isolation`)."""
    process_idle_s: Annotated[float, seconds()] = 300.0
    """How long one of those is kept that is nobody's: between two calls, or in readiness."""
    owned_process_idle_s: Annotated[float, seconds()] = 1800.0
    """The same where it is a session's or a principal's, and may hold what they did."""
    disabled: Annotated[bool, FLAG] = False
    """Keep the entry, but do not start it."""


@dataclass(frozen=True, kw_only=True, repr=False)
class StdioServer(Server):
    """A server that the gateway starts and talks to over its standard input and output."""

    command: Program
    """The program to start: a name on PATH or a path. Never given to a shell."""
    args: tuple[Text, ...] = field(default=(), repr=False)
    """Its arguments, one item each."""
    env: Mapping[EnvName, Text] = field(default_factory=dict, repr=False)
    """Environment variables for this server, over the inherited ones."""
    env_inherit: tuple[EnvName, ...] = ()
    """Further variables, by name or glob, to pass on from the gateway's own environment."""
    env_file: AnchoredPath | None = None
    """A file with NAME=VALUE lines, beneath `env`."""
    cwd: AnchoredPath | None = None
    """The folder to start it in. Default: the gateway's own."""
    stop_grace_s: Annotated[float, seconds(or_zero=True)] = 5.0
    """How long it may take to leave after its input closes, and again after TERM."""


@dataclass(frozen=True, kw_only=True, repr=False)
class HttpServer(Server):
    """A server that runs elsewhere and is reached over HTTP."""

    url: Url = field(repr=False)
    """Where it is: https://HOST/PATH."""
    transport: Literal["auto", "http", "sse"] = "auto"
    """http = Streamable HTTP, sse = the older HTTP+SSE; auto = find out and remember."""
    headers: Mapping[HeaderName, HeaderText] = field(default_factory=dict, repr=False)
    """What each request to it carries, such as `Authorization`."""
    ca: AnchoredPath | None = None
    """A file with the certificates to trust, in place of the system's."""
    cert: AnchoredPath | None = None
    """A file with the certificate to show, for servers that ask for one."""
    key: AnchoredPath | None = None
    """The key of `cert`, if it is not in the same file."""
    proxy: ProxyUrl | None = field(default=None, repr=False)
    """The proxy on the way to it. None is taken from the environment."""
    connect_timeout_s: Annotated[float, seconds()] = 10.0
    """How long it may take to connect."""

    @property
    def stop_grace_s(self) -> float:
        """How long it may take to hear that a session is over: not worth a setting."""
        return 2.0


def _kind_of(value: object) -> str:
    """By the key that only one of them has; without either a person means a program."""
    if isinstance(value, HttpServer) or (isinstance(value, Mapping) and "url" in value):
        return HTTP
    return STDIO


STDIO, HTTP = "(stdio)", "(http)"
"""How the model tells servers apart in what it says of errors."""

AnyServer = Annotated[
    StdioServer | HttpServer, Kinds(_kind_of, {STDIO: StdioServer, HTTP: HttpServer})
]


@dataclass(frozen=True, kw_only=True, repr=False)
class ToolRule(Section):
    """Settings for the tools whose exposed name matches.

    For each setting, the first rule that matches and gives it wins.
    """

    match: SomeText
    """A glob over exposed names: * any text, ? one character, [ab] one of these."""
    decision: _Decision | None = None
    """allow or deny; a denied tool is not listed either."""
    timeout_s: Annotated[float, seconds()] | None = None
    """How long a call may be silent; progress starts the time anew. Default: 60s."""
    longest_s: Annotated[float, seconds()] | None = None
    """How long a call may last in all. Default: 10m."""
    concurrency: Annotated[int, whole(1, 100_000)] | None = None
    """How many calls of a tool run at a time. Default: no bound."""
    queue: Annotated[int, whole(0, 100_000)] | None = None
    """How many calls of a tool may wait for their turn. Default: 64."""
    rate: Annotated[Rate, RATE] | None = None
    """How often each caller may call a tool: 10/s, 60/min, 100/h. Default: no bound."""
    background_s: Annotated[float, BACKGROUND] | None = None
    """`after 20s`: what takes longer is answered then, goes on by itself, and its result is
    fetched with the tool onegate__result. Default: never."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Token(Section):
    """A static bearer token, known by its hash alone."""

    name: SomeText
    """Who presents it: the `principal` of the record."""
    sha256: Sha256 = field(repr=False)
    """SHA-256 of the token, 64 hex digits."""


def _some(values: tuple[object, ...], _: Situation) -> tuple[object, ...]:
    if not values:
        raise expected("at least one")
    return values


SOME = After(_some, {"minItems": 1})


@dataclass(frozen=True, kw_only=True, repr=False)
class Auth(Section):
    """Who may use the endpoint."""

    mode: Literal["unset", "none", "tokens"] = "unset"
    """Not a key: `none` where that is written out, `tokens` where some are given."""
    tokens: Annotated[tuple[Token, ...], SOME] = ()
    """Static bearer tokens, any of which opens the endpoint."""

    def __post_init__(self) -> None:
        if self.tokens and self.mode == "unset":
            object.__setattr__(self, "mode", "tokens")


def _auth_of(value: object) -> object:
    if value == "none":
        return {_written_as("mode"): "none"}
    if isinstance(value, Mapping | Auth):
        return value
    raise expected("`none`, or a mapping with `tokens`")


@dataclass(frozen=True, kw_only=True, repr=False)
class Calls(Section):
    """Where the record of calls goes. Without a path it goes to the log stream."""

    path: AnchoredPath | None = None
    """A file of JSON lines, or `stderr` for the log stream."""
    stderr: Annotated[bool, FLAG] = True
    """Write it to the log stream. Default: only when there is no path."""
    arguments: Literal["none", "redacted"] = "none"
    """What of a call's arguments is kept: none, or redacted."""


def _calls_of(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    rest = dict(value)
    if rest.get("path") == "stderr":
        del rest["path"]
        return {"stderr": True, **rest}
    return {"stderr": rest.get("path") is None, **rest}


@dataclass(frozen=True, kw_only=True, repr=False)
class Limits(Section):
    """Bounds on what clients and servers may send, hold open and take."""

    line_bytes: Annotated[int, size_bytes(KIB, GIB)] = 16 * MIB
    """The longest message a server may write; a longer one is dropped, its call fails."""
    body_bytes: Annotated[int, size_bytes(KIB, GIB)] = 4 * MIB
    """The largest request body a client may send."""
    header_bytes: Annotated[int, size_bytes(KIB, MIB)] = 64 * KIB
    """The most that the headers of a request may amount to."""
    request_s: Annotated[float, seconds()] = 30.0
    """How long a client may take to send its request."""
    sessions: Annotated[int, whole(1, 1_000_000)] = 10_000
    """How many sessions of legacy clients may be open."""
    session_idle_s: Annotated[float, seconds()] = 1800.0
    """How long a session may be idle before it is closed."""
    stream_age_s: Annotated[float, seconds_or_off()] = math.inf
    """How long a stream may go on over one connection: clients that know how to take another
    then do. For proxies that cut streams after a fixed time."""
    drain_s: Annotated[float, seconds(or_zero=True)] = 10.0
    """How long calls may take to finish once the gateway was told to stop."""
    answer_s: Annotated[float, seconds()] = 600.0
    """How long a client, or the person at it, may take to answer what a server asks in a call."""
    rounds: Annotated[int, whole(1, 1000)] = 10
    """How often a server may ask in one call. Client libraries stop answering after 10."""
    parked: Annotated[int, whole(1, 100_000)] = 128
    """How many calls of a server may wait for answers of their clients."""
    parked_per_principal: Annotated[int, whole(1, 100_000)] = 64
    """How many of those may be one principal's."""
    parked_call_bytes: Annotated[int, size_bytes(KIB, GIB)] = 4 * MIB
    """The most that is kept for one of them: its questions, or the answer it did not wait for."""
    parked_total_bytes: Annotated[int, size_bytes(KIB, 64 * GIB)] = 64 * MIB
    """The same for all calls of all servers together."""
    processes: Annotated[int, whole(1, 100_000)] = 256
    """How many processes there may be for clients that do not share one, over all servers."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Names(Section):
    """How tools are named towards clients."""

    longest: Annotated[int, whole(16, 64)] = 50
    """The most characters of an exposed name; clients add their own prefix, and stop at 64."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Log(Section):
    """The gateway's own log, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important lines to show."""
    format: Literal["auto", "text", "json"] = "auto"
    """auto = readable on a terminal, JSON otherwise."""


def _one_or_many(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


def _off(value: object) -> object:
    return None if value == "off" else value


ENDPOINT, ADMIN = Address("127.0.0.1", 8765), Address("127.0.0.1", 8766)

_Listen = Annotated[
    tuple[ListenAddress, ...],
    SOME,
    Before(
        _one_or_many,
        {"anyOf": [ADDRESS_SCHEMA, {"type": "array", "items": ADDRESS_SCHEMA, "minItems": 1}]},
    ),
]
_Admin = Annotated[
    ListenAddress | None,
    Before(_off, {"anyOf": [ADDRESS_SCHEMA, {"const": "off"}]}),
]


@dataclass(frozen=True, kw_only=True, repr=False)
class Config(Section):
    """Configuration of onegate."""

    listen: _Listen = (ENDPOINT,)
    """Where clients connect: HOST:PORT, unix:PATH, or a list of them."""
    admin: _Admin = ADMIN
    """Where metrics, health and the operator's commands are served, or `off`."""
    servers: Mapping[ServerName, AnyServer] = field(default_factory=dict)
    """The MCP servers behind the gateway, by name."""
    tools: tuple[ToolRule, ...] = ()
    """Rules for tools, most important first."""
    default_decision: _DefaultDecision = "allow"
    """What happens to a tool for which no rule decides."""
    legacy_sse: Annotated[bool, FLAG] = False
    """Whether to serve `/sse` and `/messages` as well, for clients of 2024-11-05."""
    allowed_hosts: tuple[Host, ...] = ()
    """Further names under which clients reach the gateway (the `Host` header)."""
    allowed_origins: tuple[Origin, ...] = ()
    """Web pages that may use the gateway (the `Origin` header)."""
    auth: Annotated[Auth, Before(_auth_of)] = field(default_factory=Auth)
    """Who may use the endpoint: `none`, or `tokens`. Beyond loopback it must be given."""
    calls: Annotated[Calls, Before(_calls_of)] = field(default_factory=Calls)
    """The record: one line for each call."""
    limits: Limits = field(default_factory=Limits)
    """Bounds on what clients and servers may send, hold open and take."""
    names: Names = field(default_factory=Names)
    """How tools are named towards clients."""
    log: Log = field(default_factory=Log)
    """The gateway's own log, on standard error."""
    watch: Annotated[bool, FLAG] = False
    """Whether to read this file again by itself when its content has changed."""
    instructions: Text | None = None
    """What to tell clients' models about this gateway, before the servers' own instructions."""
