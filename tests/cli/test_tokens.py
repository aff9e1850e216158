"""`onegate token new`: what it prints opens the endpoint."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli.main import main
from gateway.config.load import load
from gateway.identity.tokens import Tokens


@pytest.mark.parametrize("name", ["laptop", "Ann's laptop: new", "yes", '"', "1", "ü", "a #b"])
def test_the_entry_it_prints_lets_the_token_in(name: str, tmp_path: Path) -> None:
    told = CliRunner().invoke(main, ["token", "new", name])

    token, entry = told.stdout.splitlines()
    (tmp_path / "onegate.yaml").write_text(f"auth:\n  tokens:\n    {entry}\n")
    tokens = load(tmp_path / "onegate.yaml", {}, tmp_path).config.auth.tokens
    assert Tokens(tokens).owner(token) == name


def test_tokens_are_long_and_never_the_same() -> None:
    told = [CliRunner().invoke(main, ["token", "new"]).stdout.splitlines()[0] for _ in range(3)]

    assert len(set(told)) == 3
    assert min(map(len, told)) >= 43


def test_json_holds_name_token_and_hash() -> None:
    told = json.loads(CliRunner().invoke(main, ["token", "new", "ci", "--json"]).stdout)

    assert told.keys() == {"name", "token", "sha256"}
    assert told["name"] == "ci"
