"""The screen of `onegate serve`: where things are, what there is, and what to paste where."""

from collections.abc import Iterator, Sequence

import click
from rich.console import Console
from rich.text import Text

from gateway import __version__
from gateway.app.gateway import Gateway
from gateway.cli import tables
from gateway.cli.commands import show_troubles
from gateway.cli.reach import EVERYWHERE
from gateway.cli.screen import Grid, console, draw
from gateway.cli.standing_in import shown
from gateway.config.model import Config
from gateway.config.units import Address
from gateway.edge.admin.operator import ServerReport, ToolReport

MOST_TOOLS = 16
"""Shown at start: a screen, not a catalog."""
PATH = "/mcp"


def welcome(gateway: Gateway, reports: Sequence[ServerReport]) -> None:
    """Print the screen. `reports`: how the servers came up."""
    on = console()
    on.print(Text.assemble(("onegate ", "bold"), (__version__, "bold"), " is up\n"))
    for title, text in facts(gateway):
        on.print(Text.assemble((f"{title:<11}", "dim"), text), soft_wrap=True)
    if reports:
        on.print()
        draw(tables.servers(reports), on)
        show_troubles(reports)
    _tools(on, [each for each in gateway.operator.tools() if each.decision == "allow"])
    on.print()
    for title, text in snippets(gateway.config, gateway.listening):
        on.print(Text(title, style="dim"))
        on.print(Text(text), soft_wrap=True)
    on.print(Text("\nCtrl-C stops it.", style="dim"))


def facts(gateway: Gateway) -> Iterator[tuple[str, str]]:
    config = gateway.config
    for address in gateway.listening:
        yield "Endpoint", url(address) + everywhere(address)
    yield "Admin", url(gateway.admin, "") if gateway.admin else "off"
    yield "Config", shown(str(gateway.current.loaded.file))
    if config.calls.path is not None:
        yield "Record", shown(str(config.calls.path))
    if config.auth.mode == "none" and not all(each.is_loopback for each in gateway.listening):
        yield "Auth", click.style("none: whoever reaches it may use it", fg="yellow")


def url(address: Address, path: str = PATH) -> str:
    if address.path is not None:
        return f"{address}{f' (POST {path})' if path else ''}"
    host = EVERYWHERE.get(address.host, address.host)
    return f"http://{Address(host, address.port)}{path}"


def everywhere(address: Address) -> str:
    is_everywhere = address.path is None and address.host in EVERYWHERE
    return ", and on every other address of this machine" if is_everywhere else ""


def _tools(on: Console, tools: Sequence[ToolReport]) -> None:
    if not tools:
        return
    on.print()
    grid = tables.tools(tools, decided=False)
    draw(Grid(grid.columns, grid.rows[:MOST_TOOLS]), on)
    if len(tools) > MOST_TOOLS:
        on.print(Text(f"and {len(tools) - MOST_TOOLS} more: onegate tools", style="dim"))


def snippets(config: Config, listening: Sequence[Address]) -> Iterator[tuple[str, str]]:
    """What to paste into a client: a title, and the text."""
    reachable = [each for each in listening if each.path is None]
    if not reachable:
        return
    endpoint = url(reachable[0])
    header = config.auth.mode == "tokens"
    option = ' --header "Authorization: Bearer TOKEN"' if header else ""
    member = ', "headers": {"Authorization": "Bearer TOKEN"}' if header else ""
    yield "Claude Code:", f"claude mcp add --transport http onegate {endpoint}{option}"
    yield "Cursor:", f'{{"mcpServers": {{"onegate": {{"url": "{endpoint}"{member}}}}}}}'
    typed = f'{{"type": "http", "url": "{endpoint}"{member}}}'
    yield "VS Code:", f'{{"servers": {{"onegate": {typed}}}}}'
    if header:
        names = ", ".join(token.name for token in config.auth.tokens)
        yield "TOKEN:", f"one whose hash is under auth.tokens ({names}). onegate token new: another"
