"""Answer without a running gateway: start what the question needs, ask, and stop it again."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import click

from gateway.cli.asking import Admin, NobodyThere
from gateway.cli.ending import Failed, Misconfigured, causes
from gateway.cli.reach import Reach, here, loaded

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway
    from gateway.config.load import Loaded
    from gateway.config.model import StdioServer

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


def concerned(servers: Mapping[str, "StdioServer"], tool: str | None) -> frozenset[str]:
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
    if len(only) <= 3:
        return " and ".join(sorted(only))
    return f"{len(only)} servers"


def _started(
    found: "Loaded", only: frozenset[str], stand_in: Callable[["Gateway"], Awaitable[T]]
) -> T:
    import time

    from gateway.app.gateway import running
    from gateway.config.load import environment
    from gateway.observe.logs import configure_logs

    # Only what went wrong: what else there is to say is the answer itself.
    is_quiet = found.config.log.level == "error"
    configure_logs("error" if is_quiet else "warning", found.config.log.format, wall=time.time)

    async def ask() -> T:
        async with running(found, environment(), only) as gateway:
            await settled(gateway)
            return await stand_in(gateway)

    try:
        return asyncio.run(ask())
    except BaseExceptionGroup as group:
        raise plain(group) from None


async def settled(gateway: "Gateway") -> None:
    """Wait until every server has come up or failed to; bounded by `start_timeout`."""
    async with asyncio.TaskGroup() as tasks:
        for server in gateway.fleet.servers.values():
            tasks.create_task(server.main.wait_settled())


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
