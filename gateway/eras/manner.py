"""How an era uses HTTP, as far as the transport below has to know.

The transport carries messages; which headers go with them, whether there is a session, and
what a broken stream means are facts of the era.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gateway.protocol import methods
from gateway.protocol.headers import BadAnnotation, HeaderParam, header_params
from gateway.protocol.jsonrpc import Fields, Message, Request, elements, shallow, value

HARMLESS = frozenset(
    {
        methods.DISCOVER,
        methods.LIST_TOOLS,
        methods.LIST_PROMPTS,
        methods.LIST_RESOURCES,
        methods.LIST_TEMPLATES,
        methods.READ_RESOURCE,
        methods.GET_PROMPT,
        methods.COMPLETE,
        methods.GET_TASK,
        methods.TASK_RESULT,
    }
)
"""Requests that only read: sent twice they do what they do once."""


@dataclass(slots=True)
class Learnt:
    """What a server's list of tools says that matters over HTTP. One for all connections to
    a server, of either era: not each of them reads the list."""

    mirrored: dict[str, tuple[HeaderParam, ...]] = field(default_factory=dict)
    """By tool: the arguments that are repeated in headers."""
    repeatable: set[str] = field(default_factory=set)
    """Tools that say they may be called twice for one purpose."""

    def page(self, listed: Fields, *, first: bool) -> None:
        """Take in one page of `tools/list`; the first replaces what was known."""
        if first:
            self.mirrored, self.repeatable = {}, set()
        for tool in map(shallow, elements(listed.get("tools")) or ()):
            name = value(tool, "name") if tool else None
            if tool and isinstance(name, str):
                self._take(name, tool)

    def _take(self, name: str, tool: Fields) -> None:
        try:
            if params := header_params(tool):
                self.mirrored[name] = params
        except BadAnnotation:
            return  # the catalog leaves it out, and says why
        annotations = shallow(tool.get("annotations")) or {}
        if any(value(annotations, hint) is True for hint in ("readOnlyHint", "idempotentHint")):
            self.repeatable.add(name)

    def may_repeat(self, request: Request) -> bool:
        """Whether this may be sent again though it may have been served already."""
        if request.method == methods.CALL_TOOL:
            return value(request.params, "name") in self.repeatable
        return request.method in HARMLESS


class Manner(Protocol):
    """One connection's way of using HTTP."""

    learnt: Learnt
    session: str | None
    """The session this connection stands for, where the server gave it one."""

    @property
    def opens(self) -> bool:
        """The conversation opens with a handshake; the rest waits for its end. It may be
        resumed, and there may be a stream for what belongs to no request."""

    @property
    def leaving_cancels(self) -> bool:
        """Closing the stream of a request cancels it; otherwise a message does."""

    def headers(self, message: Message | None) -> dict[str, str]:
        """What goes with this message; None: with a request that carries none."""

    def begun(self, request: Request, headers: Mapping[str, str]) -> None:
        """Learn from the head of an answer, which may take more than one stream to come."""

    def answered(self, request: Request, headers: Mapping[str, str], result: Fields) -> None:
        """Learn from the answer to a request that tells something about the conversation."""


TELLING = frozenset({methods.INITIALIZE, methods.LIST_TOOLS})
"""Requests whose answers go to `answered`."""
