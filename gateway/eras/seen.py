"""What a gateway last answered to the questions every client begins with. Pure.

Kept by whoever stands between a client and the gateway, so that the client can begin while
the gateway is away. Results are the bytes they came as.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import Raw

from gateway.protocol import methods
from gateway.protocol.jsonrpc import Fields, Request, raw, shallow

LISTS = {
    methods.LIST_TOOLS: "tools",
    methods.LIST_PROMPTS: "prompts",
    methods.LIST_RESOURCES: "resources",
    methods.LIST_TEMPLATES: "resourceTemplates",
}
"""Method to the member of its result that is the list."""

CHANGED_BY = {
    methods.LIST_TOOLS: "notifications/tools/list_changed",
    methods.LIST_PROMPTS: "notifications/prompts/list_changed",
    methods.LIST_RESOURCES: "notifications/resources/list_changed",
    methods.LIST_TEMPLATES: "notifications/resources/list_changed",
}
"""How clients are told that the answer to this is another one now."""

SHAPES = {
    methods.INITIALIZE: {"capabilities": b"{"},
    methods.DISCOVER: {"capabilities": b"{", "supportedVersions": b"["},
    **{method: {member: b"["} for method, member in LISTS.items()},
}
"""What clients cannot do without in each answer, and how it begins."""

KEPT = frozenset(SHAPES)


@dataclass(slots=True)
class Seen:
    """By revision and method, since revisions differ in what an entry may say."""

    results: dict[str, Raw] = field(default_factory=dict)

    def keep(self, request: Request, revision: str, result: Fields) -> bool:
        """Take an answer in. True if it says something new."""
        if request.method not in KEPT or "cursor" in request.params:
            return False
        key, fresh = f"{revision} {request.method}", raw(result)
        if bytes(self.results.get(key, b"")) == bytes(fresh):
            return False
        self.results[key] = fresh
        return True

    def recall(self, results: Mapping[str, Raw]) -> None:
        """Take in what was kept elsewhere, as far as it is what it should be."""
        for key, held in results.items():
            method, fields = key.partition(" ")[2], shallow(held) or {}
            wanted = SHAPES.get(method, {})
            if wanted and all(bytes(fields.get(k, b""))[:1] == b for k, b in wanted.items()):
                self.results[key] = held

    def find(self, method: str, revision: str) -> Fields | None:
        """What was answered in this revision; else in the newest other one."""
        held = self.results.get(f"{revision} {method}")
        if held is None:
            others = sorted(key for key in self.results if key.endswith(f" {method}"))
            held = self.results[others[-1]] if others else None
        return None if held is None else shallow(held)
