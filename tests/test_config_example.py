"""The example configuration: it loads, it leaves no option out, and what is off can be put on."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.config.model import (
    NO_KEYS,
    Auth,
    Calls,
    Config,
    HttpServer,
    Limits,
    Log,
    Names,
    Section,
    StdioServer,
    Token,
    ToolRule,
    key_of,
)
from tests.kit.processes import ROOT

EXAMPLE = ROOT / "config.example.yaml"

OFF = re.compile(r"^( *)# ( *(?:- )?[{a-z_]+[:,].*)$", re.MULTILINE)
"""An option that is commented out, as opposed to a sentence."""


def test_the_example_loads_without_a_warning() -> None:
    loaded = load(EXAMPLE, {}, ROOT)

    assert list(loaded.config.servers) == ["dice", "clock", "release"]
    assert not loaded.warnings


@pytest.mark.parametrize(
    "section", [Config, StdioServer, HttpServer, ToolRule, Token, Auth, Calls, Limits, Names, Log]
)
def test_the_example_shows_every_option_there_is(section: type[Section]) -> None:
    text = EXAMPLE.read_text()

    for attribute in {one.name for one in fields(section)} - NO_KEYS:
        assert re.search(rf"\b{key_of(attribute)}: ?", text), attribute


def test_what_is_off_in_the_example_works_when_put_on(tmp_path: Path) -> None:
    text, put_on = OFF.subn(r"\1\2", EXAMPLE.read_text())
    (tmp_path / "onegate.yaml").write_text(text)
    (tmp_path / "release.env").touch()

    config = load(tmp_path / "onegate.yaml", {"TRACKER_TOKEN": "t"}, ROOT).config

    assert put_on >= 10
    assert config.servers["tracker"] == HttpServer(
        url="https://tracker.example/mcp",
        headers={"Authorization": "Bearer t"},
        ca=tmp_path / "authority.pem",
        cert=tmp_path / "client.pem",
        key=tmp_path / "client.key",
        proxy="http://proxy.example:3128",
    )
    assert config.servers["release"].concurrency == 8
    assert config.tools[-1].rate is not None
    assert [token.name for token in config.auth.tokens] == ["laptop"]


def test_the_example_fits_on_a_screen_and_a_half() -> None:
    lines = EXAMPLE.read_text().splitlines()

    assert len(lines) <= 90
    assert max(map(len, lines)) <= 105
