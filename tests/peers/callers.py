"""The clients of the matrix: how to start each, what it speaks, and what it can't be asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.kit.processes import ROOT
from tests.peers import install

FIRST, LEGACY, MODERN = "2024-11-05", "2025-11-25", "2026-07-28"


@dataclass(frozen=True, slots=True)
class Cannot:
    """Why a step is impossible for a client, and what it sees instead with each server."""

    because: str
    instead: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Caller:
    """A program that takes steps, its mode, and the revision it has to speak then."""

    program: Callable[[], list[str]]
    mode: str
    revision: str
    path: str = "/mcp"
    cannot: Mapping[str, Cannot] = field(default_factory=dict)
    """By step: all that are not here have to pass."""

    def command(self, url: str) -> list[str]:
        """How to start it, for the gateway whose endpoint is `url`."""
        return [*self.program(), url.removesuffix("/mcp") + self.path, self.mode]


def _python(environment: str, module: str = "steps") -> Callable[[], list[str]]:
    return lambda: [install.python(environment), "-m", f"tests.peers.clients.{module}"]


def _typescript() -> list[str]:
    return [install.node(), str(ROOT / "tests" / "peers" / "clients" / "steps.mjs")]


# 2025-06-18, changelog: the revisions before it cannot have what came with it. Servers are told at
# their start that this client has no elicitation, and some then have no tool for it.
NO_ELICITATION = Cannot(
    "Add support for elicitation, enabling servers to request additional information from users "
    "during interactions.",
    {
        "everything": "MCP error -32602: Tool trigger-elicitation-request not found",
        "everything-http": "MCP error -32602: Tool trigger-elicitation-request not found",
        "everything-sse": "MCP error -32602: Tool trigger-elicitation-request not found",
        "mcp-1": "This client cannot be asked elicitation/create",
        "mcp-2": "Client did not declare the form elicitation capability",
    },
)

CALLERS = {
    "mcp-first": Caller(
        _python("mcp-first", "steps_first"), "", FIRST, "/sse", {"elicit": NO_ELICITATION}
    ),
    "mcp-1": Caller(_python("mcp-1"), "1", LEGACY),
    "mcp-2-legacy": Caller(_python("mcp-2"), "legacy", LEGACY),
    "mcp-2-auto": Caller(_python("mcp-2"), "auto", MODERN),
    "mcp-2-modern": Caller(_python("mcp-2"), MODERN, MODERN),
    "fastmcp-legacy": Caller(_python("mcp-2", "steps_fastmcp"), "legacy", LEGACY),
    "fastmcp-auto": Caller(_python("mcp-2", "steps_fastmcp"), "auto", MODERN),
    "fastmcp-modern": Caller(_python("mcp-2", "steps_fastmcp"), MODERN, MODERN),
    "sdk-1": Caller(_typescript, "1", LEGACY),
    "sdk-2-legacy": Caller(_typescript, "legacy", LEGACY),
    "sdk-2-auto": Caller(_typescript, "auto", MODERN),
    "sdk-2-modern": Caller(_typescript, MODERN, MODERN),
}
