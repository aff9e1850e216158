"""The rules and alerts for Prometheus, by its own checker; each alert fires and keeps still."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.deploy.shipped import DEPLOY, adapted, replaced, shipped, wanted
from tests.deploy.yaml_files import documents

FOLDER = DEPLOY / "prometheus"
SUITE = documents(FOLDER / "tests.yml")[0]
TESTS = SUITE["tests"]
ALERTS = {
    rule["alert"]: rule
    for group in documents(FOLDER / "alerts.yml")[0]["groups"]
    for rule in group["rules"]
}


def promtool(*words: str, folder: Path = FOLDER) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [wanted("promtool"), *words], cwd=folder, capture_output=True, text=True, timeout=150
    )


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "words",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "rules.yml", "alerts.yml"),
        ("test", "rules", "tests.yml"),
    ],
    ids=" ".join,
)
def test_promtool_is_content(words: tuple[str, ...]) -> None:
    said = promtool(*words)
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("alert", ALERTS)
def test_each_alert_is_shown_to_fire_and_to_keep_still(alert: str) -> None:
    shown = {
        bool(check["exp_alerts"])
        for test in TESTS
        for check in test["alert_rule_test"]
        if check["alertname"] == alert
    }
    assert shown == {True, False}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_that_never_fires_is_noticed(alert: str, tmp_path: Path) -> None:
    """What the tests of alerts are worth: each of them is silenced once."""
    silent = adapted(shipped("prometheus/alerts.yml"), {f"alert: {alert}\n": "alert: Silent\n"})
    replaced(tmp_path, "alerts.yml", silent)
    replaced(tmp_path, "rules.yml", shipped("prometheus/rules.yml"))
    (own, *_) = (
        test
        for test in TESTS
        for check in test["alert_rule_test"]
        if check["alertname"] == alert and check["exp_alerts"]
    )
    replaced(tmp_path, "tests.yml", yaml.safe_dump({**SUITE, "tests": [own]}))

    assert promtool("test", "rules", "tests.yml", folder=tmp_path).returncode == 1


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_says_whom_to_wake_and_what_it_means(alert: str) -> None:
    rule = ALERTS[alert]
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert set(rule["annotations"]) == {"summary", "description"}
