"""What a request leaves behind in the memory: nothing of its own size."""

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.fakes import fake
from tests.kit.http import Legacy, Modern
from tests.kit.waiting import run
from tests.servers.gate import Gate, gate

LARGE = "x" * 3 * 10**5
FAILING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tools/call", {"name": "nope", "arguments": {"text": LARGE}}),
    ("tools/call", {"name": "it__error", "arguments": {"text": LARGE}}),
    ("resources/read", {"uri": "no://such", "more": LARGE}),
    ("prompts/get", {"name": "nope", "arguments": {"text": LARGE}}),
)


@pytest.fixture(autouse=True)
def _traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def in_use() -> int:
    """Bytes, of this process, which is the gateway's as well."""
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize(("method", "params"), FAILING)
def test_a_call_that_fails_leaves_nothing_for_the_collector(
    tmp_path: Path, method: str, params: dict[str, Any], era: str
) -> None:
    """It runs seldom: large requests that waited for it would fill the memory until then."""

    async def asked(client: Legacy | Modern) -> None:
        answer = await client.request(method, params)
        assert answer.error
        before = in_use()
        for _ in range(9):
            await client.request(method, params)
        assert in_use() - before < 3 * len(LARGE)

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake("--only", "error", protocol=era)}) as it:
            await it.ready()
            gc.collect()
            gc.disable()
            try:
                async with it.legacy() as legacy, it.modern() as modern:
                    await asked(legacy)
                    await asked(modern)
            finally:
                gc.enable()

    run(converse())


@pytest.mark.parametrize("meta", [{"progressToken": "PLACE"}, {"traceparent": "PLACE"}, {}])
def test_large_requests_are_not_kept_for_what_they_say_of_their_client(
    tmp_path: Path, meta: dict[str, str]
) -> None:
    async def asked(it: Gate, client: Modern, at: int) -> None:
        said = dict.fromkeys(meta, f"00-{at:032x}-{at:016x}-01")
        info = {"io.modelcontextprotocol/clientInfo": {"name": f"{at}{LARGE}", "version": "1"}}
        arguments = {"text": LARGE if meta else "short"}
        params = {"name": "it__echo", "arguments": arguments, "_meta": said or info}
        assert (await client.request("tools/call", params)).result

    async def converse() -> None:
        async with gate(tmp_path, {"it": fake("--only", "echo")}) as it:
            await it.ready()
            async with it.modern() as client:
                await asked(it, client, 0)
                before = in_use()
                for at in range(1, 10):
                    await asked(it, client, at)
                gc.collect()
                assert in_use() - before < 3 * len(LARGE)

    run(converse())


def test_a_session_keeps_no_capabilities_without_end(tmp_path: Path) -> None:
    async def converse() -> None:
        async with gate(tmp_path, {"it": fake("--only", "echo")}) as it:
            await it.ready()
            async with Legacy.to(it.url) as client:
                declared = {"sampling": {"more": LARGE}}
                params = {"protocolVersion": "2025-11-25", "capabilities": declared}
                refused = await client.request("initialize", params)
                assert (refused.status, refused.error["code"]) == (400, -32602)
                assert "8 KiB" in refused.error["message"]

    run(converse())
