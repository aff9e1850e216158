"""The clients of the matrix: how to start each, what it speaks, and what it can't be asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.kit.processes import ROOT
from tests.peers import install

FIRST, EARLY, MIDDLE = "2024-11-05", "2025-03-26", "2025-06-18"
LEGACY, MODERN = "2025-11-25", "2026-07-28"


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
    """By step. What is not here, or with a server that is not there, has to pass."""

    def command(self, url: str) -> list[str]:
        """How to start it, for the gateway whose endpoint is `url`."""
        return [*self.program(), url.removesuffix("/mcp") + self.path, self.mode]


def _python(environment: str, module: str = "steps") -> Callable[[], list[str]]:
    return lambda: [install.python(environment), "-m", f"tests.peers.clients.{module}"]


def _typescript() -> list[str]:
    return [install.node(), str(ROOT / "tests" / "peers" / "clients" / "steps.mjs")]


EVERYTHING = ("everything", "everything-http", "everything-sse")
# 2025-06-18, changelog: the revisions before it cannot have what came with it. Servers are told at
# their start that this client has no elicitation, and some then have no tool for it.
NO_ELICITATION = Cannot(
    "Add support for elicitation, enabling servers to request additional information from users "
    "during interactions.",
    {
        **dict.fromkeys(EVERYTHING, "MCP error -32602: Tool trigger-elicitation-request not found"),
        "mcp-1": "This client cannot be asked elicitation/create",
        "mcp-2": "Client did not declare the form elicitation capability",
        "fastmcp": "This client cannot be asked elicitation/create",
        "sdk-2": "did not declare the required capability",
    },
)

# 2025-06-18, client/elicitation. These servers ask for several of a list: a form of 2025-11-25.
ONE_OF_EACH = Cannot(
    "To simplify implementation for clients, elicitation schemas are limited to flat objects with "
    "primitive properties only",
    dict.fromkeys(EVERYTHING, "MCP error -32601: This client cannot be asked elicitation/create"),
)

CALLERS = {
    "mcp-first": Caller(
        _python("mcp-first", "steps_first"), "", FIRST, "/sse", {"elicit": NO_ELICITATION}
    ),
    "mcp-early": Caller(
        _python("mcp-early", "steps_early"), "", EARLY, cannot={"elicit": NO_ELICITATION}
    ),
    "mcp-middle": Caller(_python("mcp-middle"), "1", MIDDLE, cannot={"elicit": ONE_OF_EACH}),
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
