"""A Dockerfile as data, and what is wrong with one: the checks a person would make."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

WORDS = {
    *("ARG", "FROM", "RUN", "COPY", "ENV", "LABEL", "WORKDIR", "USER", "EXPOSE", "HEALTHCHECK"),
    *("ENTRYPOINT", "CMD", "VOLUME", "STOPSIGNAL"),
}
SECRET = re.compile(r"(?i)pass|secret|token|key\b|credential")
FETCHED_AND_RUN = re.compile(r"(curl|wget)[^|]*\|\s*(ba)?sh")


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction: the word, its `--flags`, and the rest."""

    line: int
    word: str
    rest: str
    flags: tuple[str, ...] = ()

    def flag(self, name: str) -> str | None:
        found = [each.partition("=")[2] for each in self.flags if each.startswith(f"--{name}=")]
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Stage:
    image: str
    name: str
    steps: tuple[Step, ...]

    def of(self, word: str) -> list[Step]:
        return [step for step in self.steps if step.word == word]


def steps(text: str) -> list[Step]:
    """Every instruction, continued lines joined, comments left out."""
    found: list[Step] = []
    parts: list[str] = []
    began = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or (not parts and not line.strip()):
            continue
        began = began if parts else number
        parts.append(line.strip().removesuffix("\\").strip())
        if not line.rstrip().endswith("\\"):
            found.append(_step(began, " ".join(parts)))
            parts = []
    return found


def _step(line: int, text: str) -> Step:
    word, _, rest = text.partition(" ")
    flags: list[str] = []
    while word in ("COPY", "HEALTHCHECK", "RUN", "FROM") and rest.startswith("--"):
        flag, _, rest = rest.partition(" ")
        flags.append(flag)
    return Step(line, word, rest.strip(), tuple(flags))


def stages(text: str) -> list[Stage]:
    """The stages, with the defaults of arguments before them put in."""
    arguments: dict[str, str] = {}
    grouped: list[tuple[Step, list[Step]]] = []
    for step in steps(text):
        if step.word == "FROM":
            grouped.append((step, []))
        elif grouped:
            grouped[-1][1].append(step)
        else:
            name, _, value = step.rest.partition("=")
            arguments[name] = value
    made = []
    for start, inside in grouped:
        image, _, name = start.rest.partition(" AS ")
        filled = re.sub(r"\$\{(\w+)\}", lambda found: arguments[found[1]], image)
        made.append(Stage(filled, name, tuple(inside)))
    return made


def context(root: Path, ignore: str) -> set[str]:
    """The files of a folder that a build gets to see. Patterns: those this project uses."""
    patterns = [each for line in ignore.splitlines() if (each := line.partition("#")[0].strip())]
    seen = set[str]()
    tops = {line.removeprefix("!").split("/")[0] for line in patterns if line.startswith("!")}
    for top in tops:
        files = [root / top] if (root / top).is_file() else (root / top).rglob("*")
        seen |= {file.relative_to(root).as_posix() for file in files if file.is_file()}
    return {file for file in seen if not _ignored(file, patterns)}


def _ignored(file: str, patterns: list[str]) -> bool:
    """The last pattern that fits decides, as for Docker."""
    ignored = False
    parents = ["/".join(file.split("/")[:n]) for n in range(1, file.count("/") + 2)]
    for pattern in patterns:
        glob = pattern.removeprefix("!")
        fits = any(
            fnmatchcase(parent, glob)
            or (glob.startswith("**/") and parent.split("/")[-1] == glob[3:])
            for parent in parents
        )
        ignored = not pattern.startswith("!") if fits else ignored
    return ignored


def complaints(text: str, files: set[str]) -> list[str]:
    """What is wrong with a Dockerfile whose build sees these files."""
    found = stages(text)
    return [words for rule in RULES for words in rule(found, files)]


Rule = Callable[[list[Stage], set[str]], Iterator[str]]


def known_words(found: list[Stage], _: set[str]) -> Iterator[str]:
    for step in (step for stage in found for step in stage.steps):
        if step.word not in WORDS:
            yield f"{step.line}: {step.word} is not to be used"


def images_are_pinned(found: list[Stage], _: set[str]) -> Iterator[str]:
    for stage in found:
        tag = stage.image.partition(":")[2]
        if not re.match(r"\d+\.\d+\.\d+", tag):
            yield f"{stage.image} is no pinned image"


def copies_have_sources(found: list[Stage], files: set[str]) -> Iterator[str]:
    earlier = set[str]()
    for stage in found:
        for step in stage.of("COPY"):
            origin = step.flag("from")
            if origin is not None:
                if origin not in earlier:
                    yield f"{step.line}: there is no stage {origin} before"
                continue
            for source in step.rest.split()[:-1]:
                if not any(file == source or file.startswith(f"{source}/") for file in files):
                    yield f"{step.line}: {source} is not in the build's context"
        earlier.add(stage.name)


def nobody_is_root(found: list[Stage], _: set[str]) -> Iterator[str]:
    users = [step.rest for step in found[-1].of("USER")]
    if not users or not re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1]):
        yield "the last USER must be a number that is not 0, so that Kubernetes can check it"


def programs_start_without_a_shell(found: list[Stage], _: set[str]) -> Iterator[str]:
    last = found[-1]
    for word in ("ENTRYPOINT", "CMD", "HEALTHCHECK"):
        given = last.of(word)
        if len(given) != 1:
            yield f"{word}: wanted once"
            continue
        try:
            argv = json.loads(given[0].rest.removeprefix("CMD ").strip())
        except ValueError:
            argv = None
        if not isinstance(argv, list):
            yield f"{given[0].line}: {word} must be a JSON list, or signals end at a shell"


def installs_are_clean(found: list[Stage], _: set[str]) -> Iterator[str]:
    for step in (step for stage in found for step in stage.of("RUN")):
        if FETCHED_AND_RUN.search(step.rest):
            yield f"{step.line}: what is fetched is not run unseen"
        if "apt-get install" in step.rest and not (
            "--no-install-recommends" in step.rest
            and "apt-get update &&" in step.rest
            and "rm -rf /var/lib/apt/lists/*" in step.rest
        ):
            yield f"{step.line}: apt-get: update, without recommends, and clean up, in one step"
        for requirement in re.findall(r"pip install (?:--\S+ )*([a-z][\w.=-]*)", step.rest):
            if "==" not in requirement:
                yield f"{step.line}: {requirement} is not pinned"
        if subprocess.run(["sh", "-nc", step.rest], capture_output=True).returncode:
            yield f"{step.line}: not shell"


def no_secrets_inside(found: list[Stage], _: set[str]) -> Iterator[str]:
    for step in (step for stage in found for step in stage.steps):
        if step.word in ("ENV", "ARG") and SECRET.search(step.rest):
            yield f"{step.line}: a secret would stay in the image"


def folders_are_absolute(found: list[Stage], _: set[str]) -> Iterator[str]:
    for step in (step for stage in found for step in stage.of("WORKDIR")):
        if not step.rest.startswith("/"):
            yield f"{step.line}: {step.rest} depends on what was before"


RULES: tuple[Rule, ...] = (
    *(known_words, images_are_pinned, copies_have_sources, nobody_is_root),
    *(programs_start_without_a_shell, installs_are_clean, no_secrets_inside, folders_are_absolute),
)
