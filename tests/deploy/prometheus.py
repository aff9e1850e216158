"""A real Prometheus on the shipped configuration, and the language it is asked in."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.deploy.shipped import adapted, replaced, shipped, wanted
from tests.kit.gateway import Gateway, fetch
from tests.kit.ports import free_port
from tests.kit.processes import program
from tests.kit.waiting import eventually

RULES = ("rules.yml", "alerts.yml")

NOT_METRICS = {
    *("by", "without", "on", "ignoring", "group_left", "group_right", "and", "or", "unless"),
    *("bool", "offset", "inf", "nan"),
}


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running Prometheus. `gateway` is what it scrapes."""

    url: str
    gateway: Gateway

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples an expression has now. AssertionError if Prometheus refuses it."""
        status, body = fetch(f"{self.url}/api/v1/query?{urlencode({'query': expression})}")
        answer = json.loads(body or b"{}")
        assert status == 200, f"{expression}\n{answer}"
        return list(answer["data"]["result"])

    def values(self, expression: str, label: str) -> dict[str, float]:
        """The value for each value of a label."""
        return {
            each["metric"].get(label, ""): float(each["value"][1])
            for each in self.query(expression)
        }

    def rules(self) -> list[dict[str, Any]]:
        """Every rule it works on, with its health."""
        _, body = fetch(f"{self.url}/api/v1/rules")
        return [rule for group in json.loads(body)["data"]["groups"] for rule in group["rules"]]


@contextmanager
def prometheus(folder: Path, gateway: Gateway) -> Iterator[Prometheus]:
    """Prometheus on the shipped files, faster: it scrapes this gateway each second."""
    for name in RULES:
        replaced(folder, name, shipped(f"prometheus/{name}"))
    changes = {
        "scrape_interval: 15s": "scrape_interval: 1s",
        "evaluation_interval: 15s": "evaluation_interval: 1s",
        "gateway:8766": gateway.admin.removeprefix("http://"),
    }
    file = replaced(
        folder, "prometheus.yml", adapted(shipped("prometheus/prometheus.yml"), changes)
    )
    port = free_port()
    argv = [
        *(wanted("prometheus"), f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"),
        *(f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"),
    ]
    with program(argv, folder / "prometheus.log", cwd=folder) as running:
        found = Prometheus(f"http://127.0.0.1:{port}", gateway)

        def ready() -> bool:
            assert running.is_running, running.text
            return fetch(f"{found.url}/-/ready")[0] == 200

        eventually(ready, 30, what="Prometheus to be ready")
        yield found


def metrics_in(expression: str) -> set[str]:
    """The names of metrics in an expression."""
    rest = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expression)
    rest = re.sub(r"\{[^}]*\}", " ", rest)
    rest = re.sub(r"\[[^\]]*\]", " ", rest)
    rest = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", rest)
    words = re.finditer(r"[A-Za-z_:][A-Za-z0-9_:]*", rest)
    return {
        word[0]
        for word in words
        if not rest[word.end() :].lstrip().startswith("(")
        and word[0].lower() not in NOT_METRICS
        and not (word.start() and (rest[word.start() - 1].isdigit()))
    }


def scraped_names(page: str) -> set[str]:
    """The names of all samples on a page of metrics, and what Prometheus adds to them itself."""
    found = re.findall(r"^([A-Za-z_:][A-Za-z0-9_:]*)[ {]", page, re.MULTILINE)
    return {*found, "up"}
