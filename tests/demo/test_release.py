"""The release checklist: resources, a template, a prompt, completions, and who hears of changes."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from tests.demo.child import ENVELOPE, ERAS, Child, P, legacy, modern

CHECKLIST = "release://checklist"
ITEMS = ["code-frozen", "changelog-written", "tests-green", "tagged", "announced"]

Open = Callable[[str], AbstractContextManager[Child]]


@pytest.fixture(params=ERAS)
def connect(request: pytest.FixtureRequest) -> Open:
    return ERAS[request.param]


def read(release: Child, uri: str) -> str:
    (content,) = release.result("resources/read", uri=uri)["contents"]
    assert content["uri"] == uri
    text: str = content["text"]
    return text


def test_the_checklist_is_a_resource_and_its_items_are_a_template(connect: Open) -> None:
    with connect("release") as release:
        (resource,) = release.result("resources/list")["resources"]
        (template,) = release.result("resources/templates/list")["resourceTemplates"]

        assert resource["uri"] == CHECKLIST
        assert template["uriTemplate"] == "release://checklist/{item}"
        assert read(release, CHECKLIST).count("- [ ] ") == len(ITEMS)
        assert read(release, f"{CHECKLIST}/tagged") == "- [ ] The release is tagged"


def test_marking_an_item_shows_in_the_checklist_and_says_what_remains(connect: Open) -> None:
    with connect("release") as release:
        first = release.call("mark_passed", item="tagged")["structuredContent"]
        again = release.call("mark_passed", item="tagged")["structuredContent"]

        assert first == {
            "passed": "tagged",
            "remaining": [each for each in ITEMS if each != "tagged"],
        }
        assert again == first
        assert "- [x] The release is tagged" in read(release, CHECKLIST)
        assert read(release, f"{CHECKLIST}/tagged") == "- [x] The release is tagged"


def test_marking_is_declared_as_a_harmless_change(connect: Open) -> None:
    with connect("release") as release:
        (tool,) = release.result("tools/list")["tools"]

        assert tool["annotations"] == {
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        }


def test_the_prompt_asks_about_the_version_and_attaches_the_checklist(connect: Open) -> None:
    with connect("release") as release:
        release.call("mark_passed", item="tests-green")
        (prompt,) = release.result("prompts/list")["prompts"]
        found = release.result("prompts/get", name="review_release", arguments={"version": "2.0.0"})

        request, attached = (message["content"] for message in found["messages"])
        assert [argument["name"] for argument in prompt["arguments"]] == ["version"]
        assert "2.0.0" in request["text"]
        assert "- [x] The tests are green" in attached["resource"]["text"]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": "nope"},
        {"name": "review_release"},
        {"name": "review_release", "arguments": {"version": 2}},
        {"name": "review_release", "arguments": ["2.0.0"]},
    ],
)
def test_a_prompt_that_cannot_be_made_is_refused(connect: Open, params: dict[str, Any]) -> None:
    with connect("release") as release:
        assert release.error("prompts/get", **params)["code"] == -32602


@pytest.mark.parametrize(
    ("ref", "argument", "values"),
    [
        ({"type": "ref/prompt", "name": "review_release"}, ("version", "1."), ["1.4.3", "1.5.0"]),
        ({"type": "ref/prompt", "name": "review_release"}, ("version", "9"), []),
        (
            {"type": "ref/resource", "uri": "release://checklist/{item}"},
            ("item", "t"),
            ["tests-green", "tagged"],
        ),
    ],
)
def test_what_is_typed_is_completed(
    connect: Open, ref: dict[str, Any], argument: tuple[str, str], values: list[str]
) -> None:
    name, value = argument
    with connect("release") as release:
        found = release.result(
            "completion/complete", ref=ref, argument={"name": name, "value": value}
        )

        assert found["completion"] == {"values": values, "total": len(values), "hasMore": False}


@pytest.mark.parametrize(
    ("ref", "argument"),
    [
        ({"type": "ref/prompt", "name": "nope"}, {"name": "version", "value": ""}),
        ({"type": "ref/prompt", "name": "review_release"}, {"name": "nope", "value": ""}),
        ({"type": "ref/prompt", "name": "review_release"}, {"name": "version", "value": 1}),
        ({"type": "ref/resource", "uri": CHECKLIST}, {"name": "item", "value": ""}),
        ("review_release", {"name": "version", "value": ""}),
        ({"type": [], "name": {}}, {"name": [], "value": ""}),
    ],
)
def test_nothing_is_completed_where_nothing_is_to_be_typed(
    connect: Open, ref: Any, argument: dict[str, Any]
) -> None:
    with connect("release") as release:
        assert release.error("completion/complete", ref=ref, argument=argument)["code"] == -32602


UNKNOWN = ["release://checklist/nope", "release://checklist/", "tagged", "", "file:///etc/passwd"]


@pytest.mark.parametrize("uri", UNKNOWN)
def test_an_unknown_resource_is_named_under_the_code_of_its_era(uri: str) -> None:
    """-32002 until 2025-11-25, -32602 since; with the URI in both."""
    with legacy("release") as release:
        for method in ("resources/read", "resources/subscribe"):
            error = release.error(method, uri=uri)
            assert (error["code"], error["data"]) == (-32002, {"uri": uri})
    with modern("release") as release:
        error = release.error("resources/read", uri=uri)
        assert (error["code"], error["data"]) == (-32602, {"uri": uri})


@pytest.mark.parametrize("uri", [CHECKLIST, f"{CHECKLIST}/tagged"])
def test_a_legacy_client_hears_of_what_it_subscribed_to_until_it_unsubscribes(uri: str) -> None:
    with legacy("release") as release:
        assert release.result("resources/subscribe", uri=uri) == {}
        release.send(id="mark", method="tools/call", params=mark("tagged"))
        told, answered = release.receive(), release.receive()

        assert told["method"] == "notifications/resources/updated"
        assert told["params"] == {"uri": uri}
        assert answered["id"] == "mark"

        # Already passed: no change, no news. Then unsubscribed: a change, and still no news.
        release.call("mark_passed", item="tagged")
        assert release.result("resources/unsubscribe", uri=uri) == {}
        release.call("mark_passed", item="announced")


def test_a_client_that_did_not_ask_hears_nothing(connect: Open) -> None:
    with connect("release") as release:
        release.call("mark_passed", item="tagged")  # fails if anything but the response came next
        assert release.hang_up() == 0
        assert release.unread == []


@pytest.mark.parametrize("listen_id", [7, "7", 0, ""])
def test_a_listen_is_acknowledged_and_tagged_with_its_own_id(listen_id: int | str) -> None:
    """Spec, basic/patterns/subscriptions: the acknowledgment comes first, ids keep their type."""
    with modern("release") as release:
        wanted = {"resourceSubscriptions": [CHECKLIST, "release://nope"], "toolsListChanged": True}
        listen(release, listen_id, wanted)
        acknowledged = release.receive()
        release.send(id="mark", method="tools/call", params=mark("tagged") | {"_meta": ENVELOPE})
        told, answered = release.receive(), release.receive()

        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"] == {
            "_meta": {f"{P}subscriptionId": listen_id},
            "notifications": {"resourceSubscriptions": [CHECKLIST]},
        }
        assert told["method"] == "notifications/resources/updated"
        assert told["params"] == {"_meta": {f"{P}subscriptionId": listen_id}, "uri": CHECKLIST}
        assert answered["id"] == "mark"


def test_two_listens_are_told_apart_and_end_one_by_one() -> None:
    with modern("release") as release:
        for listen_id in (1, "1"):
            listen(release, listen_id, {"resourceSubscriptions": [CHECKLIST]})
            release.receive()
        release.send(method="notifications/cancelled", params={"requestId": 1})
        release.send(id="mark", method="tools/call", params=mark("tagged") | {"_meta": ENVELOPE})

        told, answered = release.receive(), release.receive()
        assert told["params"]["_meta"] == {f"{P}subscriptionId": "1"}
        assert answered["id"] == "mark"
        assert release.hang_up() == 0
        assert release.unread == []


def test_a_listen_for_what_is_not_offered_is_acknowledged_empty() -> None:
    with modern("dice") as dice:
        listen(dice, 1, {"toolsListChanged": True, "resourceSubscriptions": [CHECKLIST]})

        assert dice.receive()["params"]["notifications"] == {}


@pytest.mark.parametrize(
    "wanted", [[], "all", {"resourceSubscriptions": CHECKLIST}, {"resourceSubscriptions": [1]}]
)
def test_a_listen_without_a_proper_filter_is_refused(wanted: Any) -> None:
    with modern("release") as release:
        assert release.error("subscriptions/listen", notifications=wanted)["code"] == -32602


def mark(item: str) -> dict[str, Any]:
    return {"name": "mark_passed", "arguments": {"item": item}}


def listen(release: Child, listen_id: int | str, wanted: dict[str, Any]) -> None:
    params = {"_meta": ENVELOPE, "notifications": wanted}
    release.send(id=listen_id, method="subscriptions/listen", params=params)
