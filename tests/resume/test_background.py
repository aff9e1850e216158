"""Slow calls that go on after their client was answered: submit, then ask.

A tool rule says `background: after ...`; the rest is fetched with the tool onegate__result.
"""

import hashlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conversations.talking import Gate, client_of, opened_gate, recorded
from tests.kit.http import Answer, Legacy, Modern
from tests.kit.waiting import eventually, eventually_async, run
from tests.resume.breaking import session_of
from tests.resume.test_modern_tasks import DECLARED, about, state_of

RESULT = "onegate__result"
EXTENSION = "io.modelcontextprotocol/tasks"
RULES = [
    {"match": "old__quick_*", "background": "never"},
    {"match": "old__*", "background": "after 300ms", "longest": "20s"},
]
TOKENS = {"ann": "ann-token-0123456789", "bob": "bob-token-0123456789"}
Message = dict[str, Any]

each_era = pytest.mark.parametrize("era", ["legacy", "modern"])


def server(folder: Path, **keys: Any) -> Message:
    return {"old": recorded(folder, "old", "--era", "legacy", protocol="legacy", **keys)}


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("background")
    with opened_gate(folder, server(folder), tools=RULES) as gate:
        gate.gateway.wait_tools("old__echo")
        yield gate


def handle_in(answer: Answer) -> str:
    told = answer.result["structuredContent"]
    assert told["status"] == "working", told
    assert told["handle"] in answer.text
    return str(told["handle"])


async def rest(client: Legacy | Modern, handle: str, **arguments: Any) -> Answer:
    return await client.call(RESULT, {"handle": handle, **arguments})


async def whole(client: Legacy | Modern, handle: str) -> Answer:
    """What the call ends with, asked for as often as it takes."""
    seen: list[Answer] = []

    async def there() -> bool:
        seen.append(await rest(client, handle))
        told = seen[-1].result.get("structuredContent", {})
        return bool(told.get("status") != "working")

    await eventually_async(there, 10)
    return seen[-1]


@each_era
def test_a_call_that_ends_in_time_is_answered_as_ever(slow: Gate, era: str) -> None:
    async def converse() -> Answer:
        async with client_of(era, slow.url) as client:
            return await client.call("old__echo", {"text": "quick"})

    answer = run(converse())

    assert answer.text == "quick"
    assert "taskId" not in answer.result


@each_era
def test_a_slow_call_ends_with_a_handle_and_its_result_is_fetched_with_it(
    slow: Gate, era: str
) -> None:
    async def converse() -> list[Answer]:
        async with client_of(era, slow.url) as client:
            first = await client.call("old__sleep", {"ms": 900})
            return [first, await whole(client, handle_in(first))]

    first, fetched = run(converse())

    told = first.result["structuredContent"]
    assert (told["tool"], told["ask_with"]) == ("old__sleep", RESULT)
    assert 0.3 <= told["elapsed_s"] < 2
    assert first.result.get("isError") is not True
    assert RESULT in first.text
    assert fetched.text == "slept 900 ms"


def test_a_result_can_be_fetched_again_and_over_another_session(slow: Gate) -> None:
    async def converse() -> list[str]:
        async with session_of(slow.url) as client:
            handle = handle_in(await client.call("old__sleep", {"ms": 500}))
        async with session_of(slow.url) as other:
            return [(await whole(other, handle)).text for _ in range(2)]

    assert run(converse()) == ["slept 500 ms"] * 2


def test_asking_waits_no_longer_than_the_rule_says_and_tells_how_far_it_is(slow: Gate) -> None:
    async def converse() -> Answer:
        async with session_of(slow.url) as client:
            params = {"name": "old__progress", "arguments": {"steps": 50, "ms": 50}}
            message = client.message("tools/call", {**params, "_meta": {"progressToken": 1}})
            first = await client.post(message)
            handle = handle_in(first)
            again = await rest(client, handle)
            await rest(client, handle, cancel=True)
            return again

    again = run(converse())

    assert "is still running" in again.text
    assert "Progress: " in again.text
    assert " of 50" in again.text


def test_progress_goes_to_whoever_waits(slow: Gate) -> None:
    async def converse() -> list[Message]:
        async with session_of(slow.url) as client:
            params = {"name": "old__progress", "arguments": {"steps": 10, "ms": 60}}
            first = await client.post(
                client.message("tools/call", {**params, "_meta": {"progressToken": "mine"}})
            )
            waiting = {"name": RESULT, "arguments": {"handle": handle_in(first)}}
            waiting["_meta"] = {"progressToken": "other"}
            second = await client.post(client.message("tools/call", waiting))
            return first.notices + second.notices

    told = run(converse())

    tokens = [each["params"]["progressToken"] for each in told]
    steps = [each["params"]["progress"] for each in told]
    assert set(tokens) == {"mine", "other"}
    assert tokens == sorted(tokens), "first to the call, then to who asks for its result"
    assert steps == sorted(set(steps))


@each_era
def test_an_end_in_failure_is_told_as_it_would_have_been(slow: Gate, era: str) -> None:
    async def converse() -> list[Answer]:
        async with client_of(era, slow.url) as client:
            hung = handle_in(await client.call("old__hang", {}))
            return [await rest(client, hung, cancel=True), await whole(client, hung)]

    cancelled, after = run(converse())

    assert cancelled.result.get("isError") is not True, "it did what it was told"
    assert "was cancelled" in cancelled.text
    assert after.result["isError"] is True
    assert "was cancelled" in after.text


def test_a_time_limit_still_holds(tmp_path: Path) -> None:
    rules = [{"match": "*", "background": "after 100ms", "timeout": "600ms"}]

    async def converse(gate: Gate) -> Answer:
        async with session_of(gate.url) as client:
            return await whole(client, handle_in(await client.call("old__hang", {})))

    with opened_gate(tmp_path, server(tmp_path), tools=rules) as gate:
        gate.gateway.wait_tools("old__hang")
        answer = run(converse(gate))

    assert answer.result["isError"] is True
    assert answer.result["_meta"]["onegate/error"]["kind"] == "timeout"


def test_cancelling_reaches_the_server_and_the_record(slow: Gate) -> None:
    async def converse() -> None:
        async with session_of(slow.url) as client:
            handle = handle_in(await client.call("old__hang", {}))
            await rest(client, handle, cancel=True)
            await since.told("old", "notifications/cancelled")

    since = slow.mark()
    run(converse())
    records = since.records(number=2)

    ended = {each["name"]: each["outcome"] for each in records}
    assert ended == {"old__hang": "cancelled", RESULT: "ok"}


def test_the_record_is_of_the_whole_call_and_of_each_fetch(slow: Gate) -> None:
    async def converse() -> None:
        async with session_of(slow.url) as client:
            await whole(client, handle_in(await client.call("old__sleep", {"ms": 500})))

    since = slow.mark()
    run(converse())
    records = since.records(number=2)

    (call,) = [each for each in records if each["name"] == "old__sleep"]
    fetch = next(each for each in records if each["name"] == RESULT)
    assert (call["outcome"], call["server"], call["tool"]) == ("ok", "old", "sleep")
    assert call["duration_s"] >= 0.5
    assert (fetch["outcome"], fetch["server"], fetch["tool"]) == ("ok", "onegate", "result")


@each_era
def test_a_handle_nobody_has_is_told_to_the_model(slow: Gate, era: str) -> None:
    async def converse() -> list[Answer]:
        async with client_of(era, slow.url) as client:
            return [await rest(client, "bg-made-up"), await client.call(RESULT, {"handle": 7})]

    for answer in run(converse()):
        assert answer.result["isError"] is True
        assert "no call with this handle" in answer.text


def test_the_handle_of_another_principal_is_as_good_as_none(tmp_path: Path) -> None:
    tokens = [
        {"name": name, "sha256": hashlib.sha256(token.encode()).hexdigest()}
        for name, token in TOKENS.items()
    ]

    async def converse(gate: Gate) -> list[Answer]:
        async with (
            session_of(gate.url, headers={"Authorization": f"Bearer {TOKENS['ann']}"}) as ann,
            session_of(gate.url, headers={"Authorization": f"Bearer {TOKENS['bob']}"}) as bob,
        ):

            async def lists() -> bool:
                tools = (await ann.request("tools/list")).result["tools"]
                return "old__sleep" in [tool["name"] for tool in tools]

            await eventually_async(lists)
            handle = handle_in(await ann.call("old__sleep", {"ms": 600}))
            stolen = [await rest(bob, handle), await rest(bob, handle, cancel=True)]
            return [*stolen, await whole(ann, handle)]

    servers = server(tmp_path)
    with opened_gate(tmp_path, servers, tools=RULES, auth={"tokens": tokens}) as gate:
        *stolen, mine = run(converse(gate))

    assert all("no call with this handle" in answer.text for answer in stolen)
    assert mine.text == "slept 600 ms"


def test_a_client_that_knows_tasks_gets_one(slow: Gate) -> None:
    async def converse() -> list[Any]:
        async with Modern.to(slow.url) as client:
            client.envelope.capabilities = DECLARED
            begun = (await client.call("old__sleep", {"ms": 800})).result
            task = begun["taskId"]
            working = (await about(client, "get", task)).result
            async with client.listening(taskIds=[task]) as stream:
                told = await stream.message()
            discovered = (await client.request("server/discover")).result["capabilities"]
            done = await state_of(client, task, "completed")
            return [discovered, begun, working, told, done]

    discovered, begun, working, told, done = run(converse())

    assert discovered["extensions"] == {EXTENSION: {}}
    assert (begun["resultType"], begun["status"]) == ("task", "working")
    assert begun["createdAt"].endswith("Z")
    assert begun["pollIntervalMs"] > 0
    assert (working["resultType"], working["status"]) == ("complete", "working")
    assert told["method"] == "notifications/tasks"
    assert (told["params"]["taskId"], told["params"]["status"]) == (begun["taskId"], "completed")
    assert told["params"]["result"]["content"][0]["text"] == "slept 800 ms"
    assert done["result"]["content"][0]["text"] == "slept 800 ms"
    assert done["result"]["resultType"] == "complete"


def test_such_a_task_can_be_cancelled(slow: Gate) -> None:
    async def converse() -> Message:
        async with Modern.to(slow.url) as client:
            client.envelope.capabilities = DECLARED
            task = (await client.call("old__hang", {})).result["taskId"]
            assert (await about(client, "cancel", task)).result["resultType"] == "complete"
            return await state_of(client, task, "cancelled")

    assert "result" not in run(converse())


def test_a_client_that_leaves_before_the_handle_cancels_and_after_it_does_not(slow: Gate) -> None:
    """2026-07-28: to close the stream is to cancel; but then the call had its answer."""

    async def converse() -> tuple[int, str]:
        since = slow.mark()
        async with Modern.to(slow.url) as client:
            async with client.streaming(
                "tools/call",
                {
                    "name": "old__progress",
                    "arguments": {"steps": 99, "ms": 20},
                    "_meta": {"progressToken": 1},
                },
            ) as stream:
                await stream.message()
            await since.told("old", "notifications/cancelled")
            handle = handle_in(await client.call("old__sleep", {"ms": 600}))
        async with Modern.to(slow.url) as other:
            text = (await whole(other, handle)).text
        return len(since.heard("old", "notifications/cancelled")), text

    assert run(converse()) == (1, "slept 600 ms")


def test_the_companion_is_listed_only_while_a_rule_needs_it(tmp_path: Path) -> None:
    with opened_gate(tmp_path, server(tmp_path), tools=RULES) as gate:
        gateway = gate.gateway
        gateway.wait_tools("old__echo", RESULT)
        written = json.loads(gateway.file.read_text())
        gateway.file.write_text(json.dumps({**written, "tools": []}))
        gateway.program.send(signal.SIGHUP)
        eventually(lambda: RESULT not in gateway.tool_names(), what="it to go")
        gateway.file.write_text(json.dumps(written))
        gateway.program.send(signal.SIGHUP)
        gateway.wait_tools(RESULT)


def test_a_reload_without_the_rule_leaves_what_goes_on_its_way_back(tmp_path: Path) -> None:
    """Whoever was given a handle was promised the result."""

    async def converse(gate: Gate) -> str:
        async with session_of(gate.url) as client:
            handle = handle_in(await client.call("old__sleep", {"ms": 600}))
            file = gate.gateway.file
            file.write_text(json.dumps({**json.loads(file.read_text()), "tools": []}))
            gate.gateway.program.send(signal.SIGHUP)

            async def is_reloaded() -> bool:
                quick = await client.call("old__sleep", {"ms": 350})
                return "structuredContent" not in quick.result

            await eventually_async(is_reloaded, 10)
            return (await whole(client, handle)).text

    with opened_gate(tmp_path, server(tmp_path), tools=RULES) as gate:
        gate.gateway.wait_tools("old__sleep", RESULT)
        assert run(converse(gate)) == "slept 600 ms"


def test_without_such_a_rule_nothing_of_it_is_seen(gate: Gate) -> None:
    async def offered() -> Any:
        async with Modern.to(gate.url) as client:
            return (await client.request("server/discover")).result["capabilities"]

    assert RESULT not in gate.gateway.tool_names()
    assert "extensions" not in run(offered())


def test_what_is_denied_by_default_does_not_deny_the_companion(tmp_path: Path) -> None:
    rules = [{"match": "old__sleep", "decision": "allow", "background": "after 200ms"}]
    with opened_gate(tmp_path, server(tmp_path), tools=rules, default_decision="deny") as gate:
        gate.gateway.wait_tools("old__sleep")
        assert set(gate.gateway.tool_names()) == {"old__sleep", RESULT}


def test_a_tool_that_may_end_with_a_handle_promises_no_shape_of_its_result(
    tmp_path: Path,
) -> None:
    """SDK clients hold structured content against the schema, and would refuse the handle."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tools = [
        {"name": name, "inputSchema": {"type": "object"}, "outputSchema": schema}
        for name in ("slow", "quick")
    ]
    listed = tmp_path / "tools.json"
    listed.write_text(json.dumps(tools))
    section = recorded(tmp_path, "old", "--tools-file", listed)

    async def converse(gate: Gate) -> Message:
        async with Modern.to(gate.url) as client:
            found = (await client.request("tools/list")).result["tools"]
            return {tool["name"]: "outputSchema" in tool for tool in found}

    rules = [{"match": "*__slow", "background": "after 1s"}]
    with opened_gate(tmp_path, {"old": section}, tools=rules) as gate:
        gate.gateway.wait_tools("old__slow")
        seen = run(converse(gate))

    assert seen == {"old__slow": False, "old__quick": True, RESULT: False}


def test_a_gateway_that_stops_ends_what_goes_on_and_writes_it_down(tmp_path: Path) -> None:
    async def converse(gate: Gate) -> None:
        async with session_of(gate.url) as client:
            handle_in(await client.call("old__hang", {}))

    with opened_gate(tmp_path, server(tmp_path), tools=RULES) as gate:
        gate.gateway.wait_tools("old__hang")
        run(converse(gate))
    (record,) = gate.records()

    assert (record["name"], record["outcome"]) == ("old__hang", "cancelled")
