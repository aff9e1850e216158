"""The composition: what it names exists and fits together, and its gateway runs."""

import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.deploy.dockerfile import stages
from tests.deploy.serving import SHA256, TOKEN, running_shipped
from tests.deploy.shipped import DEPLOY, shipped
from tests.deploy.yaml_files import documents
from tests.kit.waiting import eventually, run

COMPOSE: dict[str, Any] = documents(DEPLOY / "compose.yaml")[0]
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
CONFIG = documents(DEPLOY / "compose/onegate.yaml")[0]
SECRET = "/run/secrets/token_sha256"

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT, "uniqueItems": True}
SCHEMA = {
    "type": "object",
    "required": ["services"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]*$"},
        "services": {"type": "object", "additionalProperties": {"$ref": "#/$defs/service"}},
        "secrets": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["file"],
                "additionalProperties": False,
                "properties": {"file": TEXT},
            },
        },
        "volumes": {"type": "object", "additionalProperties": {"type": "null"}},
    },
    "$defs": {
        "service": {
            "type": "object",
            "required": ["image", "restart", "cap_drop", "security_opt"],
            "additionalProperties": False,
            "properties": {
                "build": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"context": TEXT, "dockerfile": TEXT},
                },
                "image": TEXT,
                "command": TEXTS,
                "environment": {"type": "object", "additionalProperties": TEXT},
                "ports": {"type": "array", "items": {**TEXT, "pattern": r"^127\.0\.0\.1:"}},
                "volumes": TEXTS,
                "secrets": TEXTS,
                "tmpfs": TEXTS,
                "depends_on": TEXTS,
                "cap_drop": {"const": ["ALL"]},
                "security_opt": {"const": ["no-new-privileges:true"]},
                "read_only": {"type": "boolean"},
                "pids_limit": {"type": "integer"},
                "mem_limit": {"type": "string", "pattern": "^[0-9]+[kmg]$"},
                "restart": {"enum": ["unless-stopped"]},
                "stop_grace_period": {"type": "string", "pattern": "^[0-9]+s$"},
            },
        }
    },
}
"""The part of the Compose specification that is used here, and the rules of the house in it:
nothing is open to others, and nobody has rights."""


def test_the_file_keeps_to_what_compose_knows() -> None:
    wrong = jsonschema_rs.validator_for(SCHEMA).iter_errors(COMPOSE)
    assert [f"{each.instance_path}: {each.message}" for each in wrong] == []


def test_every_file_that_is_mounted_or_built_from_exists() -> None:
    build = SERVICES["gateway"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    for service in SERVICES.values():
        for mount in service["volumes"]:
            source, target, *_ = mount.split(":")
            if source.startswith("."):
                assert (DEPLOY / source).exists(), mount
            else:
                assert source in COMPOSE["volumes"], mount
            assert target.startswith("/")


def test_images_of_others_are_pinned() -> None:
    for name, service in SERVICES.items():
        if "build" not in service:
            assert re.search(r":v?\d+\.\d+\.\d+$", service["image"]), name


def test_the_gateway_can_write_where_the_image_says_and_nowhere_else() -> None:
    gateway = SERVICES["gateway"]
    written = {each.split(":")[1] for each in gateway["volumes"] if not each.endswith(":ro")}
    image = " ".join(step.rest for step in stages(shipped("Dockerfile"))[-1].of("ENV"))

    assert gateway["read_only"] is True
    assert written == {"/var/lib/onegate", "/home/onegate"}
    assert all(f"={folder}" in image for folder in written)
    assert CONFIG["calls"]["path"].startswith("/var/lib/onegate/")
    assert "./compose/onegate.yaml:/config/onegate.yaml:ro" in gateway["volumes"]


def test_prometheus_is_pointed_at_the_gateways_admin_address_and_finds_its_files() -> None:
    config = documents(DEPLOY / "prometheus/prometheus.yml")[0]
    (job,) = config["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["gateway:8766"]}]
    assert CONFIG["admin"] == "0.0.0.0:8766"
    assert "gateway" in SERVICES
    mounted = {each.split(":")[1] for each in SERVICES["prometheus"]["volumes"]}
    assert {f"/etc/prometheus/{name}" for name in (*config["rule_files"], "prometheus.yml")} <= (
        mounted
    )


def test_the_secret_stays_out_of_the_repository() -> None:
    assert COMPOSE["secrets"] == {"token_sha256": {"file": "./compose/token.sha256"}}
    assert shipped("compose/.gitignore").split() == ["token.sha256"]
    assert not (DEPLOY / "compose/token.sha256").exists()


@pytest.mark.parametrize("text", [SHA256, f"{SHA256}\n"], ids=["as it is", "as a command ends it"])
def test_its_gateway_lets_the_token_in_and_prometheus_see_the_metrics(
    tmp_path: Path, text: str
) -> None:
    with running_shipped(tmp_path, CONFIG, SECRET, text) as gateway:
        assert gateway.admin("/metrics", "gateway") == 200
        assert gateway.admin("/api/calls", "gateway") == 401
        assert run(gateway.tool_names(None)) == 401

        def offered() -> set[str]:
            names = run(gateway.tool_names(TOKEN))
            assert isinstance(names, set)
            return {name.split("__")[0] for name in names}

        eventually(lambda: offered() == set(CONFIG["servers"]), 20, what="tools of all servers")
