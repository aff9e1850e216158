"""Read files into what the configuration is made of: documents, and texts for `${file:PATH}`.

Everything that can be wrong with a file as a file is said here, in one line each.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from gateway.config.complaints import Complaint, ConfigError, quote_unread
from gateway.config.document import Document, Flaw, Unreadable
from gateway.config.from_json import read_json
from gateway.config.from_yaml import read_yaml
from gateway.config.interpolate import Unresolved

LARGEST_BYTES = 8 * 2**20
"""A thousand servers are a fifth of a megabyte; what is larger is not a configuration."""

LARGEST_SECRET_BYTES = 64 * 2**10
"""For `${file:PATH}`: keys and certificates are a few kilobytes."""

_BREAK = re.compile("\r\n|[\n\r]")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_GAP = r"(?:\s|//[^\r\n]*|/\*.*?\*/)*"
_JSON_HEAD = re.compile(_GAP + r"\{" + _GAP + '["}]', re.DOTALL)


def read_document(file: Path, shown: str) -> Document:
    """The document in a file; its root is a mapping. `shown` is what errors call the file.

    Raises `ConfigError`.
    """
    document = _document(_text(_read(file, shown), shown), file, shown)
    if document.root.value is None:
        raise ConfigError([_empty(shown)])
    if not isinstance(document.root.value, dict):
        span = document.root.span
        said = "expected a mapping at the top, with `servers` (or `mcpServers`) in it"
        raise ConfigError([Complaint(shown, said, (), span.line, span.column)])
    return document


def _read(file: Path, shown: str) -> bytes:
    try:
        with file.open("rb") as opened:
            data = opened.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        problem = "there is no such file; config.example.yaml shows what to write"
    except IsADirectoryError:
        problem = f"is a folder; name the file in it, such as {shown}/onegate.yaml"
    except PermissionError:
        problem = "may not be read by this user"
    except OSError as error:
        problem = f"cannot be read: {error.strerror or type(error).__name__}"
    else:
        if len(data) <= LARGEST_BYTES:
            return data
        problem = f"is larger than {LARGEST_BYTES // 2**20} MiB; is it a configuration?"
    raise ConfigError([Complaint(shown, problem)])


def _text(data: bytes, shown: str) -> str:
    """The text, without a byte order mark. Raises `ConfigError` if it is not UTF-8."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ConfigError([Complaint(shown, "is UTF-16; save it as UTF-8")])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        said = f"is not UTF-8 (byte 0x{data[error.start]:02X} here); save it as UTF-8"
        raise ConfigError([Complaint(shown, said, (), line, column)]) from None
    if found := _FORBIDDEN.search(text):
        before_text = _BREAK.split(text[: found.start()])
        said = f"holds a control character (U+{ord(found[0]):04X})"
        place = (len(before_text), len(before_text[-1]) + 1)
        raise ConfigError([Complaint(shown, said, (), *place)])
    return text


def _document(text: str, file: Path, shown: str) -> Document:
    """Read as JSON what is named so or looks so, everything else as YAML."""
    named_json = file.suffix.lower() in {".json", ".jsonc"}
    looks_json = _JSON_HEAD.match(text) is not None
    if not text.strip():
        raise ConfigError([_empty(shown)])
    try:
        return read_json(text) if named_json or looks_json else read_yaml(text)
    except Unreadable as unreadable:
        flaw = unreadable.flaw
    if looks_json and not named_json:
        try:
            return read_yaml(text)  # a YAML flow mapping may begin like JSON
        except Unreadable:
            pass
    raise ConfigError([_unread(flaw, text, shown)]) from None


def _unread(flaw: Flaw, text: str, shown: str) -> Complaint:
    quoted = quote_unread(_BREAK.split(text), flaw.span)
    return Complaint(shown, flaw.problem, (), flaw.span.line, flaw.span.column, quoted)


def _empty(shown: str) -> Complaint:
    return Complaint(shown, "is empty; a configuration names at least its `servers`")


@dataclass(frozen=True, slots=True)
class SecretFile:
    """Reads what `${file:PATH}` stands for."""

    folder: Path
    home: str | None
    read: set[Path] = field(default_factory=set)
    """Every file it was asked for, also those that could not be read."""

    def __call__(self, name: str) -> str:
        if not name:
            raise Unresolved("`${file:}` needs a path")
        path = Path(self.home, name[2:]) if self.home and name.startswith("~/") else Path(name)
        self.read.add(self.folder / path)
        try:
            with (self.folder / path).open("rb") as opened:
                data = opened.read(LARGEST_SECRET_BYTES + 1)
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Unresolved(f"the file {name} is not UTF-8") from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "not a path"
            raise Unresolved(f"the file {name} cannot be read: {why}") from None
        if len(data) > LARGEST_SECRET_BYTES:
            raise Unresolved(f"the file {name} is larger than 64 KiB")
        return text.removesuffix("\n").removesuffix("\r")
