"""Make a bearer token: its text for the client, its hash for the configuration."""

import json
import re
import secrets
import sys
from hashlib import sha256

import click

from gateway.cli.screen import show_json

BYTES = 32
"""256 random bits: not to be guessed, so a plain hash keeps it."""
MARK = "onegate_"
"""So that whoever finds one in a file can tell what it opens."""


def new(name: str, *, as_json: bool) -> None:
    token = MARK + secrets.token_urlsafe(BYTES)
    digest = sha256(token.encode()).hexdigest()
    if as_json:
        show_json({"name": name, "token": token, "sha256": digest})
        return
    if sys.stdout.isatty():
        click.echo("The token, for the client. It is shown this once and kept nowhere:\n")
        click.echo(f"  {click.style(token, bold=True)}\n")
        click.echo("Its entry in the configuration:\n")
        click.echo("  auth:\n    tokens:")
        click.echo(f"      {entry(name, digest)}")
    else:
        click.echo(token)
        click.echo(entry(name, digest))


def entry(name: str, digest: str) -> str:
    """An item of `auth.tokens`, in YAML."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", name) and name.lower() not in _WORDS
    return f"- {{name: {name if plain else json.dumps(name)}, sha256: {digest}}}"


_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
"""Not texts, to some reader of YAML or other."""
