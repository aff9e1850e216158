"""The schema for editors: complete, explained, and free of surprises."""

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import jsonschema_rs

from gateway.config.model import Config, HttpServer, StdioServer, ToolRule, key_of
from gateway.config.schema import schema


def _properties(of: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for section in [of, *of["$defs"].values()]:
        yield from section.get("properties", {}).items()


def test_the_schema_is_a_schema_and_plain_json() -> None:
    jsonschema_rs.meta.validate(schema())
    assert json.loads(json.dumps(schema(), allow_nan=False)) == schema()


def test_every_key_of_the_model_is_in_the_schema() -> None:
    made = schema()

    assert {key_of(one.name) for one in fields(Config)} <= made["properties"].keys()
    for section in (StdioServer, HttpServer, ToolRule):
        keys = {key_of(one.name) for one in fields(section)}
        assert keys == made["$defs"][section.__name__]["properties"].keys()


def test_editors_can_explain_every_key() -> None:
    made = schema()

    for key, property_ in _properties(made):
        if isinstance(property_, dict):
            refers = any("$ref" in one for one in property_.get("anyOf", []))
            assert property_.get("description") or refers, key


def test_defaults_are_written_as_people_write_them() -> None:
    made = schema()
    server, limits = made["$defs"]["StdioServer"], made["$defs"]["Limits"]

    assert made["properties"]["listen"]["default"] == "127.0.0.1:8765"
    assert server["properties"]["start_timeout"]["default"] == "30s"
    assert limits["properties"]["line"]["default"] == "16MiB"
    validator = jsonschema_rs.validator_for(made)
    for key, property_ in limits["properties"].items():
        assert validator.is_valid({"limits": {key: property_["default"]}})


def test_nothing_of_the_insides_is_in_the_schema() -> None:
    text = json.dumps(schema())

    assert "(mode)" not in text
    assert "_bytes" not in text
    assert "timeout_s" not in text
