"""Answer without a running gateway: start what the question needs, ask, and stop it again."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import click

from gateway.cli.asking import Admin, NobodyThere
from gateway.cli.ending import Failed, Misconfigured, causes
from gateway.cli.progress import progress_line, settled
from gateway.cli.reach import Reach, here, loaded

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway
    from gateway.config.loaded import Loaded
    from gateway.config.model import Server

T = TypeVar("T")


def answer(
    reach: Reach,
    ask: Callable[[Admin], T],
    stand_in: Callable[["Gateway"], Awaitable[T]],
    tool: str | None = None,
) -> T:
    """What a running gateway says, or one started for the question alone.

    `tool`: the question is about this tool, so only its server need be started.
    """
    address = reach.admin()
    if address is not None:
        try:
            return ask(Admin(address, reach.token))
        except NobodyThere:
            pass
    if reach.given is not None:
        raise Failed(f"no gateway runs at {reach.given}; start one with `onegate serve`")
    where = f"No gateway runs at {address}" if address else "The configuration says `admin: off`"
    found = reach.configuration
    if found is None:
        try:
            found = loaded(reach.file)
        except Misconfigured as nowhere:
            raise Misconfigured(f"{where}, and there is none to start:\n{nowhere}") from None
    only = concerned(found.config.servers, tool)
    click.echo(f"{where}: starting {_named(only)}.", err=True)
    return _started(found, only, stand_in)


def concerned(servers: Mapping[str, "Server"], tool: str | None) -> frozenset[str]:
    """The servers that may offer a tool of this name, as far as prefixes tell; else all."""
    enabled = {name: server for name, server in servers.items() if not server.disabled}
    prefixes = {n: n if s.prefix is None else s.prefix for n, s in enabled.items()}
    named = {
        name
        for name, prefix in prefixes.items()
        if tool is not None and prefix and tool.startswith(f"{prefix}__")
    }
    bare = {name for name, prefix in prefixes.items() if tool is not None and not prefix}
    return frozenset(named or bare or enabled)


def _named(only: frozenset[str]) -> str:
    if not only:
        return "without servers, for none are configured"
    if len(only) > 4:
        return f"{len(only)} servers"
    *others, last = sorted(only)
    return f"{', '.join(others)} and {last}" if others else last


def _started(
    found: "Loaded", only: frozenset[str], stand_in: Callable[["Gateway"], Awaitable[T]]
) -> T:
    from gateway.app.running import running
    from gateway.config.environ import environment

    _quiet(found)

    async def ask() -> T:
        async with running(found, environment(), only) as gateway:
            await _come_up(gateway)
            return await stand_in(gateway)

    try:
        return asyncio.run(ask())
    except BaseExceptionGroup as group:
        raise plain(group) from None


def _quiet(found: "Loaded") -> None:
    """The answer says what there is to say, also of servers that fail; a log beside it would
    only be in the way, unless it is asked for."""
    import time

    from gateway.observe.logs import configure_logs

    log = found.config.log
    is_wanted = log.level == "debug"
    fd = 2 if is_wanted else os.open(os.devnull, os.O_WRONLY)
    configure_logs(log.level, log.format, wall=time.time, fd=fd)


async def _come_up(gateway: "Gateway") -> None:
    servers, never = gateway.operator.servers, asyncio.Event()
    if not os.isatty(2):
        await settled(servers, None, never)
        return
    with progress_line(2) as show:
        await settled(servers, show, never)


def plain(group: BaseExceptionGroup) -> BaseException:
    """The failure a person can do something about, if that is what the group holds."""
    from gateway.edge.sockets import CannotListen

    first = causes(group)[0]
    if isinstance(first, CannotListen):
        return Failed(str(first))
    if isinstance(first, OSError) and first.filename is not None:
        return Failed(f"cannot open {shown(first.filename)}: {first.strerror}")
    return group


def shown(path: str) -> str:
    folder = f"{here()}/"
    return str(path).removeprefix(folder)
