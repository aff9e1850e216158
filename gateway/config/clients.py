"""Read a client's own `mcpServers` file as a configuration.

What a client's file says for the client alone is left out with a warning; what means the same
under another name is renamed. Nearly right names of our own keys are left for the model to
refuse: `comand` is a slip in every file. Works on the tree, before `${...}` is replaced: a key
that is not used must not fail for a variable that is not set.
"""

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from gateway.config.complaints import Finding
from gateway.config.document import Entry, Node, Path
from gateway.config.model import Config
from gateway.config.shape import EveryServer, fields_of, nearest
from gateway.config.texts import LONGEST_NAME, SERVER_NAME

LOCAL_KINDS = ("stdio", "local", "command")

REMOTE_KINDS = {
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
    "sse": "sse",
}
"""What clients call the transports, and what we do."""

URL_KEYS = ("url", "serverUrl", "httpUrl", "uri")

_RENAMED = {
    "envFile": "env_file",
    "envVars": "env_inherit",
    "env_vars": "env_inherit",
    "http_headers": "headers",
    **dict.fromkeys(URL_KEYS, "url"),
}
_SWITCHES = ("enabled", "isActive")
_TOOL_FILTERS = {
    "alwaysAllow",
    "autoApprove",
    "trust",
    "tools",
    "includeTools",
    "excludeTools",
    "disabledTools",
    "enabled_tools",
    "disabled_tools",
}
_TIMES = {
    "timeout",
    "initTimeout",
    "connectionTimeout",
    "startup_timeout_sec",
    "tool_timeout_sec",
    "request_timeout_ms",
    "sse_read_timeout",
}
_OTHER = {"description", "name", "version", "icon", "iconPath", "startup", "type", "protocolEra"}
_NOT_USED = "a client's setting, not used here"
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Adapted:
    """The tree in the shape of the model, and what there is to say about it."""

    root: Node
    findings: tuple[Finding, ...]
    renamed: Mapping[str, str]
    """Servers by the name they have here, with the one in the file, where that is no name."""


def adapt(root: Node) -> Adapted:
    """Bring a tree whose root is a mapping into the shape of the model."""
    assert isinstance(root.value, dict)
    findings: list[Finding] = []
    entries = {
        key: entry
        for key, entry in root.value.items()
        if key != "$schema" and not key.startswith("x-")
    }
    from_client = "mcpServers" in entries
    if from_client and "servers" in entries:
        said = "given beside `servers`, of which it is another name; keep one"
        findings.append(Finding(("mcpServers",), said, at_key=True))
        del entries["mcpServers"]
        from_client = False
    if from_client:
        entries = {
            "servers" if key == "mcpServers" else key: entry
            for key, entry in entries.items()
            if key == "mcpServers" or _is_ours(key, fields_of(Config), (key,), findings)
        }
    servers = entries.get("servers")
    renamed: dict[str, str] = {}
    if servers is not None and isinstance(servers.node.value, dict):
        named = servers.node.value
        if from_client:
            named = dict(_named(named, renamed, findings))
        kept = dict(_servers(named, from_client, findings))
        entries["servers"] = Entry(servers.key, _like(servers.node, kept))
    return Adapted(_like(root, entries), tuple(findings), renamed)


def _named(
    servers: Mapping[str, Entry], renamed: dict[str, str], findings: list[Finding]
) -> Iterator[tuple[str, Entry]]:
    """The servers of a client's file by names that can be used here: clients take any text."""
    for written, entry in servers.items():
        if re.fullmatch(SERVER_NAME, written):
            yield written, entry
            continue
        name = _fit_name(written, servers.keys() | renamed.keys())
        renamed[name] = written
        said = f"called `{name}` here: names are of A-Z a-z 0-9 _ and -, and {LONGEST_NAME} long"
        findings.append(Finding(("servers", name), said, at_key=True, severity="warning"))
        yield name, entry


def _fit_name(written: str, taken: Container[str]) -> str:
    """Of `github.com/them/their-server`, the last part."""
    name = _fit(written.rstrip("/").rpartition("/")[2]) or _fit(written) or "server"
    more = (f"{name[: LONGEST_NAME - 4]}-{number}" for number in count(2))
    return name if name not in taken else next(one for one in more if one not in taken)


def _fit(text: str) -> str:
    words = re.sub("__+", "_", _UNFIT.sub("-", text)).strip("_-")
    return words[:LONGEST_NAME].rstrip("_-")


def _servers(
    servers: Mapping[str, Entry], from_client: bool, findings: list[Finding]
) -> Iterator[tuple[str, Entry]]:
    for name, entry in servers.items():
        section = entry.node.value
        path: Path = ("servers", name)
        if not isinstance(section, dict):
            yield name, entry
            continue
        if from_client:
            section = _client_server(section, path, findings)
        if "command" in section and "url" in section:
            said = "given beside `command`: a server is either started or reached; keep one"
            findings.append(Finding((*path, "url"), said, at_key=True))
            section = {key: held for key, held in section.items() if key != "url"}
        yield name, Entry(entry.key, _like(entry.node, section))


def _client_server(
    section: Mapping[str, Entry], path: Path, findings: list[Finding]
) -> dict[str, Entry]:
    kept: dict[str, Entry] = {}
    for key, entry in section.items():
        if key in _SWITCHES:
            off = entry.node.value is False
            kept.setdefault("disabled", Entry(entry.key, Node(entry.node.span, off, str(off))))
        elif key in _RENAMED:
            kept.setdefault(_RENAMED[key], entry)
        elif key in ("type", "transport"):
            if (kind := _kind(entry)) is not None and "command" not in section:
                kept.setdefault("transport", kind)
        elif _is_ours(key, fields_of(EveryServer), (*path, key), findings):
            kept[key] = entry
    return kept


def _kind(entry: Entry) -> Entry | None:
    """The transport a client's file names, in our words; None for pipes."""
    said = entry.node.text
    if said in LOCAL_KINDS:
        return None
    ours = REMOTE_KINDS.get(said, said)
    return Entry(entry.key, Node(entry.node.span, ours, ours))


def _is_ours(key: str, ours: Mapping[str, object], path: Path, findings: list[Finding]) -> bool:
    """Whether the model should judge a key; otherwise a warning says that it is not used."""
    if key in ours:
        return True
    listed = key in _TOOL_FILTERS or key in _TIMES or key in _OTHER
    if not listed and nearest(key, ours) is not None:
        return True
    said = _NOT_USED
    if key in _TIMES:
        said += "; `timeout` in a rule under `tools` bounds calls"
    elif key in _TOOL_FILTERS:
        said += "; `decision` in a rule under `tools` allows and denies"
    findings.append(Finding(path, said, at_key=True, severity="warning"))
    return False


def _like(node: Node, entries: dict[str, Entry]) -> Node:
    return Node(node.span, entries, node.text, node.size, node.height)
