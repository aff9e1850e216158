"""Questions and answers in the shapes of each revision (protocol 3.7, A2, A4, B2, B5)."""

import json
from typing import Any

import pytest

from gateway.eras.profile import Profiles, allowed, declared_by, forward
from gateway.eras.questions import (
    answer_for,
    for_legacy,
    for_modern,
    given_up,
    questions_in,
    refusal_in,
    refused,
)
from gateway.protocol.errors import InvalidMessage
from gateway.protocol.jsonrpc import Fields, Raw, as_bytes, raw, shallow
from gateway.protocol.revisions import BY_NAME

Message = dict[str, Any]
OLDEST, BATCHED, FORMS, FULL = (
    BY_NAME[name] for name in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
)
ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"

TITLED = {"type": "string", "title": "T", "oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}
SEVERAL = {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}


def held(params: Message) -> Fields:
    """As it comes off the wire: the members are bytes."""
    found = shallow(raw(params))
    assert found is not None
    return found


def plain(params: Fields | None) -> Any:
    return None if params is None else json.loads(as_bytes(params))


def form(**fields: Message) -> Message:
    return {"mode": "form", "message": "m", "requestedSchema": _object(fields)}


def _object(fields: Message) -> Message:
    return {"type": "object", "properties": fields, "required": list(fields)}


def messages(*contents: Any) -> Message:
    return {"messages": [{"role": "user", "content": each} for each in contents], "maxTokens": 9}


def text(words: str) -> Message:
    return {"type": "text", "text": words}


IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
TOOL_USE = {"type": "tool_use", "id": "1", "name": "n", "input": {}}


def test_the_newest_legacy_revision_is_asked_everything_as_it_is() -> None:
    for method, params in (
        (ELICIT, form(x=TITLED, y=SEVERAL)),
        (ELICIT, {"mode": "url", "message": "m", "url": "u", "elicitationId": "e"}),
        (SAMPLE, {**messages([text("a"), IMAGE]), "tools": []}),
        (ROOTS, {}),
    ):
        fields = held(params)
        assert for_legacy(method, fields, FULL) is fields


@pytest.mark.parametrize(
    ("method", "params", "revision"),
    [
        (ELICIT, {"mode": "url", "message": "m", "url": "u"}, FORMS),
        (ELICIT, form(x=SEVERAL), FORMS),
        (ELICIT, form(x={"type": "string"}), BATCHED),
        (ELICIT, form(x={"type": "string"}), OLDEST),
        (SAMPLE, {**messages(text("a")), "tools": [{"name": "t"}]}, FORMS),
        (SAMPLE, messages([text("a"), TOOL_USE]), FORMS),
        (SAMPLE, messages(TOOL_USE), FORMS),
    ],
    ids=str,
)
def test_what_a_revision_cannot_express_is_not_asked(
    method: str, params: Message, revision: Any
) -> None:
    assert for_legacy(method, held(params), revision) is None


def test_titled_choices_become_the_older_pair_of_lists() -> None:
    untouched = {"type": "string", "enum": ["x"]}
    older = plain(for_legacy(ELICIT, held(form(x=TITLED, y=untouched)), FORMS))

    assert older["requestedSchema"]["properties"] == {
        "x": {"type": "string", "title": "T", "enum": ["a", "b"], "enumNames": ["A", "b"]},
        "y": untouched,
    }
    assert older["requestedSchema"]["required"] == ["x", "y"]
    assert older["message"] == "m"


@pytest.mark.parametrize("revision", [OLDEST, BATCHED, FORMS], ids=lambda each: each.name)
def test_a_message_of_several_blocks_becomes_one_of_text_or_several_of_one(revision: Any) -> None:
    params = {**messages([text("a"), text("b")], [text("c"), IMAGE], text("d")), "toolChoice": {}}
    older = plain(for_legacy(SAMPLE, held(params), revision))

    assert [each["content"] for each in older["messages"]] == [
        text("a\nb"),
        text("c"),
        IMAGE,
        text("d"),
    ]
    assert {each["role"] for each in older["messages"]} == {"user"}
    assert older["maxTokens"] == 9
    assert "toolChoice" not in older


def test_sound_becomes_words_where_there_is_none() -> None:
    older = plain(for_legacy(SAMPLE, held(messages(AUDIO)), OLDEST))
    kept = plain(for_legacy(SAMPLE, held(messages(AUDIO)), BATCHED))

    assert older["messages"][0]["content"]["type"] == "text"
    assert kept["messages"][0]["content"] == AUDIO


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (text("a"), text("a")),
        ([text("a")], text("a")),
        ([text("a"), text("b")], text("a\nb")),
        ([IMAGE, text("b")], IMAGE),
        ([], text("")),
    ],
    ids=str,
)
def test_a_models_answer_is_one_block_for_older_servers(content: Any, expected: Message) -> None:
    answer = held({"role": "assistant", "content": content, "model": "m"})

    assert plain(answer_for(SAMPLE, answer, FORMS))["content"] == expected
    assert plain(answer_for(SAMPLE, answer, FULL))["content"] == content


def test_what_belongs_to_the_clients_hop_stays_there() -> None:
    meta = {"io.modelcontextprotocol/clientInfo": {}, "progressToken": 1, "mine": 2}
    answer = held({"action": "accept", "content": {"x": ["a"]}, "_meta": meta})

    assert plain(answer_for(ELICIT, answer, FULL)) == {
        "action": "accept",
        "content": {"x": ["a"]},
        "_meta": {"mine": 2},
    }


def test_a_modern_client_sees_nothing_of_what_its_revision_does_not_have() -> None:
    params = {"mode": "url", "url": "u", "elicitationId": "e", "task": {}, "_meta": {"a": 1}}
    assert plain(for_modern(held(params))) == {"mode": "url", "url": "u"}


def test_refusals_are_told_from_answers() -> None:
    assert refusal_in(refused(-1, "no")) == (-1, "no")
    assert refusal_in(raw(refused(-1, "no"))) == (-1, "no")
    assert refusal_in(raw({"onegate/refused": {}})) == (-1, "None")
    for answer in ({"action": "accept"}, raw({"action": "accept"}), raw(7), None):
        assert refusal_in(answer) is None
    assert given_up(ELICIT) == {"action": "cancel"}
    assert refusal_in(given_up(ROOTS)) == (-32603, "The client did not answer")


def test_a_map_of_questions_that_is_none_is_an_error_and_no_map_is_no_questions() -> None:
    assert questions_in({}) == {}
    assert questions_in({"inputRequests": raw([1])}) == {}
    with pytest.raises(InvalidMessage, match=r"inputRequests\.k has no method"):
        questions_in({"inputRequests": raw({"k": {"params": {}}})})
    found = questions_in({"inputRequests": raw({"k": {"method": ROOTS}})})
    assert found == {"k": (ROOTS, {})}


@pytest.mark.parametrize(
    ("declared", "method", "params", "may"),
    [
        (None, ROOTS, {}, False),
        ({}, ROOTS, {}, False),
        ({"roots": {}}, ROOTS, {}, True),
        ({"roots": True}, ROOTS, {}, False),
        ({"elicitation": {}}, ELICIT, {}, True),
        ({"elicitation": {}}, ELICIT, {"mode": "form"}, True),
        ({"elicitation": {}}, ELICIT, {"mode": "url"}, False),
        ({"elicitation": {"form": {}}}, ELICIT, {"mode": "url"}, False),
        ({"elicitation": {"url": {}}}, ELICIT, {"mode": "url"}, True),
        ({"elicitation": {"url": {}}}, ELICIT, {}, False),
        ({"sampling": {}}, SAMPLE, {}, True),
        ({"sampling": {}}, SAMPLE, {"tools": []}, False),
        ({"sampling": {"tools": {}}}, SAMPLE, {"tools": []}, True),
        ({"sampling": {}}, ELICIT, {}, False),
        ({"sampling": {}, "roots": {}, "elicitation": {}}, "ping", {}, False),
    ],
    ids=str,
)
def test_nobody_is_asked_what_it_did_not_declare(
    declared: Any, method: str, params: Message, may: bool
) -> None:
    assert allowed(declared, method, held(params)) is may


def test_a_profile_is_what_lets_servers_ask_and_nothing_else() -> None:
    profiles = Profiles()
    one = profiles.of(Raw(b'{"roots":{"listChanged":true},"extensions":{"x":{}},"tasks":{}}'))
    other = profiles.of(Raw(b'{ "tasks":{"a":1}, "roots" : {"listChanged": true} }'))

    assert one is not None
    assert one == other
    assert bytes(one.text) == b'{"roots":{"listChanged":true}}'
    for nothing in (b"{}", b"[]", b"7", b'{"extensions":{}}', b'{"roots":true}'):
        assert profiles.of(Raw(nothing)) is None


def test_profiles_are_remembered_and_bounded() -> None:
    profiles = Profiles()
    for number in range(profiles.MOST * 2):
        profiles.of(Raw(b'{"roots":{"x":%d}}' % number))
    assert len(profiles._known) <= profiles.MOST


def test_a_legacy_clients_capabilities_are_put_in_the_modern_way() -> None:
    declared = declared_by(
        raw(
            {
                "roots": {"listChanged": True},
                "elicitation": {},
                "sampling": {"tools": {}},
                "tasks": {},
                "experimental": {},
            }
        )
    )
    assert declared is not None
    assert json.loads(as_bytes(forward(declared))) == {
        "roots": {},
        "elicitation": {"form": {}},
        "sampling": {"tools": {}},
    }
    assert declared_by(raw({"experimental": {}})) is None
    assert declared_by(None) is None
