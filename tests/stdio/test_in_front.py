"""A client on pipes in front of a gateway that runs: what it says passes, in both eras.

Source: 2025-11-25 and 2026-07-28, basic/transports, "stdio"; what HTTP needs besides is made up.
"""

import json
from pathlib import Path

import pytest

from tests.kit.fakes import fake
from tests.kit.gateway import Gateway, running_gateway
from tests.kit.http import Message
from tests.kit.waiting import eventually
from tests.stdio.talking import Speaker, sessions, speaking

PROGRESS = "notifications/progress"


def told(gateway: Gateway, server: str) -> str:
    """All that a server has read so far."""
    return (gateway.file.parent / f"{server}.jsonl").read_text()


def test_a_legacy_client_lists_calls_and_hears_progress(client: Speaker) -> None:
    assert client.initialize()["protocolVersion"] == "2025-11-25"
    assert {"old__echo", "new__echo"} <= set(client.tool_names())

    for server in ("old", "new"):
        params = {
            "name": f"{server}__progress",
            "arguments": {"steps": 2},
            "_meta": {"progressToken": f"{server}-token"},
        }
        assert "result" in client.request("tools/call", params)

    tokens = [m["params"]["progressToken"] for m in client.heard if m.get("method") == PROGRESS]
    assert tokens == ["old-token"] * 2 + ["new-token"] * 2


def test_a_modern_client_discovers_calls_and_hears_progress(client: Speaker) -> None:
    found = client.request_modern("server/discover")["result"]
    assert "2026-07-28" in found["supportedVersions"]
    token = {"_meta": {"progressToken": 7}}

    result = client.call_modern("new__progress", {"steps": 2}, **token)

    assert result["resultType"] == "complete"
    assert [m["params"]["progressToken"] for m in client.heard if "method" in m] == [7, 7]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_older_revisions_are_spoken_as_they_are(client: Speaker, version: str) -> None:
    assert client.initialize(version)["protocolVersion"] == version
    assert client.call("old__echo", {"text": "hello"})["content"][0]["text"] == "hello"


def test_ids_come_back_as_they_were_whatever_they_are(client: Speaker) -> None:
    client.initialize()
    for id_ in (0, "zero", -3, "é\u2028"):
        assert client.answer(client.begin("ping", id_=id_))["id"] == id_


def test_arguments_go_into_headers_though_no_list_was_ever_asked_for(client: Speaker) -> None:
    """The gateway refuses the first try (-32020); the bridge reads the list, and tries again."""
    result = client.call_modern("mapped__routed", {"region": "Zürich"})

    assert "Zürich" in result["content"][0]["text"]


@pytest.mark.parametrize("server", ["old", "new"])
def test_a_cancelled_legacy_call_is_cancelled_at_its_server(
    client: Speaker, gateway: Gateway, server: str
) -> None:
    client.initialize()
    since = told(gateway, server).count("notifications/cancelled")
    calls = told(gateway, server).count("tools/call")
    id_ = client.begin("tools/call", {"name": f"{server}__hang", "arguments": {}})
    eventually(lambda: told(gateway, server).count("tools/call") > calls)

    client.notify("notifications/cancelled", {"requestId": id_, "reason": "enough"})

    eventually(lambda: told(gateway, server).count("notifications/cancelled") > since)
    assert "result" in client.request("ping")
    assert not [m for m in client.heard if m.get("id") == id_], "cancelled: nothing is said"


@pytest.mark.parametrize("server", ["old", "new"])
def test_a_cancelled_modern_call_is_cancelled_at_its_server(
    client: Speaker, gateway: Gateway, server: str
) -> None:
    """On pipes it is a message; over HTTP the stream is closed."""
    since = told(gateway, server).count("notifications/cancelled")
    calls = told(gateway, server).count("tools/call")
    id_ = client.begin_modern("tools/call", {"name": f"{server}__hang", "arguments": {}})
    eventually(lambda: told(gateway, server).count("tools/call") > calls)

    client.notify("notifications/cancelled", {"requestId": id_})

    eventually(lambda: told(gateway, server).count("notifications/cancelled") > since)
    assert client.call_modern("new__echo", {"text": "on"})["content"][0]["text"] == "on"
    assert not [m for m in client.heard if m.get("id") == id_]


def test_a_cancellation_right_behind_its_call_is_not_lost(
    client: Speaker, gateway: Gateway
) -> None:
    """They go over connections of their own, so one may overtake the other."""
    client.initialize()
    client.call("old__echo")
    for _ in range(5):
        id_ = client.begin("tools/call", {"name": "old__hang", "arguments": {}})
        client.notify("notifications/cancelled", {"requestId": id_})

    assert "result" in client.request("ping")
    nothing = 'onegate_calls_in_flight{server="old"} 0.0'
    eventually(lambda: nothing in gateway.page("/metrics"))


def test_a_question_reaches_the_client_and_its_answer_the_server(client: Speaker) -> None:
    client.initialize(sampling={})
    wanted = {"messages": [], "maxTokens": 5}
    asking = {"method": "sampling/createMessage", "params": wanted}
    id_ = client.begin("tools/call", {"name": "old__ask", "arguments": asking})

    question = client.notice("sampling/createMessage")
    answer = {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"}
    client.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})

    said = client.answer(id_)["result"]["content"][0]["text"]
    assert json.loads(said)["result"] == answer


def test_an_answer_that_nobody_can_read_is_one_all_the_same(client: Speaker) -> None:
    client.initialize(sampling={})
    wanted = {"messages": [], "maxTokens": 5}
    asking = {"method": "sampling/createMessage", "params": wanted}
    id_ = client.begin("tools/call", {"name": "old__ask", "arguments": asking})

    question = client.notice("sampling/createMessage")
    client.send({"jsonrpc": "2.0", "id": question["id"], "result": "yes"})

    assert "cannot be read" in str(client.answer(id_))


def test_a_modern_question_passes_as_a_result_and_the_retry_as_a_call(client: Speaker) -> None:
    client.envelope.capabilities = {"elicitation": {"form": {}}}
    form = {"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}}
    asking = {"method": "elicitation/create", "params": {"mode": "form", **form}}
    first = client.call_modern("new__ask", asking)
    assert first["resultType"] == "input_required"

    answers = {key: {"action": "accept", "content": {}} for key in first["inputRequests"]}
    state = {"requestState": first["requestState"]} if "requestState" in first else {}
    second = client.call_modern("new__ask", asking, inputResponses=answers, **state)

    assert second["resultType"] == "complete"


def test_a_legacy_client_hears_that_lists_change(client: Speaker) -> None:
    client.initialize()
    client.call("old__echo")
    since = len(client.lines)
    client.call("old__add_tool", {"name": "fresh"})
    client.notice("notifications/tools/list_changed", since)
    eventually(lambda: "old__fresh" in client.tool_names())
    client.call("old__remove_tool", {"name": "fresh"})
    eventually(lambda: "old__fresh" not in client.tool_names())


def test_two_listens_share_the_pipe_and_are_told_apart(client: Speaker) -> None:
    """2026-07-28: each notification carries the id of its listen; a cancelled one is silent."""
    wanted = {"notifications": {"toolsListChanged": True}}
    client.begin_modern("subscriptions/listen", wanted, "one")
    client.begin_modern("subscriptions/listen", wanted, "two")

    def about(listen: str, method: str) -> int:
        tag = "io.modelcontextprotocol/subscriptionId"
        heard = [m for m in client.heard if m.get("method", "").endswith(method)]
        return sum(m["params"]["_meta"][tag] == listen for m in heard)

    eventually(lambda: about("one", "acknowledged") and about("two", "acknowledged"))
    client.call_modern("new__add_tool", {"name": "fresh"})
    eventually(lambda: about("one", "list_changed") and about("two", "list_changed"))
    client.notify("notifications/cancelled", {"requestId": "one"})
    client.request_modern("server/discover")
    heard = about("one", "list_changed")
    client.call_modern("new__remove_tool", {"name": "fresh"})
    eventually(lambda: about("two", "list_changed") >= 2)
    assert about("one", "list_changed") == heard


def test_a_batch_is_answered_as_one_where_the_revision_has_them(client: Speaker) -> None:
    """2025-03-26 alone."""
    client.initialize("2025-03-26")
    client.send(
        [
            {"jsonrpc": "2.0", "id": "a", "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
            {"jsonrpc": "2.0", "id": "b", "method": "tools/nothing"},
        ]
    )
    eventually(lambda: any(line.startswith(b"[") for line in client.lines))
    answers = json.loads(next(line for line in client.lines if line.startswith(b"[")))
    assert {each["id"]: "result" in each for each in answers} == {"a": True, "b": False}


def test_a_batch_is_refused_elsewhere(client: Speaker) -> None:
    client.initialize()
    client.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
    assert client.hear(lambda m: m.get("id", 0) is None)["error"]["code"] == -32600


def test_an_error_of_a_server_keeps_its_code(client: Speaker) -> None:
    client.initialize()
    answer = client.request(
        "tools/call", {"name": "old__error", "arguments": {"code": -7, "message": "no"}}
    )
    assert (answer["error"]["code"], answer["error"]["message"]) == (-7, "no")


def test_what_comes_before_initialize_is_refused_in_words(client: Speaker) -> None:
    assert "initialize" in client.request("tools/list")["error"]["message"]


@pytest.mark.parametrize("said", [{}, {"jsonrpc": "1.0"}, {"jsonrpc": 2.0}])
def test_a_message_that_is_not_of_this_json_rpc_is_refused(client: Speaker, said: Message) -> None:
    client.initialize()
    client.send({**said, "id": "mine", "method": "ping"})
    error = client.answer("mine")["error"]
    assert (error["code"], "jsonrpc" in error["message"]) == (-32600, True)


@pytest.mark.parametrize("method", ["ping\r\nEvil: yes", "pïng", "a\nb"])
def test_nothing_of_a_message_can_become_a_header_of_its_own(client: Speaker, method: str) -> None:
    assert client.request_modern(method)["error"]["code"] == -32600
    client.envelope.version = "2026-07-28\r\nEvil: yes"
    assert client.request_modern("server/discover")["error"]["code"] == -32600
    client.envelope.version = "2026-07-28"
    assert "result" in client.request_modern("server/discover")


def test_a_client_may_begin_anew(client: Speaker, gateway: Gateway) -> None:
    """The session before is ended, not forgotten."""
    client.initialize()
    before = sessions(gateway)
    for version in ("2025-06-18", "2025-03-26"):
        assert client.initialize(version)["protocolVersion"] == version
        assert client.call("old__echo", {"text": "hi"})["content"][0]["text"] == "hi"
    eventually(lambda: sessions(gateway) == before)


def test_a_gateway_is_reached_through_its_socket(tmp_path: Path) -> None:
    socket = tmp_path / "g.sock"
    with (
        running_gateway(tmp_path, {"old": fake()}, listen=f"unix:{socket}"),
        speaking(tmp_path, "--url", f"unix:{socket}") as client,
    ):
        client.initialize()
        eventually(lambda: "old__echo" in client.tool_names())
        assert client.call("old__echo", {"text": "hi"})["content"][0]["text"] == "hi"
