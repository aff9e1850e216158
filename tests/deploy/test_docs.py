"""What docs/deploy.md names exists, and what it says to paste can be used."""

import re
import subprocess
from pathlib import Path

import yaml

from gateway.config.load import load
from tests.deploy.shipped import DEPLOY
from tests.deploy.test_rules import ALERTS
from tests.kit.processes import ROOT

PAGE = ROOT / "docs/deploy.md"
TEXT = PAGE.read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_every_file_it_points_to_exists() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert links
    assert [each for each in links if "://" not in each and not (PAGE.parent / each).exists()] == []


def test_every_section_it_points_to_exists() -> None:
    titles = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    assert set(re.findall(r"\]\(#([^)]+)\)", TEXT)) == {
        title.lower().replace(" ", "-") for title in titles
    }


def test_every_file_a_command_names_exists() -> None:
    named = {each for block in blocks("sh") for each in re.findall(r"\bdeploy/[\w./-]+", block)}
    assert named >= {"deploy/Dockerfile", "deploy/nginx/onegate.conf"}
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_every_command_is_shell() -> None:
    for block in blocks("sh"):
        said = subprocess.run(["sh", "-n"], input=block, capture_output=True, text=True)
        assert said.returncode == 0, said.stderr


def test_every_alert_has_its_line_with_its_severity() -> None:
    rows = dict(re.findall(r"^\| `(Onegate\w+)` \| (\w+) \|", TEXT, re.MULTILINE))
    assert rows == {name: rule["labels"]["severity"] for name, rule in ALERTS.items()}


def test_every_file_of_the_folder_is_spoken_of() -> None:
    shipped = {file.relative_to(DEPLOY) for file in DEPLOY.rglob("*") if file.is_file()}
    folders = {"grafana/provisioning", "compose/.gitignore", "Dockerfile.dockerignore"}
    silent = [
        str(file)
        for file in shipped
        if file.name not in TEXT and not str(file).startswith(tuple(folders))
    ]
    assert silent == []


def test_its_configuration_loads(tmp_path: Path) -> None:
    (block,) = blocks("yaml")
    (tmp_path / "hash").write_text("0" * 64)
    text = block.replace("/run/credentials/onegate.service/token-sha256", str(tmp_path / "hash"))
    (tmp_path / "onegate.yaml").write_text(text)

    loaded = load(tmp_path / "onegate.yaml", {}, tmp_path)

    assert [each.name for each in loaded.config.auth.tokens] == ["laptop"]
    assert yaml.safe_load(block)["calls"] == {"path": "/var/lib/onegate/calls.jsonl"}
