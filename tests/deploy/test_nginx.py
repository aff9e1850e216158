"""One gateway behind a real nginx, on the shipped site: nothing is held back or cut short."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.nginx import NAME, Proxy, nginx
from tests.kit.fakes import fake
from tests.kit.gateway import Gateway, running_gateway
from tests.kit.http import Legacy, Modern, Stream
from tests.kit.sse import events
from tests.kit.waiting import eventually, run
from tests.resume.breaking import read_events

pytestmark = pytest.mark.timeout(120)
HERE = "127.0.0.1:8765"
SERVERS = {"demo": fake("--only", "echo,progress,sleep,add_tool")}


@contextmanager
def behind_nginx(
    folder: Path, settings: dict[str, str] | None = None, **config: Any
) -> Iterator[tuple[Proxy, Gateway]]:
    """`settings`: replacements in the shipped settings; `config`: of the gateway."""
    with running_gateway(folder, SERVERS, allowed_hosts=[NAME], **config) as gateway:
        gateway.wait_tools("demo__echo")
        with nginx(folder, "onegate.conf", {HERE: gateway}, settings) as proxy:
            yield proxy, gateway


def hang_up(stream: Stream) -> None:
    """Close the connection as most clients do. (aiohttp's own way is to wait half a minute for
    an answer to its TLS goodbye, which nginx does not give while it waits for the gateway.)"""
    connection = stream.response.connection
    assert connection is not None
    assert connection.transport is not None
    connection.transport.abort()


def test_clients_of_both_eras_call_through_nginx(tmp_path: Path) -> None:
    async def converse(proxy: Proxy) -> None:
        async with proxy.client(Modern) as modern, proxy.client(Legacy) as legacy:
            assert (await modern.call("demo__echo", {"text": "new"})).text == "new"
            await legacy.initialize()
            assert (await legacy.call("demo__echo", {"text": "old"})).text == "old"
            assert await legacy.delete() in (200, 204)

    with behind_nginx(tmp_path) as (proxy, _):
        run(converse(proxy))


def test_an_event_passes_while_its_call_still_runs_and_leaving_cancels_the_call(
    tmp_path: Path,
) -> None:
    """The call never ends by itself: what is read of it has not waited for its end."""

    async def converse(proxy: Proxy) -> None:
        async with proxy.client(Modern) as client:
            told = {"_meta": {"progressToken": 7}}
            params = {"name": "demo__progress", "arguments": {"steps": 1, "hang": True}, **told}
            async with client.streaming("tools/call", params) as stream:
                first = await stream.message()
                assert first["params"] == {
                    "progressToken": 7, "progress": 1, "total": 1, "message": "step 1",
                }  # fmt: skip
                hang_up(stream)

    def cancelled(gateway: Gateway) -> bool:
        return 'outcome="cancelled",server="demo",tool="progress"} 1.0' in gateway.page("/metrics")

    with behind_nginx(tmp_path) as (proxy, gateway):
        run(converse(proxy))
        eventually(lambda: cancelled(gateway), what="the call to be cancelled")


def test_the_stream_of_a_session_is_open_at_once_and_carries_what_happens(tmp_path: Path) -> None:
    async def converse(proxy: Proxy) -> None:
        async with proxy.client(Legacy) as client, proxy.client(Modern) as other:
            await client.initialize()
            async with client.listening() as stream:
                await other.call("demo__add_tool", {"name": "fresh"})
                told = await stream.message()
                assert told["method"] == "notifications/tools/list_changed"
                hang_up(stream)

    with behind_nginx(tmp_path) as (proxy, _):
        run(converse(proxy))


def test_silence_longer_than_nginx_waits_is_bridged_where_the_client_takes_streams(
    tmp_path: Path,
) -> None:
    """20 s of patience, 25 s of silence. The client that takes no stream shows what would be."""

    async def call(proxy: Proxy) -> str:
        async with proxy.client(Modern) as client:
            return (await client.call("demo__sleep", {"ms": 25_000})).text

    async def held(proxy: Proxy, over: asyncio.Event) -> str:
        async with proxy.client(Legacy) as client, proxy.client(Modern) as other:
            await client.initialize()
            async with client.listening() as stream:
                await over.wait()
                await other.call("demo__add_tool", {"name": "late"})
                told = await stream.message()
                hang_up(stream)
                return str(told["method"])

    async def without_streams(proxy: Proxy) -> int:
        async with proxy.client(Modern, {"Accept": "application/json"}) as client:
            return (await client.call("demo__sleep", {"ms": 25_000})).status

    async def converse(proxy: Proxy) -> None:
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            long = group.create_task(call(proxy))
            plain = group.create_task(without_streams(proxy))
            stream = group.create_task(held(proxy, over))
            assert await long == "slept 25000 ms"
            over.set()
        assert stream.result() == "notifications/tools/list_changed"
        assert plain.result() == 504

    patience = {"proxy_read_timeout 11m": "proxy_read_timeout 20s"}
    with behind_nginx(tmp_path, patience) as (proxy, _):
        run(converse(proxy), within_s=60)


def test_streams_that_get_old_are_gone_on_with_and_nothing_is_lost(tmp_path: Path) -> None:
    """`limits.stream_age`: the gateway ends them before nginx would. A call of a modern client
    has no other way than its stream, and keeps it."""
    works = {"name": "demo__progress", "arguments": {"steps": 40, "ms": 50}}
    told = {**works, "_meta": {"progressToken": "p"}}

    async def polled(proxy: Proxy) -> tuple[int, list[Any]]:
        async with proxy.client(Legacy) as client:
            await client.initialize()
            async with client.opened(client.message("tools/call", told)) as stream:
                seen = [await read_events(stream)]
            while not any("result" in json.loads(data) for data in seen[-1].data):
                async with client.listening(seen[-1].last_id) as stream:
                    seen.append(await read_events(stream))
            return len(seen), [json.loads(data) for each in seen for data in each.data]

    async def heard(proxy: Proxy) -> tuple[int, list[str]]:
        async with proxy.client(Legacy) as client, proxy.client(Modern) as other:
            await client.initialize()
            messages: list[str] = []
            last, streams = None, 0
            while len(messages) < 4:
                async with client.listening(last) as stream:
                    await other.call("demo__add_tool", {"name": f"fresh{streams}"})
                    seen = await read_events(stream)
                last, streams = seen.last_id, streams + 1
                messages += [json.loads(data)["method"] for data in seen.data]
            return streams, messages

    async def listened(proxy: Proxy) -> Any:
        async with (
            proxy.client(Modern) as client,
            client.listening(toolsListChanged=True) as stream,
        ):
            *_, last = [json.loads(event.data) async for event in stream.events if event.data]
            return last["result"]

    async def whole(proxy: Proxy) -> list[int]:
        async with proxy.client(Modern) as client:
            answer = await client.request("tools/call", told)
            assert answer.text == "40 steps"
            return [each["params"]["progress"] for each in answer.notices]

    async def converse(proxy: Proxy) -> tuple[Any, Any, Any, Any]:
        return await asyncio.gather(polled(proxy), heard(proxy), listened(proxy), whole(proxy))

    with behind_nginx(tmp_path, limits={"stream_age": "400ms"}) as (proxy, _):
        (parts, messages), (streams, changes), closing, steps = run(converse(proxy), within_s=60)

    assert parts > 2
    assert [m["params"]["progress"] for m in messages[:-1]] == list(range(1, 41)) == steps
    assert messages[-1]["result"]["content"][0]["text"] == "40 steps"
    assert streams > 2
    assert set(changes) == {"notifications/tools/list_changed"}
    assert closing["resultType"] == "complete"


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
def test_bodies_and_headers_pass_up_to_the_gateways_own_limits(tmp_path: Path) -> None:
    async def converse(proxy: Proxy) -> None:
        text = "x" * 3_900_000
        async with proxy.client(Modern, {"X-Long": "y" * 50_000}) as client:
            assert (await client.call("demo__echo", {"text": text})).text == text

    with behind_nginx(tmp_path) as (proxy, _):
        run(converse(proxy))


def test_the_gateway_still_checks_names_and_keeps_its_operators_pages(tmp_path: Path) -> None:
    async def converse(proxy: Proxy) -> None:
        async with proxy.client(Modern, {"Host": "evil.example"}) as client:
            assert (await client.request("tools/list")).status == 403
            for path in ("/metrics", "/livez", "/", "/mcp/"):
                async with client.http.get(proxy.url.removesuffix("/mcp") + path) as answer:
                    assert answer.status == 404

    with behind_nginx(tmp_path) as (proxy, _):
        run(converse(proxy))


def test_clients_from_before_streamable_http_pass_where_the_gateway_serves_them(
    tmp_path: Path,
) -> None:
    async def first_event(proxy: Proxy) -> str:
        async with proxy.client(Legacy) as client:
            url = proxy.url.removesuffix("/mcp") + "/sse"
            async with client.http.get(url, headers={"Accept": "text/event-stream"}) as answer:
                stream = Stream(answer, events(answer.content.iter_any()))
                event = await anext(stream.events)
                while event.comment is not None:
                    event = await anext(stream.events)
                hang_up(stream)
                return event.event

    with behind_nginx(tmp_path, legacy_sse=True) as (proxy, _):
        assert run(first_event(proxy)) == "endpoint"
