"""One gateway under load with a Prometheus that has seen it, for all tests that only ask."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.deploy.prometheus import Prometheus, prometheus
from tests.kit.fakes import fake
from tests.kit.gateway import Gateway, running_gateway
from tests.kit.http import Legacy, Modern
from tests.kit.waiting import run

SERVERS = {
    "quick": fake("--only", "echo,fail,sleep"),
    "weak": fake("--only", "echo,crash"),
}
# Over an hour: the calls are made once, and whoever asks may come minutes later.
P95_BY_TOOL = (
    "histogram_quantile(0.95, sum by (le, gen_ai_tool_name) "
    "(rate(mcp_server_operation_duration_seconds_bucket[1h])))"
)
CALLED = ("quick__echo", "quick__sleep", "weak__echo")


@pytest.fixture(scope="session")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that has scraped a gateway while it was called."""
    folder = tmp_path_factory.mktemp("watched")
    tools = [{"match": "quick__sleep", "timeout": "10s"}]
    with (
        running_gateway(folder, SERVERS, tools=tools) as gateway,
        prometheus(folder, gateway) as found,
    ):
        gateway.wait_tools(*CALLED)
        run(_load(found, gateway), within_s=60)
        yield found


async def _load(watching: Prometheus, gateway: Gateway) -> None:
    """Call tools, of one client of each era, until Prometheus knows how long each takes."""
    async with Modern.to(gateway.url) as modern, Legacy.to(gateway.url) as legacy:
        await legacy.initialize()
        await legacy.request("tools/list")
        await modern.call("weak__crash")
        while not await asyncio.to_thread(_is_known, watching):
            async with asyncio.TaskGroup() as group:
                for _ in range(20):
                    group.create_task(modern.call("quick__echo", {"text": "x"}))
                    group.create_task(legacy.call("quick__sleep", {"ms": 30}))
                    group.create_task(legacy.call("weak__echo", {"text": "x"}))
                group.create_task(modern.call("quick__fail"))
                group.create_task(modern.call("nobody__knows"))


def _is_known(watching: Prometheus) -> bool:
    """Not NaN for every tool called; and rules have been worked out on it."""
    known = watching.values(P95_BY_TOOL, "gen_ai_tool_name")
    recorded = watching.values(
        "job_tool:mcp_server_operation_duration_seconds:p95_5m", "gen_ai_tool_name"
    )
    return all(known.get(tool, 0) > 0 and recorded.get(tool, 0) > 0 for tool in CALLED)
