"""A configuration changes: rules, tokens and bounds swap at once; who is at it keeps what was."""

import asyncio
import hashlib
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.fakes import fake
from tests.kit.http import Answer, Legacy, Modern
from tests.kit.waiting import eventually_async, run
from tests.operations.changing import Changing, changing, tool_names, who

SERVERS = {"a": fake("--only", "echo,sleep,whoami")}


def token(name: str) -> dict[str, str]:
    """One whose text is its name."""
    return {"name": name, "sha256": hashlib.sha256(name.encode()).hexdigest()}


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {name}"}


def held(conversation: Callable[[Changing], Awaitable[None]], folder: Path, **config: Any) -> None:
    """Hold a conversation with a gateway whose configuration it changes."""

    async def conversed() -> None:
        async with changing(folder, SERVERS, **config) as it:
            await conversation(it)

    run(conversed())


def test_rules_swap_at_once_and_a_call_keeps_what_it_started_with(tmp_path: Path) -> None:
    async def conversation(it: Changing) -> None:
        async with it.gate.modern() as client:
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(client.call("a__sleep", {"ms": 1000}))
                await eventually_async(lambda: it.gate.server("a").in_flight)
                await it.change(tools=[{"match": "a__sleep", "timeout": "100ms"}])
                later = await client.call("a__sleep", {"ms": 1000})
                await it.change(tools=[{"match": "a__sleep", "decision": "deny"}])
                denied = await client.call("a__sleep")

            assert later.result["_meta"]["onegate/error"]["kind"] == "timeout"
            assert denied.error["code"] == -32602
            assert await tool_names(client) == ["a__echo", "a__whoami"]
            assert running.result().text == "slept 1000 ms"

    held(conversation, tmp_path)


def test_a_bound_that_is_raised_lets_in_who_comes_next(tmp_path: Path) -> None:
    async def conversation(it: Changing) -> None:
        async with it.gate.modern() as client:
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(client.call("a__sleep", {"ms": 1000}))
                await eventually_async(lambda: it.gate.server("a").in_flight)
                busy = await client.call("a__sleep", {"ms": 1})
                await it.change(tools=[{"match": "*", "concurrency": 2, "queue": 0}])
                welcome = await client.call("a__sleep", {"ms": 1})
                assert not running.done()

            assert busy.result["_meta"]["onegate/error"]["kind"] == "throttled"
            assert welcome.text == "slept 1 ms"

    held(conversation, tmp_path, tools=[{"match": "*", "concurrency": 1, "queue": 0}])


def test_tokens_swap_at_once(tmp_path: Path) -> None:
    async def conversation(it: Changing) -> None:
        async def status(name: str) -> int:
            async with Modern.to(it.gate.url, bearer(name)) as client:
                return (await client.request("tools/list")).status

        assert [await status("ann"), await status("bob")] == [200, 401]
        await it.change(auth={"tokens": [token("bob")]})
        assert [await status("ann"), await status("bob")] == [401, 200]
        await it.change(auth="none")
        assert [await status("ann"), await status("")] == [200, 200]

    held(conversation, tmp_path, auth={"tokens": [token("ann")]})


def test_hosts_and_origins_swap_at_once(tmp_path: Path) -> None:
    async def conversation(it: Changing) -> None:
        async def statuses() -> list[int]:
            host, origin = {"Host": "mcp.example"}, {"Origin": "https://app.example"}
            async with it.gate.modern() as client:
                message = client.message("tools/list")
                asked = client.routing(message)
                return [
                    (await client.post(message, {**asked, **more})).status
                    for more in (host, origin)
                ]

        assert await statuses() == [403, 403]
        await it.change(allowed_hosts=["mcp.example"], allowed_origins=["https://app.example"])
        assert await statuses() == [200, 200]
        await it.change(allowed_hosts=[], allowed_origins=[])
        assert await statuses() == [403, 403]

    held(conversation, tmp_path)


def test_bounds_of_requests_and_sessions_swap_at_once(tmp_path: Path) -> None:
    async def conversation(it: Changing) -> None:
        text = {"text": "x" * 5000}

        async def called(headers: dict[str, str]) -> Answer:
            async with Modern.to(it.gate.url, headers) as client:
                return await client.call("a__echo", text)

        assert (await called({"X-Long": "y" * 5000})).status == 200
        await it.change(limits={"body": "4KiB"})
        assert (await called({})).status == 413
        await it.change(limits={"header": "4KiB"})
        assert (await called({})).status == 200
        assert (await called({"X-Long": "y" * 5000})).status == 431

        async with it.gate.legacy() as first:
            await it.change(limits={"sessions": 1})
            async with it.gate.legacy() as second:
                assert (await first.call("a__echo", text)).status == 404
                assert (await second.call("a__echo", text)).status == 200

    held(conversation, tmp_path)


def test_what_clients_are_told_about_the_gateway_swaps_at_once(tmp_path: Path) -> None:
    async def conversation(it: Changing) -> None:
        await it.change(instructions="Be kind.")
        async with it.gate.legacy() as client:
            assert client.initialized["instructions"] == "Be kind."

    held(conversation, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"tools": [{"match": "a__echo", "decision": "deny"}]},
        {"default_decision": "deny"},
        {"servers": {"a": {**SERVERS["a"], "prefix": "z"}}},
        {"servers": {**SERVERS, "b": fake("--only", "echo", "--without", "prompts,resources")}},
        {"servers": {}},
    ],
    ids=["rule", "default", "prefix", "added", "removed"],
)
def test_clients_of_both_eras_are_told_that_the_list_is_another(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    async def conversation(it: Changing) -> None:
        async with (
            it.gate.modern() as modern,
            it.gate.legacy() as legacy,
            modern.listening(toolsListChanged=True) as new,
            legacy.listening() as old,
        ):
            await it.change(**change)
            for stream in (new, old):
                told = (await stream.message())["method"]
                while told != "notifications/tools/list_changed":
                    assert told.endswith("/list_changed")
                    told = (await stream.message())["method"]

    held(conversation, tmp_path)


def test_sessions_and_streams_survive_and_nobody_is_told_what_is_no_news(tmp_path: Path) -> None:
    async def conversation(it: Changing) -> None:
        async with it.gate.modern() as modern, it.gate.legacy() as legacy:
            before = await who(legacy, "a")
            async with modern.listening(toolsListChanged=True) as new, legacy.listening() as old:
                for number in range(3):
                    told = await it.change(limits={"drain": f"{number}s"})
                    assert told["ok"]
                assert await who(legacy, "a") == {**before, "calls": before["calls"] + 1}
                await it.change(servers={})
                # The first message there is: so there was none before it.
                for stream in (new, old):
                    assert "list_changed" in (await stream.message())["method"]

    held(conversation, tmp_path)


def test_a_bad_file_changes_nothing_is_explained_and_is_healed_by_the_next(tmp_path: Path) -> None:
    bad = '{"servers": {"a": {"comand": "x"}},\n "tools": [{"match": "*", "decision": "dney"}]}'

    async def conversation(it: Changing) -> None:
        async with it.gate.modern() as client:
            before = await who(client, "a")
            it.file.write_text(bad)
            status, told = await it.reload()

            assert (status, told["ok"]) == (500, False)
            assert "onegate.json:1:20" in told["error"]
            assert "did you mean `command`?" in told["error"]
            assert "onegate.json:2:39" in told["error"]
            (logged,) = it.gate.said("config.refused")
            assert logged["errors"] == told["error"]
            assert await it.metric("onegate_config_last_reload_successful") == 0
            assert (await who(client, "a"))["pid"] == before["pid"]
            assert it.gate.gateway.operator.ready().ok

            since = await it.metric("onegate_config_last_reload_success_timestamp_seconds")
            assert (await it.change())["ok"]
            assert await it.metric("onegate_config_last_reload_successful") == 1
            now = await it.metric("onegate_config_last_reload_success_timestamp_seconds")
            assert now > since
            assert (await who(client, "a"))["pid"] == before["pid"]

    held(conversation, tmp_path)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("gone", "there is no such file"),
        ("folder", "is a folder"),
        ("empty", "is empty"),
        ("binary", "is not UTF-8"),
        ("secret", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_changes_nothing(tmp_path: Path, what: str, words: str) -> None:
    async def conversation(it: Changing) -> None:
        it.file.unlink()
        match what:
            case "folder":
                it.file.mkdir()
            case "empty":
                it.file.touch()
            case "binary":
                it.file.write_bytes(b"\xfe")
            case "secret":
                it.file.write_text(json.dumps({**it.config, "instructions": "${file:none}"}))

        _, told = await it.reload()

        assert words in told["error"]
        async with it.gate.modern() as client:
            assert (await client.call("a__echo", {"text": "still"})).text == "still"

    held(conversation, tmp_path)


def test_a_pipe_that_nobody_writes_to_holds_up_no_reload(tmp_path: Path) -> None:
    async def conversation() -> None:
        os.mkfifo(tmp_path / "pipe")
        aside = {**SERVERS["a"], "env_file": str(tmp_path / "pipe"), "disabled": True}
        async with changing(tmp_path, {**SERVERS, "aside": aside}) as it:
            assert (await it.change(instructions="changed"))["ok"]

    run(conversation(), within_s=20)


def test_what_needs_a_restart_is_named_until_it_is_as_it_was(tmp_path: Path) -> None:
    async def conversation(it: Changing) -> None:
        calls, log = {"path": "other.jsonl"}, {"level": "error"}
        told = await it.change(calls=calls, log=log, limits={"line": "1MiB"}, admin="off")
        assert told["needs_restart"] == ["admin", "calls", "log", "limits.line"]
        (warned,) = it.gate.said("config.unheeded")
        assert warned["settings"] == tuple(told["needs_restart"])
        told = await it.change(default_decision="deny")
        assert told["needs_restart"] == ["admin", "calls", "log", "limits.line"]
        told = await it.change(calls={}, log={}, limits={}, admin="127.0.0.1:0")
        assert told["needs_restart"] == []

    held(conversation, tmp_path)


def test_no_reload_leaves_an_open_address_unguarded(tmp_path: Path) -> None:
    async def conversation(it: Changing) -> None:
        listen = {"listen": "127.0.0.1:0"}
        keyless = {key: held for key, held in it.config.items() if key != "auth"}

        told = await it.write(json.dumps({**keyless, **listen}))
        assert "keep `auth` until then" in told["error"]
        async with Legacy.to(it.gate.url.replace("0.0.0.0", "127.0.0.1")) as client:
            assert (await client.request("ping")).status == 401

        told = await it.change(**listen)
        assert told["needs_restart"] == ["listen"]

    held(conversation, tmp_path, listen="0.0.0.0:0", auth={"tokens": [token("ann")]})
