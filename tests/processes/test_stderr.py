"""What a server says on stderr: read always, kept briefly, shown clean."""

import time
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.downstream.stderr import (
    BURST_LINES,
    LINES_PER_S,
    SHOWN_CHARS,
    TAIL_BYTES,
    TAIL_LINES,
    Stderr,
    cleaned,
)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def stderr(*secrets: str, clock: Clock | None = None) -> Stderr:
    return Stderr("it", secrets, clock or Clock())


def lines_of(logs: list[Any], event: str = "stderr.written") -> list[Any]:
    return [entry for entry in logs if entry["event"] == event]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never ended", ""),
        ("\x9b31mred \x9dtitle\x9cdone", "red done"),
        ("\x1bPq#0\x1b\\sixel", "sixel"),
        ("\x1b(Bset \x1b=keys \x1b", "set keys "),
        ("bell\x07 back\x08 null\x00 del\x7f nel\x85", "bell back null del nel"),
        ("a\u202eb\u2066c\u200fd\u061ce", "abcde"),
        ("a\u2028b\u2029c\u200bd\ufeffe\U000e0041f", "abcdef"),
        ("tab\tstays; é, 漢字 and 👍🏽 too", "tab\tstays; é, 漢字 and 👍🏽 too"),
    ],
)
def test_nothing_that_moves_colours_reorders_or_hides_text_is_shown(
    written: str, shown: str
) -> None:
    assert cleaned(written) == shown


def test_lines_are_lines_however_they_are_cut_or_ended() -> None:
    said = stderr()
    for byte in b"one\r\ntwo\n\n10%\r20%\rthree \xff\n\xc3\xa9":
        said.feed(bytes([byte]))
    assert said.tail() == ("one", "two", "10%", "20%", "three \ufffd", "é")


def test_the_tail_is_bounded_in_lines_and_bytes() -> None:
    said = stderr()
    said.feed(b"".join(b"%d\n" % number for number in range(1000)))
    assert said.tail() == tuple(str(number) for number in range(800, 1000))
    assert said.tail(2) == ("998", "999")
    for _ in range(TAIL_LINES):
        said.feed(b"x" * 4000 + b"\n")
    assert len(said.tail()) == TAIL_BYTES // 4000


def test_a_line_without_end_is_cut() -> None:
    said = stderr()
    for _ in range(100):
        said.feed(b"x" * 65536)
    said.feed(b"\nnext\n")
    first, second = said.tail()
    assert first == "x" * (SHOWN_CHARS - 1) + "…"
    assert second == "next"


def test_secrets_are_redacted_wherever_they_stand() -> None:
    pem = "-----BEGIN KEY-----\nMIIEowIBAAKCAQEA\n-----END KEY-----"
    said = stderr("hunter2", "hunter2-and-more", "a.b*c(", pem)
    with capture_logs() as logs:
        said.feed(b"key=hunter2\nkey=hunter2-and-more, a.b*c( aXbYc(\nhun\x1b[0mter2\n")
        said.feed(b"MIIEowIBAAKCAQEA\npostgres://me:pass@host/db at http://host/\n")
    expected = (
        "key=[redacted]",
        "key=[redacted], [redacted] aXbYc(",
        "[redacted]",
        "[redacted]",
        "postgres://[redacted]@host/db at http://host/",
    )
    assert said.tail() == expected
    assert tuple(entry["line"] for entry in lines_of(logs)) == expected


def test_a_secret_that_a_cut_would_halve_is_redacted_whole() -> None:
    said = stderr("hunter2hunter2")
    said.feed(b"x" * (SHOWN_CHARS - 7) + b"hunter2hunter2\n")
    assert "hunter" not in said.tail()[0]


def test_lines_are_logged_with_their_server_at_a_limited_rate_and_drops_are_counted() -> None:
    clock = Clock()
    said = stderr(clock=clock)
    with capture_logs() as logs:
        said.feed(b"line\n" * 1000)
        assert len(lines_of(logs)) == BURST_LINES
        clock.now += 1.0
        said.feed(b"line\n" * 1000)
    assert len(lines_of(logs)) == BURST_LINES + LINES_PER_S
    assert {entry["server"] for entry in logs} == {"it"}
    assert [e["lines"] for e in lines_of(logs, "stderr.dropped")] == [1000 - BURST_LINES]
    assert said.dropped == 2000 - BURST_LINES - LINES_PER_S


def test_the_last_drops_are_told_in_the_end_and_only_once() -> None:
    said = stderr()
    with capture_logs() as logs:
        said.feed(b"line\n" * (BURST_LINES + 7))
        said.finish()
        said.finish()
    assert [e["lines"] for e in lines_of(logs, "stderr.dropped")] == [7]


def test_a_flood_costs_little() -> None:
    """It is neither cleaned nor decoded unless somebody will see it: about 1 GB/s."""
    said, chunk = stderr("secret-value"), (b"\x1b[31m" + b"y" * 75 + b"\n") * 800
    began = time.process_time()
    for _ in range(500):
        said.feed(chunk)
    assert time.process_time() - began < 1.5
    assert said.dropped > 390_000
