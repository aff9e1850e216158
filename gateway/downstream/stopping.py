"""Stop a server's process, and everything it started.

MCP asks a server to leave by closing its stdin. Who stays is asked by TERM, and then
told by KILL. Signals go to the process group: `npx`, `uvx` and `sh -c` are wrappers, and
killing the wrapper alone orphans the server. Even a wrapper that leaves politely may
leave somebody behind, hence the sweep at the end.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import structlog

log = structlog.get_logger()

KILL_WAIT_S = 2.0
"""After KILL only the kernel can hold a process (a dead disk, say); then it is left to it."""

SWEEP_WAIT_S = 1.0
"""What a wrapper left behind has this long to follow TERM."""

LOOK_EVERY_S = 0.02
"""Nobody tells when the last member of a group has gone."""


class Leaving(Protocol):
    """A child process, as far as stopping it needs one."""

    @property
    def server(self) -> str: ...
    @property
    def group(self) -> "Group": ...
    @property
    def has_exited(self) -> bool: ...
    def close_stdin(self) -> None: ...
    async def wait_exited(self) -> None: ...


class Group:
    """The process group of one child. It is never signalled once it is known to be empty.

    That matters because its number may then belong to somebody else. As long as it has
    members, or its leader has not been waited for, the kernel gives the number to nobody.
    """

    def __init__(self, pgid: int) -> None:
        self.pgid = pgid
        self._gone = False

    def signal(self, number: int) -> None:
        """Send a signal to every member. Does nothing if there is none."""
        if self._gone:
            return
        try:
            os.killpg(self.pgid, number)
        except ProcessLookupError:
            self._gone = True
        except PermissionError:
            # macOS says so of zombies; elsewhere a member changed its user. Nothing to be done.
            pass

    def is_empty(self) -> bool:
        """Whether nobody is left. The leader counts until it has been waited for."""
        self._reap()
        self.signal(0)
        return self._gone

    def _reap(self) -> None:
        """As process 1 of a container the gateway inherits orphans; nobody else waits for them."""
        if os.getpid() != 1:
            return
        with suppress(ChildProcessError):
            while os.waitpid(-self.pgid, os.WNOHANG) != (0, 0):
                pass


async def stop(child: Leaving, grace_s: float) -> bool:
    """Ask, then insist. Takes `grace_s` at most twice, and four seconds more.

    Returns False only if even KILL did not end it in time. If cancelled, it kills at once.
    """
    try:
        child.close_stdin()
        if not await _exits(child, grace_s):
            child.group.signal(signal.SIGTERM)
            if not await _exits(child, grace_s):
                log.warning("server.killed", server=child.server, grace_s=grace_s)
                child.group.signal(signal.SIGKILL)
                await _exits(child, KILL_WAIT_S)
        await _sweep(child.group, child.has_exited)
    finally:
        child.group.signal(signal.SIGKILL)
    if not child.has_exited:
        log.error("server.unkillable", server=child.server, pid=child.group.pgid)
    return child.has_exited


async def _sweep(group: Group, leader_has_exited: bool) -> None:
    """Who is still in the group after its leader has gone: ask by TERM, then KILL."""
    if not leader_has_exited or group.is_empty():
        return
    group.signal(signal.SIGTERM)
    if not await _becomes(group.is_empty, SWEEP_WAIT_S):
        group.signal(signal.SIGKILL)
        await _becomes(group.is_empty, SWEEP_WAIT_S)


async def _exits(child: Leaving, within_s: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await child.wait_exited()
    return child.has_exited


async def _becomes(condition: Callable[[], bool], within_s: float) -> bool:
    for _ in range(round(within_s / LOOK_EVERY_S)):
        if condition():
            return True
        await asyncio.sleep(LOOK_EVERY_S)
    return condition()
