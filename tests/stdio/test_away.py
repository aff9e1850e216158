"""The gateway comes and goes; the client's conversation stays one conversation."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.fakes import fake
from tests.kit.gateway import stop
from tests.kit.http import Message
from tests.kit.ports import free_port
from tests.kit.waiting import eventually
from tests.stdio.talking import gateway_at, seconds, speaking, url_of

SOON_S = 2.5
"""A second is the promise on a machine that does nothing else."""


@pytest.fixture
def port() -> Iterator[int]:
    yield free_port()


def once_known(folder: Path, port: int) -> None:
    """A client of each era lists what there is, once."""
    with (
        gateway_at(folder, port, {"old": fake()}) as gateway,
        speaking(folder, "--url", url_of(port)) as client,
    ):
        gateway.wait_tools("old__echo")
        client.initialize()
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
            client.request(method)
            client.request_modern(method)
        client.close()
        assert client.wait_exit() == 0


def test_what_was_seen_last_is_offered_while_the_gateway_is_away(tmp_path: Path, port: int) -> None:
    once_known(tmp_path, port)
    with speaking(tmp_path, "--url", url_of(port)) as client:
        welcome: Message = {}
        assert seconds(lambda: welcome.update(client.initialize())) < SOON_S
        assert welcome["capabilities"]["tools"] == {"listChanged": True}
        assert "cannot be reached" in welcome["instructions"]
        assert seconds(lambda: client.request("tools/list")) < SOON_S
        assert "old__echo" in client.tool_names()
        prompts = client.request("prompts/list")["result"]["prompts"]
        assert "old__greet" in [each["name"] for each in prompts]

        found = client.request_modern("server/discover")["result"]
        assert found["supportedVersions"] == ["2026-07-28"]
        listed = client.request_modern("tools/list")["result"]
        assert (listed["resultType"], listed["ttlMs"]) == ("complete", 0)
        assert "old__echo" in [each["name"] for each in listed["tools"]]


def test_a_client_may_begin_while_nothing_is_known(tmp_path: Path, port: int) -> None:
    with speaking(tmp_path, "--url", url_of(port)) as client:
        assert client.initialize("2025-06-18")["protocolVersion"] == "2025-06-18"
        assert client.tool_names() == []
        assert client.request("ping")["result"] == {}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_call_while_the_gateway_is_away_says_so_to_the_model(
    tmp_path: Path, port: int, era: str
) -> None:
    with speaking(tmp_path, "--url", url_of(port)) as client:
        if era == "legacy":
            client.initialize()
        call = client.call if era == "legacy" else client.call_modern

        result = call("old__echo", {"text": "hi"})

        assert result["isError"] is True
        text = result["content"][0]["text"]
        assert url_of(port) in text
        assert "onegate serve" in text
        told = result["_meta"]["onegate/error"]
        assert (told["kind"], told["retryable"]) == ("unavailable", True)
        assert (result.get("resultType") == "complete") is (era == "modern")
        read = {"uri": "fake://plain"}
        reading = client.request if era == "legacy" else client.request_modern
        assert reading("resources/read", read)["error"]["data"]["kind"] == "unavailable"


def test_the_gateway_comes_and_the_client_is_told(tmp_path: Path, port: int) -> None:
    with speaking(tmp_path, "--url", url_of(port)) as client:
        client.initialize()
        listen = {"notifications": {"toolsListChanged": True}}
        client.begin_modern("subscriptions/listen", listen, "mine")
        client.notice("notifications/subscriptions/acknowledged")
        assert client.tool_names() == []
        with gateway_at(tmp_path, port, {"old": fake()}):
            eventually(lambda: "old__echo" in client.tool_names(), 20)
            eventually(lambda: "answers" in client.errors)
            assert client.errors.count("cannot be reached") == 1, "once, not at each try"
            assert client.call("old__echo", {"text": "hi"})["content"][0]["text"] == "hi"
            changed = "notifications/tools/list_changed"
            client.hear(lambda m: m.get("method") == changed and "_meta" not in m.get("params", {}))
            client.hear(lambda m: m.get("method") == changed and "_meta" in m.get("params", {}))
    acknowledged = [m for m in client.heard if m.get("method", "").endswith("/acknowledged")]
    assert len(acknowledged) == 1, "to the client it is one listen"


def test_a_restart_goes_unnoticed_but_for_lists_to_be_read_again(tmp_path: Path, port: int) -> None:
    """Its sessions are gone with it (404): another is opened, with all the client wished for."""
    with speaking(tmp_path, "--url", url_of(port)) as client:
        with gateway_at(tmp_path, port, {"old": fake("--era", "legacy")}) as gateway:
            client.initialize()
            gateway.wait_tools("old__echo")
            assert client.request("logging/setLevel", {"level": "error"})["result"] == {}
            assert "result" in client.request("resources/subscribe", {"uri": "fake://plain"})
            stop(gateway)
        with gateway_at(tmp_path, port, {"old": fake("--era", "legacy")}) as gateway:
            gateway.wait_tools("old__echo")
            assert client.call("old__echo", {"text": "on"})["content"][0]["text"] == "on"

            since = len(client.lines)
            client.call("old__log", {"level": "info", "text": "quiet"})
            client.call("old__log", {"level": "error", "text": "loud"})
            levels = [m["params"]["level"] for m in client.heard[since:] if "method" in m]
            assert "info" not in levels

            def updated() -> bool:
                client.call("old__touch", {"uri": "fake://plain"})
                return any(
                    m.get("method") == "notifications/resources/updated" for m in client.heard
                )

            eventually(updated, 20)


def test_a_session_the_gateway_has_forgotten_is_replaced_within_the_call(
    tmp_path: Path, port: int
) -> None:
    """A restart while the client's machine slept: the next request is the first to notice (404)."""
    servers = {"old": fake("--era", "legacy")}
    with speaking(tmp_path, "--url", url_of(port)) as client:
        with gateway_at(tmp_path, port, servers) as gateway:
            client.initialize()
            gateway.wait_tools("old__echo")
            client.call("old__echo")
            client.process.send_signal(signal.SIGSTOP)
            stop(gateway)
        with gateway_at(tmp_path, port, servers) as gateway:
            gateway.wait_tools("old__echo")
            id_ = client.begin("tools/call", {"name": "old__echo", "arguments": {"text": "on"}})
            client.process.send_signal(signal.SIGCONT)
            assert client.answer(id_)["result"]["content"][0]["text"] == "on"
            client.notice("notifications/tools/list_changed")


def test_a_gateway_killed_in_mid_call_fails_the_call_and_heals(tmp_path: Path, port: int) -> None:
    with speaking(tmp_path, "--url", url_of(port)) as client:
        record = tmp_path / "record"
        with gateway_at(tmp_path, port, {"old": fake("--record", record)}) as gateway:
            client.initialize()
            gateway.wait_tools("old__echo")
            working = {"name": "old__progress", "arguments": {"steps": 1, "hang": True}}
            legacy = client.begin("tools/call", {**working, "_meta": {"progressToken": "t"}})
            client.notice("notifications/progress")  # so its answer is a stream, to be resumed
            modern = client.begin_modern("tools/call", {"name": "old__hang", "arguments": {}})
            eventually(lambda: '"hang","arg' in record.read_text())
            gateway.program.send(signal.SIGKILL)
            gateway.program.wait_exit()
            for id_ in (legacy, modern):
                result = client.answer(id_)["result"]
                assert result["isError"] is True
                assert result["_meta"]["onegate/error"]["retryable"] is False
        with gateway_at(tmp_path, port, {"old": fake()}) as gateway:
            gateway.wait_tools("old__echo")
            client.notice("notifications/tools/list_changed")
            assert client.call("old__echo", {"text": "on"})["content"][0]["text"] == "on"


def test_a_question_of_a_gateway_that_is_gone_is_withdrawn(tmp_path: Path, port: int) -> None:
    """Else a person sits before a form that nobody waits for; and its answer is nobody else's."""
    asking = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
    late = {"role": "assistant", "content": {"type": "text", "text": "late"}, "model": "m"}
    servers = {"old": fake("--era", "legacy")}
    with speaking(tmp_path, "--url", url_of(port)) as client:
        with gateway_at(tmp_path, port, servers) as gateway:
            gateway.wait_tools("old__echo")
            client.initialize(sampling={})
            id_ = client.begin("tools/call", {"name": "old__ask", "arguments": asking})
            question = client.notice("sampling/createMessage")["id"]
            gateway.program.send(signal.SIGKILL)
            gateway.program.wait_exit()
            assert client.notice("notifications/cancelled")["params"]["requestId"] == question
            assert client.answer(id_)["result"]["isError"] is True
        with gateway_at(tmp_path, port, servers) as gateway:
            gateway.wait_tools("old__echo")
            client.send({"jsonrpc": "2.0", "id": question, "result": late})
            assert client.call("old__echo", {"text": "on"})["content"][0]["text"] == "on"
            since = len(client.lines)
            id_ = client.begin("tools/call", {"name": "old__ask", "arguments": asking})
            question = client.notice("sampling/createMessage", since)["id"]
            client.send({"jsonrpc": "2.0", "id": question, "result": {**late, "model": "fresh"}})
            assert "fresh" in client.answer(id_)["result"]["content"][0]["text"]


def test_a_wrong_token_is_named_as_the_reason(tmp_path: Path, port: int) -> None:
    digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"  # of "test"
    auth = {"tokens": [{"name": "claude", "sha256": digest}]}
    secret = tmp_path / "token"
    secret.write_text("wrong\n")
    with (
        gateway_at(tmp_path, port, {"old": fake()}, auth=auth),
        speaking(tmp_path, "--url", url_of(port), "--token-file", str(secret)) as client,
        speaking(tmp_path, "--url", url_of(port)) as without,
        speaking(tmp_path, "--url", url_of(port), env={"ONEGATE_TOKEN": "test"}) as right,
    ):
        assert "401" in client.initialize()["instructions"]
        assert "--token-file" in client.call("old__echo")["content"][0]["text"]
        without.initialize()
        assert "wants a token" in without.call("old__echo")["content"][0]["text"]
        assert "does not know this token" in client.call("old__echo")["content"][0]["text"]
        right.initialize()
        eventually(lambda: "old__echo" in right.tool_names())
        assert right.call("old__echo", {"text": "in"})["content"][0]["text"] == "in"

        secret.write_text("test")  # whoever puts it right need not start the client anew

        def is_in() -> bool:
            return bool(client.call("old__echo", {"text": "in"})["content"][0]["text"] == "in")

        eventually(is_in)
        assert "test" not in client.errors
        kept = eventually(lambda: list((tmp_path / "bridged").rglob("*.json")))
        assert not any("test" in each.name for each in kept)


def test_a_state_folder_that_cannot_be_written_costs_a_line(tmp_path: Path, port: int) -> None:
    (tmp_path / "file").write_text("")
    state = {"ONEGATE_STATE": str(tmp_path / "file" / "state")}
    with (
        gateway_at(tmp_path, port, {"old": fake()}),
        speaking(tmp_path, "--url", url_of(port), env=state) as client,
    ):
        client.initialize()
        eventually(lambda: "cannot remember lists" in client.errors)
        assert "result" in client.request("ping")


def test_something_else_at_the_address_is_named_for_what_it_is(tmp_path: Path, port: int) -> None:
    """A port mixed up: what answers there is the operator's address of the gateway."""
    with (
        gateway_at(tmp_path, port, {"old": fake()}) as gateway,
        speaking(tmp_path, "--url", f"{gateway.admin}/mcp") as client,
    ):
        client.initialize()
        assert "no MCP endpoint" in client.call("old__echo")["content"][0]["text"]
