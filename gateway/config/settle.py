"""Turn the tree of a configuration into plain values for the model: `${...}` replaced.

Empty sections become absent, bare numbers in `args` and `env` become the text they are. What
cannot be settled is said once: `failed` holds its paths, so that the model's complaints about
the gap it leaves can be dropped.
"""

from dataclasses import dataclass, field

from gateway.config.complaints import Finding
from gateway.config.document import Node, Path
from gateway.config.interpolate import Substitution, Unresolved
from gateway.config.shape import is_known, is_required, may_be_empty, takes_text
from gateway.config.units import Substituted


@dataclass(slots=True)
class Settling:
    """Walks one tree. `findings` and `failed` fill up on the way."""

    substitution: Substitution
    findings: list[Finding] = field(default_factory=list)
    failed: set[Path] = field(default_factory=set)

    def mapping(self, node: Node, path: Path = ()) -> dict[str, object]:
        """The values of a mapping, by key. `path` is where it stands."""
        assert isinstance(node.value, dict)
        values: dict[str, object] = {}
        for key, entry in node.value.items():
            here = (*path, key)
            if entry.node.value is None and may_be_empty(here):
                continue
            values[key] = self.value(entry.node, here)
        return values

    def value(self, node: Node, path: Path) -> object:
        """The value of any node."""
        match node.value:
            case dict():
                return self.mapping(node, path)
            case list():
                return [self.value(child, (*path, at)) for at, child in enumerate(node.value)]
            case None if is_known(path):
                hint = '; write "" for an empty text' if takes_text(path) else "; leave it out"
                return self._fail(path, "has no value" + ("" if is_required(path) else hint))
            case str(text):
                return self._text(text, path)
            case scalar if takes_text(path):
                return node.text or str(scalar)
            case scalar:
                return scalar

    def _text(self, text: str, path: Path) -> object:
        try:
            return self.substitution.apply(text)
        except Unresolved as unresolved:
            if not is_known(path):
                return text  # the model will refuse what is around it
            return self._fail(path, str(unresolved))

    def _fail(self, path: Path, problem: str) -> object:
        self.findings.append(Finding(path, problem))
        self.failed.add(path)
        return Substituted("")
