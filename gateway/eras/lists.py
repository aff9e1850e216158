"""Lists kept as bytes: made once for a catalog and a revision, then only sent."""

from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.catalog.catalog import Catalog
from gateway.catalog.entries import Kind
from gateway.eras.shapes import definition
from gateway.protocol.errors import InvalidParams
from gateway.protocol.jsonrpc import Fields, as_bytes
from gateway.protocol.methods import LIST_PROMPTS, LIST_RESOURCES, LIST_TEMPLATES, LIST_TOOLS
from gateway.protocol.revisions import Revision

LISTED = {
    LIST_TOOLS: (Kind.TOOL, "tools"),
    LIST_PROMPTS: (Kind.PROMPT, "prompts"),
    LIST_RESOURCES: (Kind.RESOURCE, "resources"),
    LIST_TEMPLATES: (Kind.TEMPLATE, "resourceTemplates"),
}
"""Method to kind and member of the result."""


@dataclass(slots=True)
class Lists:
    offered: Callable[[], Catalog]
    extra: Fields
    """What else each result of this era carries."""
    _of: Catalog | None = None
    _made: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def result(self, method: str, revision: Revision, params: Fields) -> bytes:
        """The whole result, as JSON. One page: a cursor is never ours, so it is refused."""
        if "cursor" in params:
            raise InvalidParams("Unknown cursor: this list has one page")
        offered = self.offered()
        if offered is not self._of:
            self._of, self._made = offered, {}
        made = self._made.get((method, revision.name))
        if made is None:
            kind, member = LISTED[method]
            items = [definition(kind, entry.definition, revision) for entry in offered.of(kind)]
            made = as_bytes({member: items, **self.extra})
            self._made[method, revision.name] = made
        return made
