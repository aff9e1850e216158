"""Clients that cannot, will not, or do not answer; and people, who take their time."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.kit.gateway import Gateway, running_gateway
from tests.kit.http import Legacy, Modern
from tests.kit.processes import is_alive
from tests.kit.waiting import eventually, run
from tests.questions.talking import (
    ERAS,
    Client,
    Heard,
    Message,
    Talk,
    asker,
    by_words,
    client_of,
    converse,
    parked,
    retry_of,
    rounds,
)

each_server = pytest.mark.parametrize("server", ERAS)
each_client = pytest.mark.parametrize("client", ERAS)
REFUSAL = {"error": {"code": -1, "message": "The user said no"}}


def _no(_question: Message) -> Message:
    return REFUSAL


@pytest.mark.parametrize("kind", ["form", "sampling", "roots"])
def test_a_legacy_server_hears_a_legacy_clients_refusal_in_its_own_words(
    gateway: Gateway, kind: str
) -> None:
    """Protocol C1: errors included."""

    async def conversation() -> Talk:
        async with client_of("legacy", gateway.url) as client:
            return await converse(client, "legacy__q_ask", {"kinds": [kind]}, _no)

    talk = run(conversation())

    assert talk.result["isError"] is True
    assert talk.text == "The client did not answer: The user said no"


@pytest.mark.parametrize("kind", ["form", "sampling", "roots"])
def test_a_modern_server_is_told_of_a_refusal_as_far_as_there_is_a_form_for_it(
    gateway: Gateway, kind: str
) -> None:
    """Protocol B4: a form is cancelled; of the others a modern server cannot be told."""

    async def conversation() -> Talk:
        async with client_of("legacy", gateway.url) as client:
            return await converse(client, "modern__q_ask", {"kinds": [kind]}, _no)

    talk = run(conversation())

    if kind == "form":
        assert talk.answers == [{"form0": {"action": "cancel"}}]
    else:
        assert talk.result["isError"] is True
        assert "The user said no" in talk.text
        assert talk.result["_meta"]["onegate/error"]["kind"] == "refused"


@each_server
@pytest.mark.parametrize(
    "garbled",
    [
        {"result": "yes"},
        {"result": None},
        {"error": "no"},
        {"error": {"code": "no", "message": "no"}},
        {"result": {}, "error": {"code": -1, "message": "no"}},
        {},
    ],
    ids=json.dumps,
)
def test_an_answer_that_nobody_can_read_is_one_all_the_same_and_nobody_waits_for_another(
    gateway: Gateway, server: str, garbled: Message
) -> None:
    async def conversation() -> tuple[int, Message]:
        async with client_of("legacy", gateway.url) as client:
            assert isinstance(client, Legacy)
            asking = client.message("tools/call", {"name": f"{server}__q_ask", "arguments": {}})
            async with client.opened(asking) as stream:
                asked = await stream.message()
                told = await client.post({"jsonrpc": "2.0", "id": asked["id"], **garbled})
                return told.status, (await stream.message())["result"]

    status, result = run(conversation(), within_s=10)

    assert status == 400
    if server == "legacy":
        assert "cannot be read" in result["content"][0]["text"]
    else:
        assert result["structuredContent"]["answers"] == [{"form0": {"action": "cancel"}}]


def test_a_prompt_that_cannot_be_answered_ends_as_an_error(gateway: Gateway) -> None:
    """Protocol B4: where there is no `isError`, a JSON-RPC error of ours."""
    name = "modern__test_input_required_result_prompt"

    async def conversation() -> Message:
        async with client_of("legacy", gateway.url, {"sampling": {}}) as client:
            return (await client.request("prompts/get", {"name": name})).error

    error = run(conversation())

    assert error["code"] == -32021 or error["data"]["kind"] == "refused"


@each_client
@each_server
@pytest.mark.parametrize("kind", ["form", "sampling", "roots"])
def test_a_client_that_declared_nothing_is_not_asked_and_the_call_ends_honestly(
    gateway: Gateway, heard: Heard, client: str, server: str, kind: str
) -> None:
    """The server itself sees that it has nobody to ask; nothing is invented on its behalf."""

    async def conversation() -> Talk:
        async with client_of(client, gateway.url, {}) as it:
            return await converse(it, f"{server}__q_ask", {"kinds": [kind]})

    before = len(heard.answers())
    talk = run(conversation())

    assert not talk.questions
    assert len(heard.answers()) == before, "it did not even ask"
    needed = {"form": "elicitation"}.get(kind, kind)
    if client == "modern":
        assert talk.error["code"] == -32021
        assert needed in talk.error["data"]["requiredCapabilities"]
    else:
        assert talk.result["isError"] is True
        assert talk.text == f"The client lacks {needed}"


@each_client
@each_server
def test_a_client_that_takes_forms_alone_is_sent_to_no_url(
    gateway: Gateway, client: str, server: str
) -> None:
    """2025-11-25 client/elicitation: a server must not ask in a mode that was not declared."""

    async def conversation() -> Talk:
        async with client_of(client, gateway.url, {"elicitation": {"form": {}}}) as it:
            return await converse(it, f"{server}__q_ask", {"kinds": ["url"]})

    talk = run(conversation())

    if (client, server) == ("modern", "modern"):
        assert len(talk.questions) == 1, "between the two of them it is none of our business"
    elif server == "modern":
        assert not talk.questions
        assert talk.answers == [{"url0": {"action": "cancel"}}]
    else:
        assert not talk.questions
        assert "The client did not answer" in talk.text


def test_a_client_of_an_older_revision_is_not_asked_what_that_has_no_words_for(
    gateway: Gateway,
) -> None:
    """Protocol 3.7, B5: no URLs before 2025-11-25, no forms before 2025-06-18."""
    capabilities: Message = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}

    async def told(revision: str, kind: str) -> Talk:
        async with client_of(revision, gateway.url, capabilities) as client:
            return await converse(client, "modern__q_ask", {"kinds": [kind]})

    async def conversation() -> list[int]:
        tried = [("2025-06-18", "url"), ("2025-06-18", "form"), ("2025-03-26", "form")]
        return [len((await told(*each)).questions) for each in tried]

    assert run(conversation()) == [0, 1, 0]


@each_server
def test_a_client_that_takes_no_stream_cannot_be_asked_and_is_told_so(
    gateway: Gateway, heard: Heard, server: str
) -> None:
    async def conversation() -> Talk:
        async with client_of("legacy", gateway.url) as client:
            client.headers["Accept"] = "application/json"
            talk = await converse(client, f"{server}__q_ask", {"words": f"no stream {server}"})
            if server == "legacy":
                await heard.wait(lambda each: each.get("result") == {"action": "cancel"})
            return talk

    talk = run(conversation())

    assert talk.result["isError"] is True
    assert "takes no stream" in talk.text
    assert talk.result["_meta"]["onegate/error"]["kind"] == "refused"


# -- people --


@each_client
@each_server
def test_the_time_a_person_takes_is_not_the_tools(tmp_path: Path, client: str, server: str) -> None:
    """The limit is half a second; the person takes more than twice that."""

    async def slowly(it: Client) -> Talk:
        told = {"words": "take your time"}
        if isinstance(it, Modern):
            asked = await parked(it, f"{server}__q_ask", told)
            await asyncio.sleep(1.2)  # the person, not the test, takes this long
            more = {"name": f"{server}__q_ask", "arguments": told, **retry_of(asked)}
            return await rounds(it, "tools/call", more)
        talk = Talk()
        assert isinstance(it, Legacy)
        message = it.message("tools/call", {"name": f"{server}__q_ask", "arguments": told})
        async with it.opened(message) as stream:
            question = await stream.message()
            await asyncio.sleep(1.2)  # the person, not the test, takes this long
            await it.respond(question["id"], by_words(question["params"]))
            talk.final = await stream.message()
        return talk

    async def conversation(url: str) -> Talk:
        async with client_of(client, url) as it:
            await it.call(f"{server}__q_who")  # its process is up: a start may take longer
            return await slowly(it)

    rules = [{"match": "*__q_ask", "timeout": "500ms"}, {"match": "*", "timeout": "20s"}]
    with running_gateway(tmp_path, {server: asker(server)}, tools=rules) as gateway:
        gateway.wait_tools(f"{server}__q_ask")
        talk = run(conversation(gateway.url))

    (answers,) = talk.answers
    assert answers["form0"]["content"]["answer"] == "to take your time"


def test_the_tools_own_time_counts_again_once_it_has_its_answer(tmp_path: Path) -> None:
    async def conversation(url: str) -> Talk:
        async with client_of("modern", url) as client:
            await client.call("legacy__q_who")
            return await converse(client, "legacy__q_works_on", {"seconds": 30})

    rules = [{"match": "*__q_works_on", "longest": "500ms"}]
    with running_gateway(tmp_path, {"legacy": asker("legacy")}, tools=rules) as gateway:
        gateway.wait_tools("legacy__q_works_on")
        talk = run(conversation(gateway.url))

    assert talk.result["_meta"]["onegate/error"]["kind"] == "timeout"


# -- clients that leave --


def test_a_client_that_cancels_while_it_is_asked_has_its_question_taken_back(
    gateway: Gateway, heard: Heard
) -> None:
    """Protocol B6, A9: and the server gets an answer, and is told that the call is over."""

    async def conversation() -> tuple[Message, Message]:
        async with client_of("legacy", gateway.url) as client:
            assert isinstance(client, Legacy)
            told = {"name": "legacy__q_ask", "arguments": {"words": "cancelled while asked"}}
            async with client.opened(client.message("tools/call", told, id_="mine")) as stream:
                question = await stream.message()
                await client.notify("notifications/cancelled", {"requestId": "mine"})
                taken_back = await stream.message()
            await heard.wait(
                lambda each: (
                    each.get("method") == "notifications/cancelled"
                    and "gave up" in each["params"]["reason"]
                )
            )
            await heard.wait(lambda each: each.get("result") == {"action": "cancel"})
            return question, taken_back

    question, taken_back = run(conversation())

    assert taken_back["method"] == "notifications/cancelled"
    assert taken_back["params"]["requestId"] == question["id"]


def test_a_question_the_server_takes_back_is_taken_back_from_the_client(
    gateway: Gateway,
) -> None:
    """Protocol A9: servers give up waiting (TypeScript's after a minute). The client is told,
    and gets the answer without having to say anything."""

    async def conversation() -> list[Message]:
        async with client_of("legacy", gateway.url) as client:
            assert isinstance(client, Legacy)
            told = {"name": "legacy__q_impatient", "arguments": {}}
            async with client.opened(client.message("tools/call", told)) as stream:
                return [await stream.message() for _ in range(3)]

    question, taken_back, final = run(conversation())

    assert question["method"] == "elicitation/create"
    assert taken_back["params"]["requestId"] == question["id"]
    assert final["result"]["content"][0]["text"] == "nobody was quick"


def test_a_session_that_ends_while_it_is_asked_leaves_nothing_waiting(
    gateway: Gateway, heard: Heard
) -> None:
    async def conversation() -> int:
        async with client_of("legacy", gateway.url) as client:
            assert isinstance(client, Legacy)
            told = {"name": "legacy__q_ask", "arguments": {"words": "the session ends"}}
            async with client.opened(client.message("tools/call", told)) as stream:
                await stream.message()
                status = await client.delete()
                client.session = None
                return status

    assert run(conversation()) == 204
    pid = heard.lines("tools/call")[-1]["pid"]
    eventually(lambda: not is_alive(pid), 15, what="its process to be gone")
