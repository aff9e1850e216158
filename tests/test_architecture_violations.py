"""Every rule of the house fails on a violation: each is planted in a copy and must be found."""

import shutil
from pathlib import Path

import pytest

from tests.kit.checkers import check
from tests.kit.house import complaints, misplaced, unmapped

ROOT = Path(__file__).parents[1]
SAID = '"""Said."""\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The smallest house: the checkers' settings and an empty package."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "gateway", tmp_path / "gateway", ignore=all_but_packages)
    return tmp_path


def all_but_packages(folder: str, names: list[str]) -> set[str]:
    return {
        name
        for name in names
        if name == "__pycache__" or (name != "__init__.py" and (Path(folder) / name).is_file())
    }


def plant(tree: Path, path: str, source: str) -> None:
    file = tree / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)


HOUSE = {
    "too long": ("calls/call.py", SAID + "#\n" * 400, "401 lines"),
    "unexplained": ("calls/call.py", "X = 1\n", "no docstring"),
    "a vague file": ("calls/helpers.py", SAID, "names nothing"),
    "a vague folder": ("utils/call.py", SAID, "names nothing"),
    "a vague class": ("calls/call.py", SAID + "class CallManager: ...\n", "vague name"),
    "a base class": ("calls/call.py", SAID + "class BaseCall: ...\n", "vague name"),
    "undone": ("calls/call.py", SAID + "x = 1  # TODO: later\n", "finish it"),
    "ignored silently": ("calls/call.py", SAID + "x = 1  # noqa: E501\n", "needs its reason"),
    "untyped silently": ("a.py", SAID + "x = 1  # type: ignore[misc]\n", "needs its reason"),
    "a full package": ("calls/__init__.py", SAID + "from a import b\n", "an __init__ holds"),
    "a full top": ("__init__.py", SAID + '__version__ = "1"\nx = 1\n', "an __init__ holds"),
    "an era": ("policy/rules.py", SAID + "x = Era.MODERN\n", "an era is named"),
    "a broad except": (
        "calls/call.py",
        SAID + "try:\n    x = 1\nexcept (OSError, Exception):\n    x = 2\n",
        "may catch everything",
    ),
    "a bare except": (
        "calls/call.py",
        SAID + "try:\n    x = 1\nexcept:\n    x = 2\n",
        "may catch everything",
    ),
    "a broad suppress": (
        "calls/call.py",
        SAID + "with contextlib.suppress(Exception):\n    x = 1\n",
        "may catch everything",
    ),
    "a task of the loop": ("a.py", SAID + "get_running_loop().create_task(x)\n", "create_task"),
    "a task where exempt": ("config/environ.py", SAID + "asyncio.create_task(x)\n", "create_task"),
    "the environment": ("calls/call.py", SAID + "x = os.environ\n", "read it"),
    "a global": ("a.py", SAID + "def f() -> None:\n    global x\n    x = 1\n", "no global state"),
    "a private name": ("a.py", SAID + "from gateway.b import _c\n", "private to gateway.b"),
    "another word": ("a.py", SAID + "upstream_url = 1\n", "`downstream`"),
    "a prose event": ("a.py", SAID + 'log.info("it has started")\n', "noun.past"),
    "a formatted event": ("a.py", SAID + 'log.info(f"server.{x}")\n', "noun.past"),
}


@pytest.mark.parametrize("case", HOUSE)
def test_a_rule_of_the_house_sees_its_violation(tree: Path, case: str) -> None:
    path, source, words = HOUSE[case]
    assert not complaints(tree)

    plant(tree, f"gateway/{path}", source)

    found = complaints(tree)
    assert any(words in each and each.startswith(f"gateway/{path}:") for each in found), found


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def test_it() -> None:\n    f()\n", "asserts nothing"),
        ("def test_it() -> None:\n    time.sleep(1)\n    assert f()\n", "wait for a condition"),
        ("class CallHelper: ...\n", "vague name"),
    ],
)
def test_a_rule_for_tests_sees_its_violation(tree: Path, source: str, words: str) -> None:
    plant(tree, "tests/calls/test_call.py", source)
    found = complaints(tree)
    assert [words in each for each in found] == [True], found


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("edge/endpoint.py", "try:\n    x = 1\nexcept Exception:\n    x = 2\n"),
        ("calls/call.py", "try:\n    x = 1\nexcept BaseException:\n    x = 2\n    raise\n"),
        ("eras/legacy/inbound.py", "x = Era.LEGACY\n"),
        ("config/environ.py", "x = os.environ\n"),
        ("a.py", "# Windows has none\nx = None  # type: ignore[misc]\n"),
        (
            "../tests/test_a.py",
            "def test_a() -> None:\n    while f():\n        sleep(1)\n    assert 1",
        ),
        (
            "../tests/test_a.py",
            "def test_a() -> None:\n    sleep(1)  # nothing may come\n    assert 1",
        ),
        (
            "../tests/test_a.py",
            "from tests.a.clock import run\ndef test_a() -> None:\n    sleep(1)\n    assert 1",
        ),
        ("a.py", 'x = 1  # noqa: E501  (a table is read across)\nlog.info("server.started")\n'),
    ],
)
def test_what_the_rules_of_the_house_allow_passes(tree: Path, path: str, source: str) -> None:
    plant(tree, f"gateway/{path}", SAID + source)
    assert not complaints(tree)


def test_the_top_level_is_a_closed_list() -> None:
    assert misplaced(["gateway", ".ci", "src", "requirements.txt"]) == {"src", "requirements.txt"}


def test_a_package_missing_from_the_map_is_seen(tree: Path) -> None:
    plant(tree, "gateway/tunnel/__init__.py", SAID)
    assert unmapped(tree) == {"tunnel"}


RUFF = {
    "E501": "x = " + "1 + " * 30 + "1\n",
    "F401": "import json\n",
    "BLE001": "try:\n    x = 1\nexcept Exception:\n    x = 2\n",
    "C901": "def f(x: int) -> int:\n" + "    if x:\n        x += 1\n" * 11 + "    return x\n",
    "PLR0913": "def f(a: int, b: int, c: int, d: int, e: int, g: int, h: int) -> None: ...\n",
    "PLC0415": "def f() -> None:\n    import json\n\n    json.dumps(1)\n",
    "TID251": "import asyncio\n\nasyncio.create_task(f())\n",
    "TID252": "from . import a\n",
    "T201": 'print("x")\n',
    "ERA001": "# x = f(1)\n",
    "PGH003": "x = 1  # type: ignore\n",
}


def test_ruff_sees_each_kind_of_violation(tree: Path) -> None:
    for code, source in RUFF.items():
        plant(tree, f"gateway/calls/bad_{code.lower()}.py", SAID + "\n" + source)
    plant(tree, "gateway/calls/bad_d100.py", "X = 1\n")

    said = check("ruff", tree).stdout

    missed = [
        code
        for code in (*RUFF, "D100")
        if not any(f"bad_{code.lower()}" in line and code in line for line in said.splitlines())
    ]
    assert not missed, said


def test_a_command_alone_may_import_what_it_needs_when_it_runs(tree: Path) -> None:
    plant(tree, "gateway/cli/lazy.py", SAID + "\n\n" + RUFF["PLC0415"])
    found = check("ruff", tree)
    assert found.returncode == 0, found.stdout


def test_the_formatter_sees_another_layout(tree: Path) -> None:
    assert check("format", tree).returncode == 0
    plant(tree, "gateway/calls/call.py", SAID + "x = {'a':1}\n")
    assert check("format", tree).returncode == 1


@pytest.mark.timeout(300)
def test_mypy_is_strict(tree: Path) -> None:
    plant(tree, "gateway/calls/call.py", SAID + "def untyped(x):\n    return x\n")
    plant(tree, "gateway/calls/wrong.py", SAID + 'x: int = "one"\n')
    said = check("mypy", tree, "gateway/calls").stdout
    assert "[no-untyped-def]" in said
    assert "[assignment]" in said


CONTRACTS = {
    "Layers": ("calls/call.py", "import gateway.downstream.link\n"),
    "Eras never meet": ("eras/modern/inbound.py", "import gateway.eras.legacy.sessions\n"),
    "Pure core": ("catalog/catalog.py", "import asyncio\n"),
    "aiohttp stays": ("policy/rules.py", "import aiohttp\n"),
    "What serves does not": ("edge/listener.py", "import pydantic\n"),
    "Only observe": ("downstream/link.py", "import prometheus_client\n"),
    "The demo stands alone": ("edge/endpoint.py", "import gateway.demo.dice\n"),
}


@pytest.fixture
def house(tree: Path) -> Path:
    """A tree in which every contract has something to hold on to, and holds."""
    needed = ("eras/legacy/sessions.py", "demo/dice.py", "downstream/link.py", "app.py")
    for path in (*needed, "config/outcome.py", "config/load.py"):
        plant(tree, f"gateway/{path}", SAID)
    return tree


@pytest.mark.timeout(120)
def test_each_import_contract_breaks_when_provoked(house: Path) -> None:
    kept = check("imports", house).stdout
    assert "0 broken" in kept, kept
    for path, source in CONTRACTS.values():
        plant(house, f"gateway/{path}", SAID + source)

    lines = check("imports", house).stdout.splitlines()

    for name in CONTRACTS:
        assert any(line.startswith(name) and line.endswith("BROKEN") for line in lines), lines


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("tunnel/__init__.py", SAID),
        ("demo/dice.py", SAID + "import gateway.protocol\n"),
        ("edge/endpoint.py", SAID + "import gateway.downstream.link\n"),
        ("calls/call.py", SAID + "def f() -> None:\n    import gateway.policy\n"),
    ],
    ids=["an unplaced package", "a demo that leans", "siblings that meet", "a lazy import"],
)
def test_the_layers_hold_in_every_direction(house: Path, path: str, source: str) -> None:
    plant(house, f"gateway/{path}", source)
    lines = check("imports", house).stdout.splitlines()
    assert any(line.startswith("Layers") and line.endswith("BROKEN") for line in lines), lines
