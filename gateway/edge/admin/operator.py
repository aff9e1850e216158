"""What the admin address may ask of the running gateway, and the values it is told in.

`app` implements `Operator`. Nothing here carries an environment or a secret.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

Tell = Callable[[Any], None]
"""Takes what a call says while it runs (`calls.notices.Emitted`); named here, so that commands
which only ask need not load the calls."""


class SecondReport(msgspec.Struct, frozen=True):
    """The process for the clients of a server's second era, from the first of them on."""

    era: str
    state: str
    since: str | None = None
    restarts: int = 0
    last_error: str | None = None


class ServerReport(msgspec.Struct, frozen=True):
    """One configured server, as it is now."""

    name: str
    state: str
    """starting, ready, waiting, failed, stopped, disabled."""
    eras: tuple[str, ...] = ()
    """What it speaks, as far as known: legacy, modern."""
    pids: tuple[int, ...] = ()
    """One process for each era in use, then those that single clients have to themselves."""
    since: str | None = None
    """When it came into this state: RFC 3339, UTC."""
    restarts: int = 0
    tools: int = 0
    prompts: int = 0
    resources: int = 0
    in_flight: int = 0
    """Calls it is working on."""
    waiting: int = 0
    """Calls that wait for a turn, for it or for one of its tools, or for a process of it."""
    parked: int = 0
    """Calls in which it asked something that their clients have yet to answer."""
    last_error: str | None = None
    command: tuple[str, ...] = ()
    """What it is started with, secrets masked; or the origin where it is reached."""
    required: bool = False
    second: SecondReport | None = None
    """What is said of `state`, `since` and `last_error` is the first process's."""


class ToolReport(msgspec.Struct, frozen=True):
    """One tool, denied ones included."""

    name: str
    """As clients see it."""
    server: str
    tool: str
    """As its server knows it."""
    title: str | None = None
    description: str | None = None
    decision: str = "allow"
    rule: str = "default"


class Setting(msgspec.Struct, frozen=True):
    """A setting of a tool, and where it comes from: `FILE:LINE`, or `default`."""

    name: str
    value: str
    source: str


class Explanation(msgspec.Struct, frozen=True):
    """Why a tool is treated as it is."""

    name: str
    server: str
    tool: str
    decision: str
    rule: str
    settings: tuple[Setting, ...] = ()


class Check(msgspec.Struct, frozen=True):
    """One thing readiness depends on; `reason` says what is missing."""

    name: str
    ok: bool
    reason: str | None = None


class Readiness(msgspec.Struct, frozen=True):
    ok: bool
    checks: tuple[Check, ...] = ()


class CallFilter(msgspec.Struct, frozen=True):
    """Which records to show; None: any."""

    server: str | None = None
    tool: str | None = None
    outcome: str | None = None


class Operator(Protocol):
    """The running gateway, as its operator sees it. Nothing blocks the loop."""

    def servers(self) -> Sequence[ServerReport]: ...
    def tools(self) -> Sequence[ToolReport]: ...
    def explain(self, name: str) -> Explanation | None: ...

    def calls(self, last: int, only: CallFilter) -> Sequence[Any]:
        """The newest `last` records that fit, oldest first; each encodes as a JSON object."""

    def totals(self) -> Sequence[Any]:
        """Every tool that was called in the last hour, with counts and latencies."""

    def series(self, tool: str) -> Any:
        """One tool over the last hour, minute by minute."""

    async def call(
        self, name: str, arguments: Mapping[str, Any], emit: Tell | None = None
    ) -> Mapping[str, Any]:
        """Call a tool as the operator: `{"result": …}` or `{"error": {code, message}}`. `emit`
        is told of progress."""

    async def reload(self) -> Any:
        """Read the configuration again: what came of it, as JSON, `ok` among it."""

    def ready(self) -> Readiness: ...

    async def metrics(self, accept: str) -> tuple[bytes, str]:
        """The metrics page and its content type, OpenMetrics if `accept` asks for it."""
