"""Replace `${...}` in the texts of a configuration, after parsing and once only.

`${VAR}`, `${env:VAR}` (as some clients write it), `${VAR:-default}` (also when VAR is empty),
`${file:PATH}` (one trailing line break removed), `$$` for `$`. What came in is never looked at
again: a secret that contains `${X}` stays as it is. Any other `$` is plain text.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gateway.config.units import Substituted

_REFERENCE = re.compile(r"\$(?:(?P<escape>\$)|\{(?P<inside>[^}]*)(?P<close>\}?))")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


class Unresolved(Exception):
    """A reference that stands for nothing. The message names it, never a value."""


@dataclass(frozen=True, slots=True)
class Substitution:
    """Where values come from, and which ones were used (`used`: treat all of them as secrets)."""

    environ: Mapping[str, str] = field(repr=False)
    read_file: Callable[[str], str]
    """The text of a file for `${file:PATH}`; raises `Unresolved`."""
    used: set[str] = field(default_factory=set, repr=False)

    def apply(self, text: str) -> str:
        """The text with every reference replaced. Raises `Unresolved`.

        A `Substituted` if anything came from outside, so that it can count as a number.
        """
        if "$" not in text:
            return text
        came_in = False

        def replace(found: re.Match[str]) -> str:
            nonlocal came_in
            if found["escape"]:
                return "$"
            if not found["close"]:
                raise Unresolved("`${` without `}`; write `$${` for the text itself")
            came_in = True
            value = self._value(found["inside"])
            if value:
                self.used.add(value)
            return value

        replaced = _REFERENCE.sub(replace, text)
        return Substituted(replaced) if came_in else replaced

    def _value(self, inside: str) -> str:
        if inside.startswith("file:"):
            return self.read_file(inside.removeprefix("file:"))
        found = _VARIABLE.fullmatch(inside)
        if found is None:
            raise Unresolved(
                "expected ${VAR}, ${VAR:-default} or ${file:PATH}; write `$${` for the text itself"
            )
        name, default = found[1], found[2]
        value = self.environ.get(name)
        if default is not None:
            return value or default
        if value is None:
            raise Unresolved(f"{name} is not set; set it, or write ${{{name}:-default}}")
        return value
