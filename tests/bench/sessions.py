"""What sessions cost that are open and do nothing."""

from contextlib import ExitStack

from tests.bench.conversing import Conversation
from tests.bench.running import Running

FIRST = 10
"""Opened before the first look, so that what is made once is not counted."""


def kb_per_session(gateway: Running, count: int, with_stream: bool) -> float:
    """Growth of resident memory, in KB for each session that has listed the tools and waits."""
    with ExitStack() as kept:
        for _ in range(FIRST):
            _open(gateway, kept, with_stream)
        before = gateway.meter.memory_mb()
        for _ in range(count):
            _open(gateway, kept, with_stream)
        return (gateway.meter.memory_mb() - before) * 1024 / count


def _open(gateway: Running, kept: ExitStack, with_stream: bool) -> None:
    """A client keeps its connection, and a second one if it listens."""
    target = gateway.target()
    conversation = kept.enter_context(Conversation(target))
    session = conversation.open_session()
    conversation.tool_names(session)
    if with_stream:
        more = (f"Mcp-Session-Id: {session.id}", f"MCP-Protocol-Version: {target.revision}")
        listener = kept.enter_context(Conversation(target))
        listener.listen(target.head("GET", *more))
