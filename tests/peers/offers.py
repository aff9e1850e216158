"""The servers of the matrix: how to start each, and what every step with it has to show."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.processes import ROOT
from tests.peers import install
from tests.peers.conftest import START_S

SERVERS_OF_OURS = ROOT / "tests" / "peers" / "servers"
Step = tuple[str, Any, Any]
"""The name without its prefix, or the URI; the arguments; what shows then."""


@dataclass(frozen=True, slots=True)
class CannotBe:
    """Why a server has no such thing, and what clients see of it: the step shows that."""

    because: str
    shows: str


# Of what changes, clients wait for the first news. Of a call that is cancelled, for the server to
# have written it down.
NEWS_WITHIN_S = 20
KNOWN = "the server knows"
NOTES: dict[str, Step] = {
    "list": ("add", {}, "add"),
    "call": ("add", {"a": 2, "b": 3}, "5"),
    "progress": ("slow", {"seconds": 0.2}, 9),
    "cancel": ("slow", {"seconds": 60}, KNOWN),
    "read": ("notes://monday/note", {}, "The note of monday."),
    "subscribe": ("notes://today", {"within_s": NEWS_WITHIN_S}, "updated"),
    "prompt": ("greet", {"name": "Ada"}, "Please greet Ada."),
    "complete": ("greet", {"name": "name", "value": "A"}, "Ada"),
    "elicit": ("ask_name", {}, "Hello, Ada!"),
    "sample": ("ask_model", {}, "The model says Bern."),
    "roots": ("ask_roots", {}, "file:///home/ada"),
}
# 2025-11-25, server/resources; 2026-07-28 has the capability likewise. This SDK declares neither.
NO_NEWS = CannotBe(
    "Both `subscribe` and `listChanged` are optional\N{EM DASH}servers can support neither, "
    "either, or both",
    "no update",
)
WITHOUT_NEWS: dict[str, Step] = {**NOTES, "subscribe": ("notes://today", {"within_s": 1}, NO_NEWS)}
EVERYTHING: dict[str, Step] = {
    "list": ("echo", {}, "echo"),
    "call": ("echo", {"message": "hello"}, "hello"),
    "progress": ("trigger-long-running-operation", {"duration": 0.2, "steps": 4}, 4),
    "read": ("demo://resource/dynamic/text/1", {}, "1"),
    "subscribe": ("demo://resource/dynamic/text/1", {"within_s": NEWS_WITHIN_S}, "updated"),
    "prompt": ("args-prompt", {"city": "Bern"}, "Bern"),
    "complete": ("completable-prompt", {"name": "department", "value": "E"}, "Engineering"),
    "elicit": ("trigger-elicitation-request", {}, "provided the requested information"),
    "sample": ("trigger-sampling-request", {"prompt": "Which city?", "maxTokens": 10}, "Bern"),
    "roots": ("get-roots-list", {}, "file:///home/ada"),
    # Last: for a moment after its start the server asks for roots, whatever call is going on. A
    # modern client that gives up while it answers has no way to say so.
    "cancel": ("trigger-long-running-operation", {"duration": 60, "steps": 600}, KNOWN),
}
SERVERS = {
    "everything": EVERYTHING,
    "everything-http": EVERYTHING,
    "everything-sse": EVERYTHING,
    "mcp-1": NOTES,
    "mcp-2": NOTES,
    "fastmcp": WITHOUT_NEWS,
    "sdk-2": NOTES,
}
OF_BOTH_ERAS = ("mcp-2", "fastmcp", "sdk-2")
NEWS_ON_DEMAND = [name for name, steps in SERVERS.items() if steps is EVERYTHING]
WITNESS = "mcp-2__cancelled"
"""Tells how many calls of any of these servers were cancelled, as they write it down."""


def plan() -> list[tuple[str, str, str, Any]]:
    """Every step with every server, under the names that clients see."""
    return [
        (server, what, _exposed(server, target), _told(server, what, arguments))
        for server, steps in SERVERS.items()
        for what, (target, arguments, _) in steps.items()
    ]


def _exposed(server: str, target: str) -> str:
    """Of servers that have the same URI, the first has it as it is."""
    if "://" not in target:
        return f"{server}__{target}"
    having = [name for name, steps in SERVERS.items() if target in {of[0] for of in steps.values()}]
    return target if having[0] == server else f"{server}+{target}"


def _told(server: str, what: str, arguments: Any) -> Any:
    if what != "cancel":
        return arguments
    witness = {"name": WITNESS, "arguments": {"server": server}}
    return {"arguments": arguments, "witness": witness}


def piped(cancelled: Path) -> dict[str, Any]:
    """The sections of those that are started by the gateway. In the folder, each has a file in
    which it writes down what was cancelled."""

    def section(name: str, command: str, *arguments: str, **env: str) -> dict[str, Any]:
        words = {"command": command, "args": list(arguments), "cwd": str(ROOT)}
        env = {**writing(cancelled, name), **env}
        return {**words, "env": env, "start_timeout": f"{START_S}s"}

    def python(name: str, environment: str, module: str) -> dict[str, Any]:
        return section(name, install.python(environment), "-m", f"tests.peers.servers.{module}")

    node, program = install.node(), install.npm_program("mcp-server-everything")
    ours = str(SERVERS_OF_OURS / "with_sdk_2.mjs")
    return {
        "everything": section("everything", node, program, **watched()),
        "mcp-1": python("mcp-1", "mcp-1", "asking_1"),
        "mcp-2": python("mcp-2", "mcp-2", "asking_2"),
        "fastmcp": python("fastmcp", "mcp-2", "asking_fastmcp"),
        "sdk-2": section("sdk-2", node, ours, SDK_2=str(install.sdk_2())),
    }


def writing(cancelled: Path, name: str) -> dict[str, str]:
    """The environment that tells a server where to write down what was cancelled."""
    file = cancelled / name
    file.touch()
    return {"CANCELLED": str(file)}


def watched() -> dict[str, str]:
    """The environment that has a server on the TypeScript SDK 1.x write it down."""
    return {"NODE_OPTIONS": f"--import={(SERVERS_OF_OURS / 'aborted.mjs').as_uri()}"}
