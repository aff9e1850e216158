"""The Grafana dashboard asks for what exists: each of its queries has an answer."""

import json
import re
from typing import Any

import pytest

from tests.deploy.prometheus import Prometheus, metrics_in, scraped_names
from tests.deploy.shipped import DEPLOY, shipped
from tests.deploy.yaml_files import documents

# The first of them waits for the gateway under load.
pytestmark = pytest.mark.timeout(180)


DASHBOARD: dict[str, Any] = json.loads(shipped("grafana/dashboard.json"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
GIVEN_BY_GRAFANA = {"__rate_interval": "1m", "__range": "5m"}
QUERIES = [
    *((f"{panel['title']}: {target['refId']}", target["expr"])
      for panel in PANELS for target in panel["targets"]),
    *((each["name"], each["expr"]) for each in DASHBOARD["annotations"]["list"]),
]  # fmt: skip
SILENT = {"Starts"}
"""Asks for what has not happened: the gateway was not started twice."""


def filled_in(expression: str) -> str:
    """An expression with its variables replaced, as Grafana does it for `All`."""
    values = GIVEN_BY_GRAFANA | dict.fromkeys(VARIABLES, ".*")
    return re.sub(r"\$\{?(\w+)\}?", lambda found: values[found[1]], expression)


@pytest.mark.parametrize(("where", "expression"), QUERIES, ids=[name for name, _ in QUERIES])
def test_a_query_names_metrics_that_exist(where: str, expression: str, watched: Prometheus) -> None:
    named = metrics_in(filled_in(expression))

    assert named
    assert named <= scraped_names(watched.gateway.page("/metrics"))


@pytest.mark.parametrize(("where", "expression"), QUERIES, ids=[name for name, _ in QUERIES])
def test_a_query_has_an_answer(where: str, expression: str, watched: Prometheus) -> None:
    assert bool(watched.query(filled_in(expression))) != (where in SILENT)


@pytest.mark.parametrize("name", [name for name in VARIABLES if name != "datasource"])
def test_a_variable_offers_what_there_is(name: str, watched: Prometheus) -> None:
    found = re.fullmatch(r"label_values\((.*), (\w+)\)", VARIABLES[name]["definition"])
    assert found
    series = watched.query(filled_in(found[1]))

    assert {each["metric"].get(found[2]) for each in series} - {None, ""}


def test_a_name_that_does_not_exist_is_noticed(watched: Prometheus) -> None:
    known = scraped_names(watched.gateway.page("/metrics"))
    misspelt = 'sum by (le) (rate(onegate_tool_call_total{a="b"}[5m])) / 2 > 1e3 and up'

    assert metrics_in(misspelt) == {"onegate_tool_call_total", "up"}
    assert metrics_in(misspelt) - known == {"onegate_tool_call_total"}


def test_panels_have_ids_and_places_of_their_own() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    taken: dict[tuple[int, int], str] = {}
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for at in ((x, y) for x in range(place["x"], place["x"] + place["w"])
                   for y in range(place["y"], place["y"] + place["h"])):  # fmt: skip
            assert taken.setdefault(at, panel["title"]) == panel["title"]


def test_every_panel_asks_the_source_that_was_chosen() -> None:
    sources = [each["datasource"] for panel in PANELS for each in (panel, *panel["targets"])]
    sources += [each["datasource"] for each in VARIABLES.values() if "datasource" in each]

    assert {source["uid"] for source in sources} == {"${datasource}"}


def test_provisioning_offers_the_source_and_the_folder_compose_mounts() -> None:
    folder = DEPLOY / "grafana/provisioning"
    (source,) = documents(folder / "datasources/prometheus.yaml")[0]["datasources"]
    (provider,) = documents(folder / "dashboards/onegate.yaml")[0]["providers"]

    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")
    mounts = documents(DEPLOY / "compose.yaml")[0]["services"]["grafana"]["volumes"]
    assert f"./grafana/dashboard.json:{provider['options']['path']}/onegate.json:ro" in mounts
