"""The files of the corpus, and how each is read: the surroundings are the same for all."""

from pathlib import Path

from gateway.config.complaints import ConfigError
from gateway.config.document import Node
from gateway.config.load import load
from gateway.config.loaded import Loaded
from gateway.config.model import Config, HttpServer, StdioServer

CORPUS = Path(__file__).parent / "corpus"

ENVIRON = {
    "HOME": "/home/ann",
    "TOKEN": "canary-from-outside",
    "EIGHT": "8",
    "EMPTY": "",
}
"""What `${...}` finds. Whatever is called canary must never be seen in an error."""


def files_of(folder: str) -> list[Path]:
    """The configurations of a folder; `.txt` beside one is the error that people read."""
    return sorted(file for file in (CORPUS / folder).iterdir() if file.suffix != ".txt")


def load_file(file: Path) -> Loaded:
    return load(file, ENVIRON, file.parent)


def error_of(file: Path) -> str:
    """What a person reads when this file is loaded."""
    try:
        load_file(file)
    except ConfigError as error:
        return f"{error}\n"
    raise AssertionError(f"{file.name} was accepted")


def load_text(text: str | bytes, folder: Path, name: str = "onegate.yaml") -> Loaded:
    """Load a configuration given as text, from a file in `folder`."""
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return load(file, ENVIRON, folder)


def error_of_text(text: str | bytes, folder: Path, name: str = "onegate.yaml") -> str:
    try:
        load_text(text, folder, name)
    except ConfigError as error:
        return str(error)
    raise AssertionError("this was accepted")


def program(config: Config, name: str) -> StdioServer:
    """The section of a server that is started."""
    section = config.servers[name]
    assert isinstance(section, StdioServer)
    return section


def elsewhere(config: Config, name: str) -> HttpServer:
    """The section of a server that is reached over HTTP."""
    section = config.servers[name]
    assert isinstance(section, HttpServer)
    return section


def plain(node: Node) -> object:
    """The values of a tree as other readers see them: nothing replaced, nothing left out."""
    if isinstance(node.value, dict):
        return {key: plain(entry.node) for key, entry in node.value.items()}
    if isinstance(node.value, list):
        return [plain(child) for child in node.value]
    return node.value
