"""What the tools of the example servers answer, to clients of either era."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any, Protocol

import pytest

from tests.demo.child import ERAS, Child, modern


class Open(Protocol):
    def __call__(self, name: str) -> AbstractContextManager[Child]: ...


@pytest.fixture(params=ERAS)
def connect(request: pytest.FixtureRequest) -> Iterator[Open]:
    yield ERAS[request.param]


def text(result: dict[str, Any]) -> str:
    (block,) = result["content"]
    assert block["type"] == "text"
    words: str = block["text"]
    return words


def test_dice_lists_its_two_tools_with_what_they_take_and_return(connect: Open) -> None:
    with connect("dice") as dice:
        tools = {tool["name"]: tool for tool in dice.result("tools/list")["tools"]}

        assert list(tools) == ["roll_dice", "word_count"]
        assert set(tools["roll_dice"]["inputSchema"]["properties"]) == {"sides", "count"}
        assert set(tools["roll_dice"]["outputSchema"]["properties"]) == {"rolls", "total"}
        assert all(tool["annotations"]["readOnlyHint"] for tool in tools.values())


def test_a_roll_stays_within_the_sides_and_adds_up(connect: Open) -> None:
    with connect("dice") as dice:
        found = dice.call("roll_dice", sides=4, count=100)["structuredContent"]

        assert len(found["rolls"]) == 100
        assert set(found["rolls"]) <= {1, 2, 3, 4}
        assert found["total"] == sum(found["rolls"])


def test_a_roll_without_arguments_is_one_die_with_six_sides(connect: Open) -> None:
    with connect("dice") as dice:
        (roll,) = dice.result("tools/call", name="roll_dice")["structuredContent"]["rolls"]

        assert 1 <= roll <= 6


def test_a_whole_number_may_be_written_with_a_point(connect: Open) -> None:
    """To JSON Schema 2.0 is an integer; to Python it is not."""
    with connect("dice") as dice:
        assert len(dice.call("roll_dice", count=2.0)["structuredContent"]["rolls"]) == 2


@pytest.mark.parametrize(
    ("given", "words", "characters", "lines"),
    [("", 0, 0, 0), ("one", 1, 3, 1), ("äöü  ß\n\n日本", 3, 10, 3), ("\ud800", 1, 1, 1)],
)
def test_words_characters_and_lines_are_counted(
    connect: Open, given: str, words: int, characters: int, lines: int
) -> None:
    with connect("dice") as dice:
        assert dice.call("word_count", text=given)["structuredContent"] == {
            "words": words,
            "characters": characters,
            "lines": lines,
        }


def test_the_text_repeats_the_structured_content(connect: Open) -> None:
    """Spec, server/tools: for clients that do not read `structuredContent`."""
    with connect("dice") as dice:
        found = dice.call("word_count", text="two words")

        assert text(found) == '{"words": 2, "characters": 9, "lines": 1}'


def test_the_time_is_given_in_utc_or_where_it_is_asked_for(connect: Open) -> None:
    with connect("clock") as clock:
        here = clock.call("get_time")["structuredContent"]
        there = clock.call("get_time", timezone="Asia/Tokyo")["structuredContent"]

        assert here["timezone"] == "UTC"
        assert datetime.fromisoformat(here["time"]).utcoffset() == timedelta(0)
        assert datetime.fromisoformat(there["time"]).utcoffset() == timedelta(hours=9)
        assert there["weekday"] == datetime.fromisoformat(there["time"]).strftime("%A")


@pytest.mark.parametrize(
    "name",
    ["", "Moon/Base", "Europe", "../../etc/passwd", "/etc/passwd", "a\0b", "\ud800", "x" * 999],
)
def test_a_time_zone_that_does_not_exist_is_answered_with_advice(name: str) -> None:
    with modern("clock") as clock:
        found = clock.call("get_time", timezone=name)

        assert found["isError"] is True
        assert "Europe/Berlin" in text(found)


def test_a_random_number_lies_between_the_bounds(connect: Open) -> None:
    with connect("clock") as clock:
        numbers = {
            clock.call("get_random_number", low=-1, high=1)["structuredContent"]["number"]
            for _ in range(30)
        }

        assert numbers <= {-1, 0, 1}
        assert clock.call("get_random_number", low=7, high=7)["structuredContent"] == {"number": 7}


BAD_ARGUMENTS: list[tuple[str, str, dict[str, Any], str]] = [
    ("dice", "roll_dice", {"sides": 1}, "sides must be an integer from 2 to 1000, not 1"),
    ("dice", "roll_dice", {"sides": 1001}, "from 2 to 1000"),
    ("dice", "roll_dice", {"count": 101}, "count must be an integer from 1 to 100"),
    ("dice", "roll_dice", {"count": 1.5}, "not 1.5"),
    ("dice", "roll_dice", {"count": "1"}, 'not "1"'),
    ("dice", "roll_dice", {"count": True}, "not true"),
    ("dice", "roll_dice", {"count": None}, "not null"),
    ("dice", "roll_dice", {"count": [1]}, "not an array"),
    ("dice", "roll_dice", {"count": {}}, "not an object"),
    ("dice", "roll_dice", {"faces": 6}, '"faces" is not an argument'),
    ("dice", "roll_dice", {"sides": 1, "count": 0}, "; count must be"),
    ("dice", "word_count", {}, "text is missing"),
    ("dice", "word_count", {"text": 5}, "text must be a string"),
    ("dice", "word_count", {"text": ["x" * 999]}, "not an array"),
    ("clock", "get_time", {"timezone": 1}, "timezone must be a string"),
    ("clock", "get_random_number", {"low": 2, "high": 1}, "low must not be above high"),
    ("clock", "get_random_number", {"high": 10**30}, "from -1000000000 to 1000000000"),
    ("release", "mark_passed", {}, "item is missing"),
    ("release", "mark_passed", {"item": "shipped"}, "one of code-frozen, changelog-written"),
    ("release", "mark_passed", {"item": "x" * 999}, "xxx..."),
]


@pytest.mark.parametrize(("server", "tool", "arguments", "words"), BAD_ARGUMENTS)
def test_bad_arguments_are_answered_with_what_is_wrong_about_them(
    server: str, tool: str, arguments: dict[str, Any], words: str
) -> None:
    """Spec, server/tools: what a model can put right is a result, not a JSON-RPC error."""
    with modern(server) as child:
        found = child.call(tool, **arguments)

        assert found["isError"] is True
        assert words in text(found)
        assert len(text(found)) < 300
