"""Say how a server's process is started: which program, which arguments, which environment.

A child does not get the gateway's own environment: secrets of other servers and of the
gateway may be in it. It gets what programs commonly need, what the configuration names,
and what the configuration gives. Everything is looked up anew at every start, so that
an installed program or a changed file is found by the next try.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path

from gateway.config.model import StdioServer
from gateway.downstream.env_file import parse_env, read_text

DEFAULT_LINE_BYTES = 16 * 2**20

INHERITED = (
    *("PATH", "HOME", "LOGNAME", "USER", "SHELL", "TERM", "LANG", "LANGUAGE", "LC_*", "TZ"),
    *("TMPDIR", "XDG_*"),
    # Behind a corporate proxy nothing that downloads works without these (both spellings are read).
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
    *("http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    # Without these few programs start on Windows.
    *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA"),
    *("PROCESSOR_ARCHITECTURE", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP"),
    *("USERNAME", "USERPROFILE", "WINDIR"),
)
"""Names and globs that every child inherits; `env_inherit` adds to them."""

OURS = "ONEGATE_*"
"""Never inherited, whatever `env_inherit` says: the gateway's own settings and secrets."""

SHORTEST_SECRET = 6
"""Shorter values are words and numbers; redacting them would make messages unreadable."""

_SECRET_NAME = re.compile(r"(?i)pass|pwd|secret|token|key|auth|cred|cookie|session|dsn|private")
_PLAIN_VALUE = re.compile(r"(?i)[~./\\]|[a-z]:[/\\]|\d+$|true$|false$")
_SECRET_OPTION = re.compile(r"(?i)--?[\w-]*(?:pass|pwd|secret|token|key|auth|cred)[\w-]*(?:=(.+))?")


class CannotStart(Exception):
    """A process could not be started. `permanent`: trying again soon will not help."""

    def __init__(self, message: str, *, permanent: bool) -> None:
        super().__init__(message)
        self.message = message
        self.permanent = permanent


@dataclass(frozen=True, slots=True)
class Program:
    """What to execute: a file, its environment, and which texts must not be shown."""

    path: str
    env: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start one server. `line_bytes` bounds one message of it; see `limits.line`.

    The environment is `env`, over it what `env_file` holds, over that `env_over`.
    """

    server: str
    argv: tuple[str, ...] = field(repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)
    line_bytes: int = DEFAULT_LINE_BYTES
    env_file: Path | None = None
    env_over: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        name: str,
        section: StdioServer,
        environ: Mapping[str, str],
        line_bytes: int = DEFAULT_LINE_BYTES,
    ) -> "Launch":
        """What the configuration says of a server; `environ` is the gateway's environment."""
        return cls(
            server=name,
            argv=(section.command, *section.args),
            env=inherited(environ, section.env_inherit),
            cwd=section.cwd,
            secrets=tuple(_secret_arguments(section.args)),
            line_bytes=line_bytes,
            env_file=section.env_file,
            env_over=dict(section.env),
        )

    def program(self) -> Program:
        """Look everything up, now. Raises `CannotStart` for what is missing."""
        if self.cwd is not None and not self.cwd.is_dir():
            what = "is not a folder" if self.cwd.exists() else "does not exist"
            raise CannotStart(f"its working folder (cwd) {self.cwd} {what}", permanent=True)
        given = {**_read_env_file(self.env_file), **self.env_over}
        env = {**self.env, **given}
        path = find_program(self.argv, env, self.cwd)
        return Program(path, env, (*self.secrets, *_secret_values(given)))


def inherited(environ: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """The part of `environ` that a child gets. `more`: names or globs beyond the usual."""
    fold = str.upper if os.name == "nt" else str
    wanted = [fold(pattern) for pattern in (*INHERITED, *more)]
    return {
        name: value
        for name, value in environ.items()
        if any(fnmatchcase(fold(name), pattern) for pattern in wanted)
        and not fnmatchcase(name.upper(), OURS)
        and not value.startswith("()")  # a function exported by a shell: code, not a value
    }


def find_program(argv: Sequence[str], env: Mapping[str, str], cwd: Path | None) -> str:
    """The file that `argv[0]` means to the child: its PATH and its folder count, not ours.

    The folder of the running interpreter is searched last, so that `command: python` works
    where PATH has none; it comes first only for the gateway's own modules, which other
    interpreters may not have. Raises `CannotStart`, saying where it looked.
    """
    command, folder = os.path.expanduser(argv[0]), cwd or Path.cwd()
    if os.path.dirname(command):
        return _executable(folder / command)
    ours = os.path.dirname(sys.executable)
    places = [place for place in env.get("PATH", os.defpath).split(os.pathsep) if place]
    places = [ours, *places] if _is_our_module(argv) else [*places, ours]
    searched = os.pathsep.join(str(folder / place) for place in places)
    found = shutil.which(command, path=searched)
    if found is not None:
        return found
    unfit = shutil.which(command, mode=os.F_OK, path=searched)
    if unfit is not None:
        raise CannotStart(f"{unfit} is not executable", permanent=True)
    raise CannotStart(
        f"command {command!r} not found; searched the server's PATH ({searched})"
        f" from {folder}; give the command's full path, or set PATH in the server's env",
        permanent=True,
    )


def _executable(path: Path) -> str:
    if path.is_dir():
        raise CannotStart(f"the command {path} is a folder", permanent=True)
    if not path.exists():
        raise CannotStart(f"the command {path} does not exist", permanent=True)
    if not os.access(path, os.X_OK):
        raise CannotStart(f"the command {path} is not executable", permanent=True)
    return str(path)


def _is_our_module(argv: Sequence[str]) -> bool:
    python, module = re.fullmatch(r"python(3(\.\d+)?)?", argv[0]), argv[1:3]
    return bool(python) and len(module) == 2 and module[0] == "-m" and _is_ours(module[1])


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]


def _read_env_file(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        return parse_env(read_text(path))
    except OSError as error:
        raise CannotStart(f"its env_file {path}: {error.strerror}", permanent=True) from None
    except UnicodeDecodeError:
        raise CannotStart(f"its env_file {path} is not UTF-8", permanent=True) from None
    except ValueError as error:
        raise CannotStart(f"its env_file {path}, {error}", permanent=True) from None


def _secret_values(given: Mapping[str, str]) -> Iterator[str]:
    """What the configuration puts into an environment is secret unless it plainly is not."""
    for name, value in given.items():
        if len(value) >= SHORTEST_SECRET and (
            _SECRET_NAME.search(name) or not _PLAIN_VALUE.match(value)
        ):
            yield value


def _secret_arguments(arguments: Sequence[str]) -> Iterator[str]:
    """Values of options like `--api-key X` and `--token=X`."""
    for argument, following in zip_longest(arguments, arguments[1:], fillvalue="-"):
        option = _SECRET_OPTION.fullmatch(argument)
        if option:
            value = option[1] or following
            if len(value) >= SHORTEST_SECRET and not value.startswith("-"):
                yield value
