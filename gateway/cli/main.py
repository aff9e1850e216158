"""The command `onegate`: what a person types, and how each way it can end is told."""

import asyncio
import signal
import sys
import time
from pathlib import Path

import click

from gateway import __version__


@click.group()
@click.version_option(__version__, prog_name="onegate")
def main() -> None:
    """One gate for all your MCP servers."""


@main.command()
@click.option("-c", "--config", "file", type=click.Path(path_type=Path), metavar="FILE")
def serve(file: Path | None) -> None:
    """Start the gateway."""
    from gateway.config.complaints import ConfigError
    from gateway.config.load import environment, load
    from gateway.observe.logs import configure_logs

    environ = environment()
    try:
        loaded = load(file, environ, Path.cwd())
    except ConfigError as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    configure_logs(loaded.config.log.level, loaded.config.log.format, wall=time.time)

    async def serving() -> None:
        from gateway.app.gateway import running

        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        async with running(loaded, environ) as gateway:
            await gateway.listen()
            await stop.wait()

    asyncio.run(serving())
