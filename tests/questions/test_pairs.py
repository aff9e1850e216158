"""A server asks in the middle of a call, and the client answers: every pair of eras."""

import pytest

from tests.kit.gateway import Gateway
from tests.kit.http import Legacy
from tests.kit.waiting import run
from tests.questions.talking import ERAS, Message, Talk, client_of, converse

each_pair = pytest.mark.parametrize(
    ("client", "server"), [(client, server) for client in ERAS for server in ERAS]
)
each_client = pytest.mark.parametrize("client", ERAS)
each_kind = pytest.mark.parametrize("kind", ["form", "url", "sampling", "roots"])


def _talk(gateway: Gateway, client: str, name: str, arguments: Message) -> Talk:
    async def conversation() -> Talk:
        async with client_of(client, gateway.url) as it:
            return await converse(it, name, arguments)

    return run(conversation())


@each_pair
@each_kind
def test_a_client_answers_what_the_server_asks_and_the_call_goes_on(
    gateway: Gateway, client: str, server: str, kind: str
) -> None:
    talk = _talk(gateway, client, f"{server}__q_ask", {"words": "Who?", "kinds": [kind]})

    assert len(talk.questions) == 1
    (answers,) = talk.answers
    told = answers[f"{kind}0"]
    match kind:
        case "form":
            assert talk.questions[0]["params"]["message"] == "Who?"
            assert told == {"action": "accept", "content": {"answer": "to Who?"}}
        case "url":
            assert talk.questions[0]["params"]["url"] == "https://visit.example/?x=1"
            assert told["action"] == "accept"
        case "sampling":
            assert told["content"]["text"] == "a model's words"
        case _:
            assert told["roots"] == [{"uri": "file:///here"}]


@each_pair
def test_several_rounds_of_several_questions_go_through(
    gateway: Gateway, client: str, server: str
) -> None:
    told = {"words": "all", "kinds": ["form", "sampling", "roots"], "rounds": 3, "stateful": True}
    talk = _talk(gateway, client, f"{server}__q_ask", told)

    assert len(talk.questions) == 9
    assert [sorted(each) for each in talk.answers] == [
        [f"form{n}", f"roots{n}", f"sampling{n}"] for n in range(3)
    ]
    assert len(set(talk.tokens)) == len(talk.tokens)


def test_a_url_that_a_modern_server_wants_visited_has_an_id_that_is_ours(
    gateway: Gateway,
) -> None:
    """Protocol B5: 2026-07-28 has no `elicitationId`; 2025-11-25 needs one, and is told when
    that is done with (client/elicitation, "Completion Notifications")."""
    talk = _talk(gateway, "legacy", "modern__q_ask", {"words": "there", "kinds": ["url"]})

    id_ = talk.questions[0]["params"]["elicitationId"]
    (told,) = talk.notices
    assert told["method"] == "notifications/elicitation/complete"
    assert told["params"] == {"elicitationId": id_}


def test_what_a_legacy_server_says_of_a_visit_reaches_the_client_it_sent_there_alone(
    gateway: Gateway,
) -> None:
    """Protocol C1: on the session's own stream, since the call that sent it may be long over."""
    method = "notifications/elicitation/complete"

    async def told(client: Legacy) -> list[Message]:
        heard: list[Message] = []
        async with client.listening() as stream:
            await client.call("legacy__test_toggle_tool")
            while not heard or not heard[-1]["method"].endswith("list_changed"):
                heard.append(await stream.message())
        return [each for each in heard if each["method"] == method]

    async def conversation() -> tuple[list[Message], list[Message]]:
        async with client_of("legacy", gateway.url) as one, client_of("legacy", gateway.url) as two:
            assert isinstance(one, Legacy)
            assert isinstance(two, Legacy)
            await one.call("legacy__q_visited")
            return await told(one), await told(two)

    mine, anothers = run(conversation())

    assert [each["params"] for each in mine] == [{"elicitationId": "e-1"}]
    assert not anothers


@each_client
def test_what_a_legacy_server_asks_at_once_is_put_at_once(gateway: Gateway, client: str) -> None:
    """Protocol A4: a short window gathers them; each answer finds the request it is for."""
    talk = _talk(gateway, client, "legacy__q_at_once", {"words": ["one", "two", "three"]})

    assert [each["params"]["message"] for each in talk.questions] == ["one", "two", "three"]
    assert talk.text.index("to one") < talk.text.index("to two") < talk.text.index("to three")
    assert len(talk.tokens) == (1 if client == "modern" else 0)
