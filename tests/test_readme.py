"""What the README says to paste can be pasted, and what it names exists."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.config.model import Config, HttpServer, StdioServer, ToolRule, key_of
from gateway.observe.record import CallRecord
from tests.kit.processes import ROOT

README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert found
    return found


@pytest.mark.parametrize("text", blocks("yaml"))
def test_a_configuration_in_the_readme_loads(text: str, tmp_path: Path) -> None:
    (tmp_path / "onegate.yaml").write_text(text)

    loaded = load(tmp_path / "onegate.yaml", {"HOME": "/home/ann"}, tmp_path)

    assert loaded.config.tools
    assert not loaded.warnings


@pytest.mark.parametrize("text", blocks("json"))
def test_a_snippet_for_a_client_is_json_and_leads_to_the_endpoint(text: str) -> None:
    (root,) = json.loads(text).values()

    assert list(root) == ["onegate"]
    assert "http://127.0.0.1:8765/mcp" in text


@pytest.mark.parametrize("section", [Config, StdioServer, HttpServer, ToolRule])
def test_the_readme_names_every_key_of_the_configuration(section: type[Config]) -> None:
    for attribute in fields(section):
        assert f"`{key_of(attribute.name)}`" in README


def test_the_readme_names_every_key_of_the_record() -> None:
    for key in set(CallRecord.__struct_fields__) - {"arguments"}:
        assert f"`{key}`" in README


def test_every_file_the_readme_points_to_exists() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)

    assert links
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_every_section_the_readme_points_to_exists() -> None:
    titles = re.findall(r"^## (.+)$", README, re.MULTILINE)
    anchors = {title.lower().replace(" ", "-") for title in titles}

    assert set(re.findall(r"\]\(#([^)]+)\)", README)) <= anchors
