"""The rules of the house that no off-the-shelf checker knows, as functions over a source tree.

Each rule takes one parsed module and yields what is wrong with it. `complaints(root)` applies them
all to a tree, so that tests can try them on a planted violation as well as on the real thing.
"""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

CEILING = 400
"""Lines in a file. More than that is two files."""

TOP_LEVEL = {
    *("pyproject.toml", "README.md", "config.example.yaml", "Makefile", "CHANGELOG.md", "LICENSE"),
    *("gateway", "tests", "deploy", "docs"),
}
VAGUE_FILES = {"utils", "util", "helpers", "helper", "common", "misc", "base", "core", "types"}
VAGUE_CLASS = re.compile(r"(^Base[A-Z])|(Manager|Helper|Utils?|Service|Processor|Factory|Impl)$")
UNDONE = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
IGNORED = re.compile(r"#\s*(?:noqa(?::\s*[A-Z0-9, ]+)?|type:\s*ignore(?:\[[\w, -]+\])?)(.*)")
EVENT = re.compile(r"^[a-z_]+\.[a-z_]+$")
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}

MAY_CATCH_EVERYTHING = {
    "gateway/edge/endpoint.py": "a bug in one request must not close the connection",
    "gateway/edge/direct.py": "the same, in what is around the endpoint",
    "gateway/downstream/supervise.py": "a bug in one server must not end the others",
    "gateway/observe/sinks.py": "a record that cannot be written must not fail its call",
}
MAY_OWN_TASKS = {
    "gateway/edge/direct.py": "a connection owns the task of its request, and shutdown ends all",
}
MAY_NAME_AN_ERA = {
    "gateway/protocol/": "eras are defined there",
    "gateway/eras/": "and told apart there",
    "gateway/downstream/server.py": "a server has a process for each era, chosen for each call",
}
MAY_READ_THE_ENVIRONMENT = {"gateway/config/environ.py", "gateway/downstream/environment.py"}
UNOWNED = {"asyncio.create_task", "asyncio.ensure_future", "asyncio.wait_for", "logging.getLogger"}


@dataclass(frozen=True, slots=True)
class Module:
    """One source file: its place in the tree (with forward slashes), its text and its syntax."""

    path: str
    text: str
    tree: ast.Module

    @property
    def is_product(self) -> bool:
        return self.path.startswith("gateway/")


def modules(root: Path) -> Iterator[Module]:
    """Every Python file under `gateway/` and `tests/` of a tree."""
    for folder in ("gateway", "tests"):
        for file in sorted((root / folder).rglob("*.py")):
            text = file.read_text()
            yield Module(file.relative_to(root).as_posix(), text, ast.parse(text))


def complaints(root: Path) -> list[str]:
    """What is wrong with a tree, as `path:line: words`."""
    return [
        f"{module.path}:{line}: {words}"
        for module in modules(root)
        for rule in RULES
        for line, words in rule(module)
    ]


def misplaced(names: Iterable[str]) -> set[str]:
    """Of the names at the top level, those that have no business there."""
    return {name for name in names if name not in TOP_LEVEL and not name.startswith(".")}


def unmapped(root: Path) -> set[str]:
    """Packages and modules of the gateway that the map in its docstring does not show."""
    text = ast.get_docstring(ast.parse((root / "gateway/__init__.py").read_text())) or ""
    drawn = set(re.findall(r"^ {4}(\w+) ", text, re.MULTILINE))
    inside = {file.stem for file in (root / "gateway").glob("*.py")}
    inside |= {file.parent.name for file in (root / "gateway").glob("*/__init__.py")}
    return inside - drawn - {"__init__", "__main__"}


# -- the rules ------------------------------------------------------------------------------

Complaint = tuple[int, str]


def small(module: Module) -> Iterator[Complaint]:
    lines = module.text.count("\n")
    if lines > CEILING:
        yield lines, f"{lines} lines are more than {CEILING}: split the file"


def explained(module: Module) -> Iterator[Complaint]:
    if module.is_product and not ast.get_docstring(module.tree):
        yield 1, "no docstring: say what this module is for"


def precisely_named(module: Module) -> Iterator[Complaint]:
    path = PurePosixPath(module.path)
    for part in (*path.parts[1:-1], path.stem):
        if part in VAGUE_FILES:
            yield 1, f"{part!r} names nothing: say what is inside"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef) and VAGUE_CLASS.search(node.name):
            yield node.lineno, f"{node.name!r} is a vague name: use the plain noun"


def finished(module: Module) -> Iterator[Complaint]:
    for line, comment in _comments(module):
        if UNDONE.search(comment):
            yield line, "finish it, or file an issue"


def ignores_with_reason(module: Module) -> Iterator[Complaint]:
    """The reason stands behind it, or in a comment on the line above."""
    explained_at = 0
    for line, comment in _comments(module):
        found = IGNORED.search(comment)
        if found is None or re.search(r"\w", found[1]) or line == explained_at + 1:
            explained_at = line
        elif module.is_product:
            yield line, "an ignored check needs its reason beside it"


def packages_hold_nothing(module: Module) -> Iterator[Complaint]:
    """Every name has one import path. The top package alone holds `__version__`."""
    if not module.is_product or not module.path.endswith("/__init__.py"):
        return
    for node in module.tree.body[1:]:
        version = module.path == "gateway/__init__.py" and isinstance(node, ast.Assign)
        if not version or ast.unparse(node).split(" ")[0] != "__version__":
            yield node.lineno, "an __init__ holds a docstring and nothing else"


def eras_in_their_place(module: Module) -> Iterator[Complaint]:
    """Ask the object, not the era."""
    if not module.is_product or module.path.startswith(tuple(MAY_NAME_AN_ERA)):
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "Era":
            yield node.lineno, "an era is named outside protocol/ and eras/: ask the object"


def nothing_caught_blindly(module: Module) -> Iterator[Complaint]:
    """Cleaning up and raising again is no catching: nothing is lost."""
    if not module.is_product or module.path in MAY_CATCH_EVERYTHING:
        return
    for node in ast.walk(module.tree):
        caught: list[ast.expr | None] = []
        if isinstance(node, ast.ExceptHandler) and not _raises_again(node):
            caught = list(node.type.elts) if isinstance(node.type, ast.Tuple) else [node.type]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            caught = list(node.args)
        if any(each is None or ast.unparse(each) in BROAD for each in caught):
            assert isinstance(node, ast.ExceptHandler | ast.Call)
            yield (
                node.lineno,
                "few may catch everything: see MAY_CATCH_EVERYTHING",
            )


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


BROAD = {"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"}


def tasks_have_owners(module: Module) -> Iterator[Complaint]:
    """What ruff's banned names cannot see: methods of the loop, and files with an exemption."""
    if not module.is_product:
        return
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Attribute):
            continue
        name = ast.unparse(node)
        of_loop = (
            node.attr == "create_task"
            and "loop" in ast.unparse(node.value)
            and module.path not in MAY_OWN_TASKS
        )
        if of_loop or name in UNOWNED:
            yield node.lineno, f"{name} is not used here: see pyproject.toml for what is"


def environment_read_in_two_places(module: Module) -> Iterator[Complaint]:
    if not module.is_product or module.path in MAY_READ_THE_ENVIRONMENT:
        return
    for node in ast.walk(module.tree):
        names = {"os.environ", "os.environb", "os.getenv"}
        if isinstance(node, ast.Attribute) and ast.unparse(node) in names:
            yield node.lineno, "only config/environ.py and downstream/environment.py read it"


def nothing_global(module: Module) -> Iterator[Complaint]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Global):
            yield node.lineno, "no global state: build the thing complete, from its own section"


def private_means_this_module(module: Module) -> Iterator[Complaint]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gateway"):
            for each in node.names:
                if each.name.startswith("_") and not each.name.startswith("__"):
                    yield node.lineno, f"{each.name} is private to {node.module}"


def one_word_for_servers(module: Module) -> Iterator[Complaint]:
    if not module.is_product:
        return
    for token in _tokens(module):
        if token.type == tokenize.NAME and "upstream" in token.string.lower():
            yield token.start[0], f"{token.string!r}: the servers we call are `downstream`"


def events_are_noun_past(module: Module) -> Iterator[Complaint]:
    if not module.is_product:
        return
    for node in ast.walk(module.tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if ast.unparse(node.func.value).lstrip("_") != "log" or node.func.attr not in LEVELS:
            continue
        first = node.args[0] if node.args else None
        if isinstance(first, ast.JoinedStr | ast.BinOp) or (
            isinstance(first, ast.Constant) and not EVENT.match(str(first.value))
        ):
            yield node.lineno, "a log event is `noun.past`; values are fields"


def tests_see_something(module: Module) -> Iterator[Complaint]:
    """A test asserts, expects an exception, or hands over to something named for doing so."""
    for node in _tests(module):
        calls = [ast.unparse(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)]
        asserts = any(isinstance(each, ast.Assert) for each in ast.walk(node))
        if not asserts and not any(SEES.search(name) for name in calls):
            yield node.lineno, f"{node.name} asserts nothing"


def tests_never_sleep(module: Module) -> Iterator[Complaint]:
    """A pause of fixed length is too short on one machine and too long on all others.

    Polling in a loop is none, nor is one under a clock of the test's own. Where it has to be (to
    see that nothing happens), its line says why.
    """
    if re.search(r"^from [\w.]+\.clock import", module.text, re.MULTILINE):
        return
    reasons = {line for line, _ in _comments(module)}
    for test in _tests(module):
        loops = [node for node in ast.walk(test) if isinstance(node, ast.While)]
        polling = {id(node) for loop in loops for node in ast.walk(loop)}
        for node in ast.walk(test):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) not in SLEEPS:
                continue
            zero = [ast.unparse(each) for each in node.args] == ["0"]
            if not zero and id(node) not in polling and node.lineno not in reasons:
                yield node.lineno, "wait for a condition (tests.kit.waiting), or say why not"


SEES = re.compile(r"(^|[._])(assert|check|expect|eventually|raises|warns|wait)")
SLEEPS = {"time.sleep", "asyncio.sleep", "sleep"}


def _tests(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    if not module.path.startswith("tests/"):
        return
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("test_"):
            yield node


def _tokens(module: Module) -> Iterator[tokenize.TokenInfo]:
    return tokenize.generate_tokens(io.StringIO(module.text).readline)


def _comments(module: Module) -> Iterator[tuple[int, str]]:
    for token in _tokens(module):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


RULES: tuple[Callable[[Module], Iterator[Complaint]], ...] = (
    *(small, explained, precisely_named, finished, ignores_with_reason, packages_hold_nothing),
    *(eras_in_their_place, nothing_caught_blindly, tasks_have_owners, nothing_global),
    *(environment_read_in_two_places, private_means_this_module, one_word_for_servers),
    *(events_are_noun_past, tests_see_something, tests_never_sleep),
)
