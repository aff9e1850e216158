"""What the commands do that ask a gateway: servers, tools, explain, call, health."""

import difflib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec

from gateway.cli import results, tables
from gateway.cli.asking import Admin, Heard
from gateway.cli.ending import Failed
from gateway.cli.reach import Reach
from gateway.cli.screen import Column, Grid, console, is_terminal, show, show_json, visible
from gateway.cli.standing_in import answer
from gateway.edge.admin.operator import Explanation, ServerReport, ToolReport

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway
    from gateway.calls.call import Emit


def servers(reach: Reach, *, as_json: bool) -> None:
    async def started(gateway: "Gateway") -> list[ServerReport]:
        return list(gateway.operator.servers())

    reports = answer(reach, Admin.servers, started)
    if as_json:
        show_json({"servers": msgspec.to_builtins(reports)})
        return
    show(tables.servers(reports, restarts=True, errors=not is_terminal()))
    if is_terminal():
        show_troubles(reports)


def show_troubles(reports: Sequence[ServerReport]) -> None:
    """Why servers are not well, a paragraph each: reasons are long."""
    from rich.padding import Padding
    from rich.text import Text

    on = console()
    for name, why in tables.troubles(reports):
        on.print(
            Padding(Text.assemble((f"{name}: ", "bold red"), results.harmless(why)), (1, 0, 0, 0))
        )


def tools(reach: Reach, *, as_json: bool) -> None:
    async def started(gateway: "Gateway") -> Offered:
        return list(gateway.operator.tools()), list(gateway.operator.servers())

    offered, reports = answer(reach, lambda admin: (admin.tools(), admin.servers()), started)
    if as_json:
        show_json({"tools": msgspec.to_builtins(offered)})
        return
    if offered or not is_terminal():
        show(tables.tools(offered, decided=None if is_terminal() else True))
    else:
        click.echo("No tools.")
    if down := tables.down(reports):
        click.echo(f"\n{MAY_HAVE_MORE.format(', '.join(each.name for each in down))}", err=True)


MAY_HAVE_MORE = "Not ready, so there may be more: {}. `onegate servers` tells why."

Offered = tuple[list[ToolReport], list[ServerReport]]
Known = tuple[Explanation | None, list[ToolReport], list[ServerReport]]
"""What is known of a tool, and what else there is."""
Called = tuple[dict[str, Any], list[ToolReport], list[ServerReport]]
"""What came of a call; what else there is, if it was refused."""


def explain(reach: Reach, name: str, *, as_json: bool) -> None:
    async def started(gateway: "Gateway") -> Known:
        told = gateway.operator
        return told.explain(name), list(told.tools()), list(told.servers())

    found, others, reports = answer(
        reach, lambda admin: (admin.explain(name), admin.tools(), admin.servers()), started, name
    )
    if found is None:
        raise Failed(unknown(name, others, reports))
    command = next((each.command for each in reports if each.name == found.server), ())
    if as_json:
        show_json({**msgspec.to_builtins(found), "command": list(command)})
        return
    for title, text in (
        ("Tool", found.name),
        ("Server", found.server),
        ("Its name there", found.tool),
        ("Command", " ".join(command)),
        ("Decision", f"{found.decision}, by {_spelt(found.rule)}"),
    ):
        line = f"{title:<16}{visible(text)}"
        click.echo(click.style(line, bold=title == "Tool"))
    click.echo()
    columns = [Column("SETTING"), Column("VALUE", style="bold"), Column("FROM")]
    show(Grid(columns, [[one.name, one.value, one.source] for one in found.settings]))


def _spelt(rule: str) -> str:
    return "default" if rule == "default" else f'the rule for "{rule}"'


def unknown(name: str, others: Sequence[ToolReport], reports: Sequence[ServerReport]) -> str:
    """That there is no such tool, what may have been meant, and why it may be missing."""
    said = f"no server offers a tool {visible(name)!r}"
    down = tables.down(reports)
    for each in down:
        if name.startswith(f"{each.name}__"):
            why = f": {results.harmless(each.last_error)}" if each.last_error else ""
            return f"{said} now; the server {each.name} is {each.state}{why}"
    near = nearest(name, others)
    if near:
        said += f"; did you mean {' or '.join(near)}?"
    elif others:
        said += "; `onegate tools` lists those there are"
    if down:
        said += f"\n{MAY_HAVE_MORE.format(', '.join(each.name for each in down))}"
    return said


def nearest(name: str, others: Sequence[ToolReport]) -> list[str]:
    """Names people may have meant: near ones, and those their server knows by this name."""
    own = [each.name for each in others if each.tool == name]
    near = difflib.get_close_matches(name, [each.name for each in others], n=3, cutoff=0.6)
    return list(dict.fromkeys([*own, *near]))[:3]


def call(reach: Reach, name: str, words: Sequence[str], *, as_json: bool) -> None:
    given = results.arguments(words)

    def asked(admin: Admin) -> Called:
        with waiting(name) as heard:
            answered = admin.call(name, given, heard)
        if "error" not in answered:
            return answered, [], []
        return answered, admin.tools(), admin.servers()

    async def started(gateway: "Gateway") -> Called:
        from gateway.protocol.jsonrpc import as_bytes

        told = gateway.operator
        with waiting(name) as heard:
            answered = as_bytes(await told.call(name, given, _emit(heard)))
        return json.loads(answered), list(told.tools()), list(told.servers())

    answered, others, reports = answer(reach, asked, started, name)
    result = answered.get("result")
    if as_json:
        show_json(answered if result is None else result)
    elif result is None:
        raise Failed(_refused(name, answered, others, reports))
    elif result.get("resultType") == "input_required":
        raise Failed(f"{name} asks for input in the middle of the call, which cannot be given here")
    else:
        results.show_result(result)
    if result is None or result.get("isError"):
        sys.exit(1)


def _refused(
    name: str,
    answered: Mapping[str, Any],
    others: Sequence[ToolReport],
    reports: Sequence[ServerReport],
) -> str:
    """Clients are told the same of denied tools and of unknown ones; an operator may know."""
    known = next((each for each in others if each.name == name), None)
    if known is None:
        return unknown(name, others, reports)
    if known.decision == "deny":
        why = f"denied by {_spelt(known.rule)}; `onegate explain {name}` tells where that stands"
        return f"{name} is {why}"
    error = answered.get("error") or {}
    return f"{name}: {visible(str(error.get('message') or 'refused without a reason'))}"


def _emit(heard: Heard | None) -> "Emit":
    from gateway.calls.notices import Emitted, Progress
    from gateway.protocol.jsonrpc import as_bytes

    def emit(emitted: Emitted) -> None:
        if heard is not None and isinstance(emitted, Progress):
            heard(json.loads(as_bytes(emitted.params)))

    return emit


@contextmanager
def waiting(name: str) -> Iterator[Heard | None]:
    """While a call runs, a terminal shows for how long, and how far the tool says it is."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console(err=True), transient=True) as progress:
        task = progress.add_task(escape(visible(name)), total=None)

        def heard(told: Mapping[str, Any]) -> None:
            done, total, message = (told.get(key) for key in ("progress", "total", "message"))
            progress.update(
                task,
                completed=done if isinstance(done, int | float) else None,
                total=total if isinstance(total, int | float) else None,
                description=escape(visible(str(message or name))[:40]),
            )

        yield heard
