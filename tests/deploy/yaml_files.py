"""YAML as other programs read it: plain values, and no key twice."""

from pathlib import Path
from typing import Any

import yaml


class _Strict(yaml.SafeLoader):
    """Refuses what most readers silently lose."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        assert not twice, f"{twice} twice{node.start_mark}"
        return super().construct_mapping(node, deep)


def documents(file: Path) -> list[Any]:
    """Every document of a file."""
    return list(yaml.load_all(file.read_text(), _Strict))
