"""The part of a gateway that a new configuration replaces, in one assignment."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from gateway.config.loaded import Loaded
from gateway.config.model import AnyServer, Config
from gateway.policy.rules import Rules


@dataclass(slots=True)
class Current:
    """What holds now. A call keeps the verdict it was given; the next one asks anew."""

    loaded: Loaded
    rules: Rules
    only: frozenset[str] | None = None
    """The servers to run, if not all."""

    @classmethod
    def of(cls, loaded: Loaded, only: frozenset[str] | None = None) -> "Current":
        return cls(loaded, rules_of(loaded), only)

    @property
    def config(self) -> Config:
        return self.loaded.config

    @property
    def servers(self) -> Mapping[str, AnyServer]:
        """The servers that should run."""
        return {
            name: section
            for name, section in self.config.servers.items()
            if not section.disabled and (self.only is None or name in self.only)
        }

    @property
    def prefixes(self) -> Mapping[str, str]:
        return {n: n if s.prefix is None else s.prefix for n, s in self.config.servers.items()}


def rules_of(loaded: Loaded) -> Rules:
    config = loaded.config
    return Rules(config.tools, config.default_decision, config.servers, partial(_where, loaded))


def _where(loaded: Loaded, path: tuple[str | int, ...]) -> str:
    """FILE:LINE of a setting, for whoever wonders where a limit comes from."""
    line = loaded.marks.line_of(path)
    return "default" if line is None else f"{loaded.file.name}:{line}"
