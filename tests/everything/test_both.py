"""The everything-server serves both eras on one pipe, and neither locks the other out."""

import pytest

from tests.everything.client import P, enveloped, everything


def test_both_eras_are_served_in_turn() -> None:
    with everything() as lines:
        assert lines.ask("server/discover", _meta=enveloped())["result"]["supportedVersions"]
        assert lines.initialize(version="2025-06-18")["result"]["protocolVersion"] == "2025-06-18"
        legacy = lines.ask("tools/list")["result"]
        modern = lines.ask("tools/list", _meta=enveloped())["result"]
        assert legacy["tools"] == modern["tools"]
        assert "resultType" not in legacy
        assert (modern["resultType"], modern["ttlMs"]) == ("complete", 0)
        assert modern["_meta"][f"{P}serverInfo"]["name"] == "everything"


@pytest.mark.parametrize("era", ["legacy", "both"])
def test_a_legacy_request_before_initialize_is_refused(era: str) -> None:
    with everything("--era", era) as lines:
        assert lines.ask("tools/list")["error"]["code"] == -32600
        assert lines.ask("ping")["result"] == {}


def test_a_server_of_one_era_refuses_the_other() -> None:
    with everything("--era", "legacy") as lines:
        lines.initialize()
        assert lines.ask("server/discover", _meta=enveloped())["error"]["code"] == -32601
        assert "resultType" not in lines.ask("tools/list", _meta=enveloped())["result"]
    with everything("--era", "modern") as lines:
        error = lines.initialize()["error"]
        assert (error["code"], error["data"]["supported"]) == (-32022, ["2026-07-28"])
        assert lines.ask("tools/list")["error"]["code"] == -32602


@pytest.mark.parametrize("text", ["{", "nonsense", '{"jsonrpc":"2.0","id":1'])
def test_what_is_not_json_is_refused_and_the_pipe_goes_on(text: str) -> None:
    with everything() as lines:
        lines.write(text)
        assert lines.wait(id=None)["error"]["code"] == -32700
        assert lines.ask("ping")["result"] == {}


@pytest.mark.parametrize(
    "text", ["[]", "1", '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}']
)
def test_what_is_no_message_is_refused_and_the_pipe_goes_on(text: str) -> None:
    with everything() as lines:
        lines.write(text)
        assert lines.wait(id=None)["error"]["code"] == -32600
        assert lines.ask("ping")["result"] == {}


def test_closing_the_pipe_ends_calls_and_listen_streams_and_the_server() -> None:
    with everything() as lines:
        lines.start("tools/call", name="test_lasting", arguments={"seconds": 60}, _meta=enveloped())
        stream = lines.start(
            "subscriptions/listen", notifications={"toolsListChanged": True}, _meta=enveloped()
        )
        lines.wait(method="notifications/subscriptions/acknowledged")
        assert lines.close() == 0
        closing = lines.wait(id=stream)["result"]
        assert closing["_meta"][f"{P}subscriptionId"] == stream


@pytest.mark.parametrize("request_id", [0, "", "1", 7])
def test_ids_come_back_with_their_value_and_type(request_id: int | str) -> None:
    with everything() as lines:
        lines.send(id=request_id, method="ping")
        assert lines.wait(id=request_id)["result"] == {}
