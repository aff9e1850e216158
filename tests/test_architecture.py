"""The rules of the house, as tests: a rule nobody runs is a wish.

The checkers run as tests too, so that pytest is the whole gate. That each of them sees a violation
is shown in test_architecture_violations.py.
"""

import subprocess
from pathlib import Path

import pytest

from tests.kit.checkers import CHECKERS, check
from tests.kit.house import RULES, Module, misplaced, modules, unmapped

ROOT = Path(__file__).parents[1]
MODULES = list(modules(ROOT))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("checker", CHECKERS)
def test_the_checkers_find_nothing(checker: str) -> None:
    found = check(checker, ROOT)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path)
def test_a_module_keeps_the_rules_of_the_house(module: Module) -> None:
    wrong = [f"{module.path}:{line}: {words}" for rule in RULES for line, words in rule(module)]
    assert not wrong, "\n".join(wrong)


def test_the_top_level_of_the_house_holds_nothing_else() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    assert not misplaced(path.split("/")[0] for path in listed.stdout.splitlines())


def test_the_map_of_the_house_shows_every_package() -> None:
    assert not unmapped(ROOT)
