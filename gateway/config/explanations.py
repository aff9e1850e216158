"""What the texts below a section's attributes say of them: they are descriptions in the schema."""

import ast
import inspect
from collections.abc import Iterator, Mapping
from itertools import pairwise

from gateway.config.model import Section, key_of


def explanations(section: type[Section]) -> Mapping[str, str]:
    """By key, those that a section inherits included."""
    return {
        key_of(attribute): text
        for one in reversed(section.__mro__)
        if issubclass(one, Section)
        for attribute, text in _written_in(one)
    }


def _written_in(section: type[Section]) -> Iterator[tuple[str, str]]:
    (made,) = ast.parse(inspect.getsource(section)).body
    assert isinstance(made, ast.ClassDef)
    for attribute, text in pairwise(made.body):
        match attribute, text:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(said))):
                yield name, inspect.cleandoc(said)
