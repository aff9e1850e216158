"""Find the configuration file, and turn it into a `Config` or into all that is wrong with it."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from gateway.config.check import Which, doubts
from gateway.config.clients import adapt
from gateway.config.complaints import Complaint, ConfigError, Quotes
from gateway.config.document import Marks
from gateway.config.interpolate import Substitution
from gateway.config.judge import judge
from gateway.config.loaded import Loaded, Places
from gateway.config.model import Config, HttpServer
from gateway.config.reading import SecretFile, read_document
from gateway.config.settle import Settling

FILE_NAME = "onegate.yaml"
VARIABLE = "ONEGATE_CONFIG"


def load(path: Path | None, environ: Mapping[str, str], cwd: Path) -> Loaded:
    """Load the file at `path`, or the one that `find` finds.

    Raises `ConfigError` with everything that is wrong with it.
    """
    file = find(path, environ, cwd)
    shown = _shown(file, cwd)
    document = read_document(file, shown)
    adapted = adapt(document.root)
    marks = Marks(document.root, adapted.renamed)
    places = Places(shown, document, marks, Quotes(document))
    secret_file = SecretFile(file.parent, _home(environ))
    settling = Settling(Substitution(environ, secret_file))
    values = settling.mapping(adapted.root)
    config, judged = judge(values, file.parent, _home(environ))
    findings = [
        *adapted.findings,
        *settling.findings,
        *(one for one in judged if not _is_beneath(one.path, settling.failed)),
    ]
    complaints = [places.flaw(flaw) for flaw in document.flaws]
    complaints += [places.complaint(finding) for finding in findings]
    complaints = sorted(complaints, key=_order)
    errors = [one for one in complaints if one.severity == "error"]
    if config is None or errors:
        raise ConfigError(errors)
    secrets = frozenset(settling.substitution.used | set(_secret_values(config)))
    files = frozenset(secret_file.read)
    return Loaded(config, file, marks, tuple(complaints), secrets, places, files)


def examine(loaded: Loaded, which: Which) -> tuple[Complaint, ...]:
    """Everything worth a warning in a configuration that holds, in the order of the file."""
    assert loaded.places is not None
    found = [loaded.places.complaint(finding) for finding in doubts(loaded.config, which)]
    return tuple(sorted([*loaded.warnings, *found], key=_order))


def find(path: Path | None, environ: Mapping[str, str], cwd: Path) -> Path:
    """The file to load: the one given, `ONEGATE_CONFIG`, `./onegate.yaml`, or the user's own.

    Raises `ConfigError` if none is given and none is there.
    """
    if path is not None:
        return cwd / path
    if named := environ.get(VARIABLE):
        if not (cwd / named).exists():
            raise ConfigError([Complaint(VARIABLE, f"names {named}, and there is no such file")])
        return cwd / named
    places = list(_usual_places(environ, cwd))
    for place in places:
        if place.exists():
            return place
    looked = ", ".join(_shown(place, cwd) for place in places)
    raise ConfigError(
        [
            Complaint(
                FILE_NAME,
                f"no configuration found. Looked at {looked}; {VARIABLE} is not set. Write one "
                "(config.example.yaml shows all settings), or use the file of a client you have: "
                "-c PATH/claude_desktop_config.json",
            )
        ]
    )


def _usual_places(environ: Mapping[str, str], cwd: Path) -> Iterator[Path]:
    yield cwd / FILE_NAME
    home = _home(environ)
    folder = environ.get("XDG_CONFIG_HOME") or (home and f"{home}/.config")
    if folder:
        yield Path(folder) / "onegate" / FILE_NAME


def _home(environ: Mapping[str, str]) -> str | None:
    return environ.get("HOME") or environ.get("USERPROFILE")


def _shown(file: Path, cwd: Path) -> str:
    return str(file.relative_to(cwd) if file.is_relative_to(cwd) else file)


def _secret_values(config: Config) -> Iterator[str]:
    """What a section holds that nobody should read."""
    for server in config.servers.values():
        if isinstance(server, HttpServer):
            for value in server.headers.values():
                yield from (value, *value.split()[1:])  # of "Bearer abc", both
        else:
            yield from (value for value in server.env.values() if value)


def _is_beneath(path: tuple[str | int, ...], failed: set[tuple[str | int, ...]]) -> bool:
    return any(path[:length] in failed for length in range(1, len(path) + 1))


def _order(complaint: Complaint) -> tuple[int, int]:
    return complaint.line or 0, complaint.column or 0
