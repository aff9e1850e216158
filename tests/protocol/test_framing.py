"""A stream of bytes is cut into messages, whatever the chunks and however long the lines."""

import itertools
import json
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.protocol.framing import (
    HEAD_BYTES,
    Event,
    EventSplitter,
    LineSplitter,
    Oversized,
    answered_id,
)

MIB = 2**20


def split(*chunks: bytes, limit: int = 100) -> list[bytes | Oversized]:
    splitter = LineSplitter(limit)
    return [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.finish()


@pytest.mark.parametrize(
    ("stream", "lines"),
    [
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\r\r\n", [b"a\r"]),
        (b"\n\r\n \t\na\n\n", [b"a"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", [b"a", b"\xef\xbb\xbfb"]),
        (b"\xef\xbb\xbf\na\n", [b"a"]),
        (b"\xef\xbb\xbf", []),
        (b"a\nno end", [b"a", b"no end"]),
        ("a\u2028b\u2029c\x85d\x0be\n".encode(), ["a\u2028b\u2029c\x85d\x0be".encode()]),
        (b"\xff\xfe\x00\n", [b"\xff\xfe\x00"]),
        (b"", []),
    ],
)
def test_lines_end_with_a_newline_and_with_nothing_else(stream: bytes, lines: list[bytes]) -> None:
    assert split(stream) == lines
    assert split(*(stream[at : at + 1] for at in range(len(stream)))) == lines


@given(st.lists(st.binary(max_size=30)), st.lists(st.integers(0, 200)), st.integers(1, 40))
def test_any_chunking_gives_the_same_lines(lines: list[bytes], cuts: list[int], limit: int) -> None:
    stream = b"\n".join(lines)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[a:b] for a, b in itertools.pairwise(edges)]

    def comparable(found: list[bytes | Oversized]) -> Iterator[object]:
        """How much of a CR or a byte order mark counts into `size` may depend on the cut."""
        for line in found:
            yield line if isinstance(line, bytes) else "oversized"

    assert list(comparable(split(*chunks, limit=limit))) == list(
        comparable(split(stream, limit=limit))
    )


def test_a_line_as_long_as_the_bound_passes_and_one_byte_more_does_not() -> None:
    for end in (b"\n", b"\r\n", b""):
        for start in (b"", b"\xef\xbb\xbf"):
            fits, more = start + b"x" * 100 + end, start + b"x" * 101 + end
            for size in (1, 50, 1000):
                assert split(*_cut(fits, size)) == [b"x" * 100], (end, start, size)
                (found,) = split(*_cut(more, size))
                assert isinstance(found, Oversized), (end, start, size)


def _cut(stream: bytes, size: int) -> list[bytes]:
    return [stream[at : at + size] for at in range(0, len(stream), size)]


def test_what_is_too_long_is_reported_with_both_its_ends_and_the_stream_goes_on() -> None:
    long = b"<" + b"x" * 3000 + b">"
    for size in (1, 7, 512, 4096):
        stream = b"before\n" + long + b"\nafter\n"
        before, dropped, after = split(*_cut(stream, size))
        assert (before, after) == (b"before", b"after")
        assert dropped == Oversized(3002, long[:512], long[-512:])


def test_an_endless_line_costs_no_more_than_the_bound() -> None:
    splitter, chunk = LineSplitter(MIB), b"x" * 65536
    tracemalloc.start()
    for _ in range(3200):
        assert splitter.feed(chunk) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * MIB
    (dropped,) = splitter.finish()
    assert isinstance(dropped, Oversized)
    assert dropped.size == 200 * MIB


BIG = {"content": [{"id": 99, "text": "x" * 2000}], "structuredContent": {"id": 98}}


@pytest.mark.parametrize(
    ("message", "id_"),
    [
        ({"jsonrpc": "2.0", "id": 5, "result": BIG}, 5),
        ({"id": 5, "jsonrpc": "2.0", "result": BIG}, 5),
        ({"id": 5, "result": BIG, "jsonrpc": "2.0"}, 5),
        ({"jsonrpc": "2.0", "id": "5", "result": BIG}, 5),
        ({"result": BIG, "jsonrpc": "2.0", "id": 5}, 5),
        ({"result": BIG, "id": 5, "jsonrpc": "2.0"}, 5),
        ({"jsonrpc": "2.0", "error": {"data": BIG}, "id": 5}, 5),
        # Requests of the server have ids of their own, and notifications none.
        ({"jsonrpc": "2.0", "id": 5, "method": "x", "params": BIG}, None),
        ({"method": "x", "params": BIG, "jsonrpc": "2.0", "id": 5}, None),
        ({"jsonrpc": "2.0", "method": "x", "params": {"data": BIG, "id": 5}}, None),
        ({"jsonrpc": "2.0", "result": {**BIG, "id": 5}}, None),
        ({"result": BIG, "jsonrpc": "2.0", "id": "a7"}, None),
        ([{"jsonrpc": "2.0", "id": 5, "result": BIG}], None),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", " : ")])
def test_an_oversized_answer_is_known_by_a_top_level_id_at_either_end(
    message: object, id_: int | None, separators: tuple[str, str]
) -> None:
    line = json.dumps(message, separators=separators).encode()
    (dropped,) = split(line + b"\n")
    assert isinstance(dropped, Oversized)
    assert answered_id(dropped.head, dropped.tail) == id_


# --- server-sent events ---


def events(*chunks: bytes, limit: int = 1000) -> list[Event | Oversized]:
    splitter = EventSplitter(limit)
    return [event for chunk in chunks for event in splitter.feed(chunk)]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\n", [Event(b"a")]),
        (b"data:a\r\n\r\n", [Event(b"a")]),
        (b"data:a\r\r", [Event(b"a")]),
        (b"data: a\ndata: b\n\n", [Event(b"a\nb")]),
        (b"data:  a\n\n", [Event(b" a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event(b"a")]),
        (b": comment\n\ndata: a\n\n", [Event(b"a")]),
        (b"event: e\ndata: a\n\ndata: b\n\n", [Event(b"a", "e"), Event(b"b")]),
        (b"id: 7\ndata:\n\ndata: b\n\n", [Event(b"", id="7"), Event(b"b", id="7")]),
        (b"id: 7\n\ndata: b\n\n", [Event(b"b", id="7")]),
        (b"id: a\0b\ndata: b\n\n", [Event(b"b")]),
        (b"data\nunknown: x\n\n", [Event(b"")]),
        ("data: a\u2028b\n\n".encode(), [Event("a\u2028b".encode())]),
        (b"data: cut off\n", []),
        (b"event: e\n\n", []),
    ],
)
def test_events_are_read_as_the_standard_says(stream: bytes, expected: list[Event]) -> None:
    assert events(stream) == expected
    assert events(*(stream[at : at + 1] for at in range(len(stream)))) == expected


def test_a_retry_time_is_kept_if_it_is_a_number() -> None:
    splitter = EventSplitter(1000)
    splitter.feed(b"retry: 1500\n\nretry: soon\n\n")
    assert splitter.retry_ms == 1500


@pytest.mark.parametrize("size", [1, 100, 100_000])
def test_an_event_beyond_the_bound_is_dropped_up_to_its_end(size: int) -> None:
    long = b"data: " + b"x" * 3000
    stream = long + b"\ndata: y\n\ndata: z\n\n"
    dropped, after = events(*_cut(stream, size))
    assert after == Event(b"z")
    assert isinstance(dropped, Oversized)
    assert dropped.size == len(long) + 7
    assert dropped.head == long[:HEAD_BYTES]
    assert dropped.tail.endswith(b"data: y")


def test_an_endless_event_costs_no_more_than_the_bound() -> None:
    splitter = EventSplitter(MIB)
    tracemalloc.start()
    for _ in range(1600):
        assert splitter.feed(b"data: " + b"x" * 65536 + b"\n") == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * MIB
