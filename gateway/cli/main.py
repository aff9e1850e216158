"""The command `onegate`: what a person may type. What is needed to do it is imported only then."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click

from gateway import __version__
from gateway.cli.ending import told_as_bug
from gateway.cli.reach import Reach

P = ParamSpec("P")
R = TypeVar("R")

STDERR = 2
IN_FILE = click.Path(path_type=Path)
OUTCOMES = (
    *("ok", "tool_error", "denied", "refused", "invalid", "throttled", "timeout", "cancelled"),
    *("unavailable", "server_error", "input_required", "crashed"),
)
"""Every word a record may have: nothing is found under another, which would look like good news."""
CONFIG = click.option(
    *("-c", "--config", "file"),
    type=IN_FILE,
    metavar="FILE",
    help="The configuration; else $ONEGATE_CONFIG, ./onegate.yaml, or your own one.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def hold_streams() -> None:
    """Whoever started us may have closed the standard streams. Their numbers must not go to
    sockets and pipes: the log would be written into one, and uvloop aborts when it ends."""
    with suppress(OSError):  # a place without /dev/null: then they stay closed
        while (fd := os.open(os.devnull, os.O_RDWR)) <= STDERR:
            os.set_inheritable(fd, True)
        os.close(fd)


class Onegate(click.Group):
    """Ends with the exit codes of the house, and never with a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of a day, not of the alphabet

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # whoever typed it knows
            if sys.stderr.isatty():
                click.echo(err=True)  # the prompt does not follow the ^C
            sys.exit(130)

    def main(self, *args: Any, **settings: Any) -> Any:
        hold_streams()
        settings = {"prog_name": "onegate", **settings, "standalone_mode": False}
        try:
            sys.exit(super().main(*args, **settings) or 0)
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit(130)


@click.group(cls=Onegate, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="onegate")
@click.option("--traceback", is_flag=True, envvar="ONEGATE_TRACEBACK", hidden=True)
def main(traceback: bool) -> None:
    """One gate for all your MCP servers.

    `onegate serve` starts it; most other commands ask a running one, or start what they need.
    """
    if not traceback:
        sys.excepthook = told_as_bug


def reaching(command: Callable[..., R]) -> Callable[..., R]:
    """Options of every command that asks a gateway; gives it a `Reach`."""

    def reached(file: Path | None, admin: str | None, token: str | None, **given: Any) -> R:
        return command(Reach(file, admin, token), **given)

    reached.__doc__ = command.__doc__
    reached.__name__ = command.__name__
    reached.__dict__.update(command.__dict__)  # the options that stand below this one
    for option in (
        click.option("--token", envvar="ONEGATE_TOKEN", hidden=True),
        click.option(
            "--admin",
            metavar="HOST:PORT",
            help="Ask the gateway whose admin address this is; start none.",
        ),
        CONFIG,
    ):
        reached = option(reached)
    return reached


@main.command()
@CONFIG
def serve(file: Path | None) -> None:
    """Start the gateway; Ctrl-C or TERM stops it."""
    from gateway.cli.lean import load_lean
    from gateway.cli.reach import begin_reading

    reading = begin_reading(file)  # beside the loading of all that comes now
    load_lean()
    from gateway.cli.serving import serve

    serve(reading)


@main.command()
@click.option("--url", metavar="URL", help="Of a running gateway: http://..., or unix:PATH.")
@CONFIG
@click.option(
    "--token-file", type=IN_FILE, metavar="FILE", help="Holds the token, else $ONEGATE_TOKEN does."
)
@click.option("--token", envvar="ONEGATE_TOKEN", hidden=True)
def stdio(url: str | None, file: Path | None, token_file: Path | None, token: str | None) -> None:
    """Be one MCP server on stdin and stdout.

    For clients that can only start a program. It stands in front of a running gateway, or runs
    one of its own: with --url the former, with -c the latter; with neither, whichever there is.
    """
    from gateway.cli.bridging import stdio

    stdio(url, file, token, token_file)


@main.command()
@click.argument("file", required=False, type=IN_FILE)
@click.option("-c", "--config", "named", type=IN_FILE, metavar="FILE", hidden=True)
@click.option("--strict", is_flag=True, help="Exit 1 if there are warnings.")
@JSON
def check(file: Path | None, named: Path | None, strict: bool, as_json: bool) -> None:
    """Look over a configuration."""
    from gateway.cli.checking import check

    check(file or named, strict=strict, as_json=as_json)


@main.command()
def schema() -> None:
    """Print the JSON Schema of the configuration, for editors."""
    from gateway.cli.checking import schema

    schema()


@main.command()
@reaching
@JSON
def servers(reach: Reach, as_json: bool) -> None:
    """What is behind the gateway, and how it is."""
    from gateway.cli.commands import servers

    servers(reach, as_json=as_json)


@main.command()
@reaching
@JSON
def tools(reach: Reach, as_json: bool) -> None:
    """What tools there are; denied ones are marked."""
    from gateway.cli.commands import tools

    tools(reach, as_json=as_json)


@main.command(context_settings={"ignore_unknown_options": False})
@click.argument("tool")
@click.argument("arguments", nargs=-1, metavar="[JSON | - | NAME=VALUE...]")
@reaching
@JSON
def call(reach: Reach, tool: str, arguments: tuple[str, ...], as_json: bool) -> None:
    """Call a tool.

    Its arguments are one JSON object, or - for one on standard input, or NAME=VALUE pairs. A VALUE
    that is JSON counts as that (20, true, [1, 2], '"20"'), any other as text.

    \b
    onegate call dice__roll_dice '{"count": 2}'
    onegate call dice__roll_dice sides=20
    """
    from gateway.cli.commands import call

    call(reach, tool, arguments, as_json=as_json)


@main.command()
@click.argument("tool")
@reaching
@JSON
def explain(reach: Reach, tool: str, as_json: bool) -> None:
    """Every setting that holds for a tool, and where it comes from."""
    from gateway.cli.commands import explain

    explain(reach, tool, as_json=as_json)


@main.command()
@click.option("--last", type=click.IntRange(0, 1000), default=20, metavar="N", show_default=True)
@click.option("--server", metavar="NAME", help="Calls of this server's tools.")
@click.option("--tool", metavar="NAME", help="Calls of this tool, by either of its names.")
@click.option(
    "--outcome",
    type=click.Choice(OUTCOMES),
    metavar="WORD",
    help="Calls that ended so: ok, timeout, denied, ...",
)
@click.option("-f", "--follow", is_flag=True, help="Go on with those that come, until Ctrl-C.")
@reaching
@JSON
def calls(reach: Reach, last: int, follow: bool, as_json: bool, **only: str | None) -> None:
    """The latest calls, the newest at the bottom."""
    from gateway.cli.records import calls

    wanted = {key: value for key, value in only.items() if value is not None}
    calls(reach, last, wanted, follow=follow, as_json=as_json)


@main.command()
@reaching
@JSON
def health(reach: Reach, as_json: bool) -> None:
    """Whether a gateway is well: exit code 0, else 1."""
    from gateway.cli.health import health

    health(reach, as_json=as_json)


@main.group()
def token() -> None:
    """Bearer tokens, for `auth.tokens`."""


@token.command()
@click.argument("name", default="client")
@JSON
def new(name: str, as_json: bool) -> None:
    """Make a token for NAME, and the entry that lets it in."""
    from gateway.cli.tokens import new

    new(name, as_json=as_json)
