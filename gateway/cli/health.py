"""Whether a gateway is well. Imports little: containers ask every few seconds."""

import sys

import click
import msgspec

from gateway.cli.asking import Admin, NobodyThere
from gateway.cli.ending import Failed
from gateway.cli.reach import Reach
from gateway.cli.screen import count, show_json, visible


def health(reach: Reach, *, as_json: bool) -> None:
    address = reach.admin()
    if address is None:
        raise Failed("the configuration says `admin: off`, so nobody can be asked")
    try:
        ready = Admin(address, reach.token).ready()
    except NobodyThere:
        if as_json:
            show_json({"ok": False, "checks": [], "reason": f"no gateway runs at {address}"})
            sys.exit(1)
        raise Failed(f"no gateway runs at {address}") from None
    if as_json:
        show_json(msgspec.to_builtins(ready))
    elif ready.ok:
        click.echo(f"ready: {count(len(ready.checks), 'check')} passed at {address}")
    else:
        wrong = [f"{each.name}: {each.reason}" for each in ready.checks if not each.ok]
        click.echo("\n".join(["not ready", *map(visible, wrong)]), err=True)
    if not ready.ok:
        sys.exit(1)
