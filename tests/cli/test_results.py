"""What a person types as arguments, and how a result reads."""

import json
from typing import Any

import click
import pytest

from gateway.cli.results import arguments, blocks, show_result


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ([], {}),
        (["{}"], {}),
        (['{"sides": 20, "deep": {"a": [1, null]}}'], {"sides": 20, "deep": {"a": [1, None]}}),
        ([' {"a": 1}'], {"a": 1}),
        (["sides=20", "fair=true"], {"sides": 20, "fair": True}),
        (["text=two words", "path=/etc/x"], {"text": "two words", "path": "/etc/x"}),
        (['text="20"', "list=[1, 2]", 'o={"a": 1}'], {"text": "20", "list": [1, 2], "o": {"a": 1}}),
        (["q=a=b", "empty=", "n=null"], {"q": "a=b", "empty": "", "n": None}),
        (["text={not json", "x=NaN"], {"text": "{not json", "x": "NaN"}),
        (["id=12345678901234567890123"], {"id": 12345678901234567890123}),
    ],
)
def test_arguments_mean_what_they_look_like(words: list[str], meant: dict[str, Any]) -> None:
    assert arguments(words) == meant


@pytest.mark.parametrize(
    "words", [["{"], ["[1, 2]"], ["six"], ["=6"], ["a=1", "six"], ['{"a": NaN}'], ["[" * 99_999]]
)
def test_arguments_that_mean_nothing_are_refused(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        arguments(words)


STRUCTURED = {"total": 7}


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ({"content": [{"type": "text", "text": "a\nb"}]}, ["a\nb"]),
        ({"content": [{"type": "text", "text": json.dumps(STRUCTURED)}],
          "structuredContent": STRUCTURED}, ['{"total": 7}']),
        ({"content": [{"type": "text", "text": "seven"}], "structuredContent": STRUCTURED},
         ["seven", '{"total": 7}']),
        ({"content": [], "structuredContent": STRUCTURED}, ['{"total": 7}']),
        ({"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}]},
         ["[image, image/png, 3 bytes]"]),
        ({"content": [{"type": "resource_link", "uri": "file:///x", "name": "x"}]},
         ["[resource file:///x: x]"]),
        ({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "hello"}}]},
         ["[resource a:b]\nhello"]),
        ({"content": [{"type": "resource", "resource": {"uri": "a:b", "blob": "AAAA"}}]},
         ["[resource a:b]"]),
        ({"content": [{"type": "hologram"}]}, ["[hologram]"]),
        ({"content": []}, ["(no content)"]),
        ({}, ["(no content)"]),
        ({"content": ["odd", None, {}]}, ["[None]"]),
    ],
)  # fmt: skip
def test_each_kind_of_content_reads_as_what_it_is(result: Any, shown: list[str]) -> None:
    assert list(blocks(result)) == shown


def test_a_failure_goes_to_stderr_and_steers_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "first\nsecond \x1b[2J\u202e"

    show_result({"content": [{"type": "text", "text": text}], "isError": True})

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "first\nsecond \\x1b[2J\\u202e\n"


def test_a_pipe_gets_a_text_as_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    show_result({"content": [{"type": "text", "text": '{"a":1}\tb'}]})

    assert capsys.readouterr().out == '{"a":1}\tb\n'
