"""Compiled policy. One question, one answer: what holds for this caller and this entry?

Listing and calling both ask here, so a tool a caller may not call is one it cannot see.
"""

import fnmatch
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from gateway.calls.call import Caller, Limit, Verdict
from gateway.catalog import naming
from gateway.catalog.catalog import Catalog
from gateway.catalog.entries import OWN, Entry, Kind
from gateway.config.model import Decision, Server, ToolRule, key_of
from gateway.policy import phrases
from gateway.policy.spellings import spellings
from gateway.protocol.jsonrpc import Fields

DEFAULT = "default"
KEPT = 16_384
"""Verdicts remembered; more than that at once are not needed, names of old catalogs are."""

_LIMITS = {
    "timeout_s": "timeout",
    "longest_s": "longest",
    "concurrency": "concurrency",
    "queue": "queue",
    "background_s": "background",
}
"""Attribute of a rule to that of a verdict."""
_SETTINGS = ("decision", *_LIMITS, "rate")


class Turns(msgspec.Struct, frozen=True):
    """How many calls may run at a time, and how many may wait for a turn."""

    concurrency: Limit
    queue: Limit


class Explained(NamedTuple):
    """One setting that holds for an entry: its value in words, and where it comes from."""

    setting: str
    value: str
    source: str


class _Given(NamedTuple):
    """A setting as some rule gives it."""

    value: Any
    source: str
    pattern: str = DEFAULT


class _Rule(NamedTuple):
    pattern: str
    match: re.Pattern[str]
    given: Mapping[str, _Given]


class Rules:
    """For each setting the first rule that matches and gives it wins.

    Rules are about tools. Of prompts and resources they can only `deny` (a glob over a
    prompt's exposed name, or a URI); limits in time are then the defaults.
    """

    def __init__(
        self,
        tools: Sequence[ToolRule],
        default_decision: Decision,
        servers: Mapping[str, Server],
        where: Callable[[tuple[str | int, ...]], str] = lambda path: DEFAULT,
    ) -> None:
        """`where` tells the FILE:LINE of a setting, given its path in the configuration."""
        self._rules = tuple(_compiled(number, rule, where) for number, rule in enumerate(tools))
        self._default = default_decision
        self._default_source = where(("default_decision",))
        self._prefixes = {
            name: name if server.prefix is None else server.prefix
            for name, server in servers.items()
        }
        self.turns: Mapping[str, Turns] = dict(_turns(servers, where))
        """Of the servers that have a bound of their own."""
        self._known: dict[Kind, dict[str, tuple[Entry, Verdict]]] = {kind: {} for kind in Kind}
        self._offered: tuple[Catalog, Catalog] | None = None

    @property
    def go_on(self) -> bool:
        """Whether any call may go on in the background."""
        return any(
            rule.given["background_s"].value < math.inf
            for rule in self._rules
            if "background_s" in rule.given
        )

    @property
    def patterns(self) -> frozenset[str]:
        """Every word that can stand as the rule of a verdict."""
        return frozenset(rule.pattern for rule in self._rules) | {DEFAULT}

    def verdict(self, caller: Caller | None, entry: Entry) -> Verdict:
        """What holds for this entry. The same for every caller as yet."""
        table = self._known[entry.route.kind]
        known = table.get(entry.name)
        if known is not None and (known[0] is entry or _same(known[0], entry)):
            return known[1]
        if len(table) >= KEPT:
            table.clear()
        verdict = self._judged(entry)
        table[entry.name] = (entry, verdict)
        return verdict

    def offer(self, catalog: Catalog) -> Catalog:
        """The catalog as callers may see it, without what is denied. One catalog is offered
        as one object, so that what is derived from it can be kept."""
        if self._offered is None or self._offered[0] is not catalog:
            offered = catalog.keep(lambda e: self.verdict(None, e).allowed)
            self._offered = (catalog, offered.amend(self._amended) if self.go_on else offered)
        return self._offered[1]

    def _amended(self, entry: Entry) -> Fields:
        """A tool whose call may end with a handle promises no shape of its result: clients
        hold results against the schema, and would refuse the handle."""
        if self.verdict(None, entry).background is None:
            return entry.definition
        return {k: held for k, held in entry.definition.items() if k != "outputSchema"}

    def explain(self, entry: Entry) -> list[Explained]:
        """Every setting that holds for this entry, with the place it was set at."""
        verdict = self.verdict(None, entry)
        decision = self._decision(entry)
        pairs = [
            Explained("decision", decision.value, decision.source),
            _explained("timeout", verdict.timeout, phrases.duration),
            _explained("longest", verdict.longest, phrases.duration),
            _explained("concurrency", verdict.concurrency, _count),
            _explained("queue", verdict.queue, _count),
            _explained("rate", verdict.rate, lambda count: phrases.rate(count, verdict.per_s)),
        ]
        if verdict.background is not None:
            pairs.append(_explained("background", verdict.background, _after))
        turns = self.turns.get(entry.route.server)
        if turns is not None:
            pairs.append(_explained("concurrency of the server", turns.concurrency, _count))
            pairs.append(_explained("queue of the server", turns.queue, _count))
        return pairs

    def _judged(self, entry: Entry) -> Verdict:
        decision, first = self._decision(entry), self._limits(entry)
        given: dict[str, Any] = {
            field: Limit(float(first[setting].value), first[setting].source)
            for setting, field in _LIMITS.items()
            if setting in first
        }
        if given.get("background") and given["background"].value == math.inf:
            del given["background"]
        if "rate" in first:
            rate, source, _ = first["rate"]
            given |= {"rate": Limit(float(rate.count), source), "per_s": float(rate.per_s)}
        return Verdict(allowed=decision.value == "allow", rule=decision.pattern, **given)

    def _limits(self, entry: Entry) -> Mapping[str, _Given]:
        if entry.route.kind is not Kind.TOOL:
            return {}
        first = self._first_given(self._names(entry))
        if entry.route.server == OWN:  # it only waits: that takes nobody's turn
            return {setting: held for setting, held in first.items() if setting == "rate"}
        return first

    def _decision(self, entry: Entry) -> _Given:
        if entry.route.kind is Kind.TOOL:
            first = self._first_given(self._names(entry))
            if entry.route.server == OWN:
                return first.get("decision") or _Given("allow", DEFAULT)
            return first.get("decision") or _Given(self._default, self._default_source)
        found = _Given("allow", DEFAULT)
        for names in self._spelt(entry):
            given = self._first_given(names).get("decision", found)
            if given.value == "deny":
                return given
            found = given
        return found

    def _spelt(self, entry: Entry) -> Iterator[tuple[str, ...]]:
        """Each of these must be allowed: a URI may be written in many ways for one thing, and
        is only as free as the template it came through."""
        if entry.route.kind is Kind.PROMPT:
            yield self._names(entry)
            return
        for uri in spellings(entry.name, entry.route.name):
            yield (uri,)
        if entry.template is not None:
            yield (entry.template,)

    def _names(self, entry: Entry) -> tuple[str, ...]:
        """The exposed name, and the whole of it where that had to be cut or cleaned: a rule
        for `*_force` must not miss a tool whose name was too long."""
        server = entry.route.server
        whole = naming.joined(self._prefixes.get(server, server), entry.route.name)
        return (entry.name,) if whole == entry.name else (entry.name, whole)

    def _first_given(self, names: Iterable[str]) -> dict[str, _Given]:
        found: dict[str, _Given] = {}
        for rule in self._rules:
            if any(rule.match.match(name) for name in names):
                found = {**rule.given, **found}
        return found


def _compiled(number: int, rule: ToolRule, where: Callable[[tuple[str | int, ...]], str]) -> _Rule:
    given = {
        setting: _Given(value, where(("tools", number, key_of(setting))), rule.match)
        for setting in _SETTINGS
        if (value := getattr(rule, setting)) is not None
    }
    return _Rule(rule.match, re.compile(fnmatch.translate(rule.match)), given)


def _turns(
    servers: Mapping[str, Server], where: Callable[[tuple[str | int, ...]], str]
) -> Iterator[tuple[str, Turns]]:
    for name, server in servers.items():
        if server.concurrency is not None:
            yield (
                name,
                Turns(
                    Limit(server.concurrency, where(("servers", name, "concurrency"))),
                    Limit(server.queue, where(("servers", name, "queue"))),
                ),
            )


def _same(one: Entry, other: Entry) -> bool:
    """Whether they are judged alike; a name may pass to another entry with the next catalog."""
    return one.route == other.route and one.template == other.template


def _explained(setting: str, limit: Limit | None, words: Callable[[float], str]) -> Explained:
    if limit is None:
        return Explained(setting, "no bound", DEFAULT)
    return Explained(setting, words(limit.value), limit.source)


def _after(value: float) -> str:
    return f"after {phrases.duration(value)}"


def _count(value: float) -> str:
    return f"{value:.0f}"
