"""A real Prometheus, on the shipped configuration, reads a real gateway under load."""

import math
from pathlib import Path

import pytest

from tests.deploy.conftest import CALLED, P95_BY_TOOL
from tests.deploy.prometheus import RULES, Prometheus, metrics_in, scraped_names
from tests.deploy.shipped import DEPLOY
from tests.deploy.yaml_files import documents
from tests.kit.waiting import eventually

# The first of them waits for the gateway under load.
pytestmark = pytest.mark.timeout(180)


def test_the_95th_percentile_of_each_tool_is_a_number(watched: Prometheus) -> None:
    found = watched.values(P95_BY_TOOL, "gen_ai_tool_name")

    for tool in CALLED:
        assert math.isfinite(found[tool])
        assert found[tool] > 0
    assert 0.02 < found["quick__sleep"] < 1  # it sleeps for 30 ms


def test_the_gateway_is_scraped_without_complaint(watched: Prometheus) -> None:
    assert watched.values('up{job="onegate"}', "job") == {"onegate": 1}
    dropped = "scrape_samples_scraped - scrape_samples_post_metric_relabeling"
    assert watched.values(dropped, "job") == {"onegate": 0}


def test_every_rule_is_worked_out_without_error(watched: Prometheus) -> None:
    rules = watched.rules()

    assert {rule["health"] for rule in rules} == {"ok"}
    assert len(rules) == sum(
        len(group["rules"]) for file in RULES for group in groups(DEPLOY / "prometheus" / file)
    )


def test_every_rule_speaks_of_metrics_that_exist(watched: Prometheus) -> None:
    rules = [
        rule for file in RULES for group in groups(DEPLOY / "prometheus" / file)
        for rule in group["rules"]
    ]  # fmt: skip
    known = scraped_names(watched.gateway.page("/metrics"))
    known |= {rule["record"] for rule in rules if "record" in rule}

    assert {name: rule for rule in rules for name in metrics_in(rule["expr"]) - known} == {}


def test_every_recorded_rule_has_a_value(watched: Prometheus) -> None:
    def missing() -> list[str]:
        names = [rule["name"] for rule in watched.rules() if rule["type"] == "recording"]
        return [name for name in names if not watched.query(name)]

    eventually(lambda: not missing(), what=f"values for {missing()}")
    assert missing() == []


def groups(file: Path) -> list[dict[str, list[dict[str, str]]]]:
    return list(documents(file)[0]["groups"])
