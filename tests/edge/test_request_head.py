"""A head that comes again is known again, and means what a parser would make of it."""

import asyncio
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.config.units import Address
from gateway.edge import direct
from gateway.edge.guard import Guard, own_names
from gateway.edge.parsing import MOST_BYTES, UNREAD, needed, new_parser
from gateway.edge.request_head import LONGEST, SELDOM, RequestHead
from gateway.eras.sides import Headers
from gateway.identity.tokens import Tokens
from tests.edge.conftest import OnLoop
from tests.edge.serving import FakeEntrance, Secret, connected, serving
from tests.kit.waiting import run

LINES = (
    b"POST /mcp HTTP/1.1",
    b"Host: gate.example",
    b"content-length: 5",
    b"Content-Type: application/json",
)


def _request(body: bytes = b'"abc"', length: bytes | None = None) -> bytes:
    lines = list(LINES)
    lines[2] = b"content-length: " + (b"%d" % len(body) if length is None else length)
    return b"\r\n".join([*lines, b"", body])


FIRST = _request()


def _parsed(request: bytes) -> tuple[dict[str, str], bytes] | None:
    """Headers and body as a new parser reads them, if this is one whole small POST."""
    loop = asyncio.new_event_loop()
    try:
        messages, _, _ = new_parser(loop, 8192).feed_data(request)
    except UNREAD:
        return None
    finally:
        loop.close()
    if len(messages) != 1:
        return None
    message, payload = messages[0]
    if not payload.is_eof() or needed(message, request) != len(request):
        return None
    assert not message.should_close
    return dict(message.headers), request[request.index(b"\r\n\r\n") + 4 :]


def _remembered(first: bytes = FIRST) -> RequestHead:
    read = _parsed(first)
    assert read is not None
    head = RequestHead(cast(Headers, read[0])).remember(first[: first.index(b"\r\n\r\n") + 4])
    assert head is not None
    return head


@pytest.mark.parametrize("body", [b"", b"{}", b'"abc"', b"x" * 9, b"x" * 60_000, b"a\r\n\r\nb"])
def test_another_body_is_taken_whatever_its_length(body: bytes) -> None:
    assert _remembered().body_of(_request(body)) == body


@pytest.mark.parametrize(
    "other",
    [
        FIRST[:-1],
        FIRST + b"x",
        FIRST + FIRST,
        FIRST.replace(b"gate", b"Gate"),
        FIRST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        FIRST.replace(b"content-length", b"Content-Length"),
        *(_request(length=length) for length in (b"+5", b"-5", b" 5", b"5 ", b"5\r", b"0x5", b"")),
        *(_request(length=length) for length in (b"5_", b"5,5", b"\xb9", b"0000000005", b"9" * 9)),
        b"",
    ],
)
def test_whatever_else_differs_goes_to_the_parser(other: bytes) -> None:
    assert _remembered().body_of(other) is None


@pytest.mark.parametrize(
    "lines",
    [
        LINES[:2],
        (*LINES, b"X: content-length: 5"),
        (*LINES, b"X: " + b"y" * LONGEST),
        (*LINES[:2], b"Content-Length : 5"),
        (*LINES[:2], b"Content-Length: 123456"),
    ],
    ids=["no length", "said of it", "too long", "a space", "a large one"],
)
def test_only_one_plain_length_in_a_head_of_usual_size_is_remembered(
    lines: tuple[bytes, ...],
) -> None:
    head = RequestHead(cast(Headers, {})).remember(b"\r\n".join([*lines, b"", b""]))
    assert (head is not None) == (b"X: content-length: 5" in lines)


EDITS = st.lists(
    st.tuples(st.integers(0, len(FIRST)), st.integers(0, 2), st.binary(max_size=3)),
    min_size=0,
    max_size=3,
)


def _edited(edits: list[tuple[int, int, bytes]]) -> bytes:
    request = FIRST
    for at, removed, put in edits:
        request = request[:at] + put + request[at + removed :]
    return request


DIGIT = FIRST.index(b"length: 5") + len(b"length: ")


@given(EDITS)
@example([(DIGIT, 1, b"4")])
@example([(DIGIT, 1, b"05")])
@example([(DIGIT, 1, b"6"), (len(FIRST), 0, b"x")])
@example([(DIGIT, 1, b"5\r\n")])
def test_two_readers_of_one_request_never_disagree(edits: list[tuple[int, int, bytes]]) -> None:
    """What is taken for the same head again, a parser reads as that; so no request is smuggled."""
    request = _edited(edits)
    body = _remembered().body_of(request)
    if body is None:
        return
    read = _parsed(request)
    assert read is not None, "a parser would not have it"
    headers, parsed = read
    before, _ = cast(tuple[dict[str, str], bytes], _parsed(FIRST))
    assert parsed == body
    assert {**headers, "Content-Length": ""} == {**before, "Content-Length": ""}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What parsers were given to read."""
    given: list[bytes] = []

    class Counting:
        def __init__(self, loop: asyncio.AbstractEventLoop, header_bytes: int) -> None:
            self._parser = new_parser(loop, header_bytes)

        def feed_data(self, data: bytes) -> object:
            given.append(data)
            return self._parser.feed_data(data)

    monkeypatch.setattr(direct, "new_parser", Counting)
    return given


def test_a_client_that_says_the_same_again_is_not_parsed_again(
    on_loop: OnLoop, read: list[bytes]
) -> None:
    async def main() -> None:
        entrance = FakeEntrance()
        async with serving(entrance) as served, connected(served) as client:
            bodies = [b"{}", b'{"a":1}', b"", b"x" * 9000, b"{}"]
            for body in bodies:
                client.post(body)
                assert (await client.response()).status == 200
            assert len(read) <= 2  # head and body may come one after the other
            client.post(b"{}", X="other")
            assert (await client.response()).status == 200
            assert len(read) > 1
            assert served.listener.direct == 1
        assert [posted.body for posted in entrance.posted] == [*bodies, b"{}"]
        assert entrance.posted[-1].headers.get("X") == "other"
        assert entrance.posted[0].headers.get("X") is None

    on_loop(main())


def test_a_client_that_begins_to_say_the_same_is_known_again_before_long(read: list[bytes]) -> None:
    """To remember heads that always differ costs more than it brings: it is tried now and then."""

    async def main() -> None:
        async with serving(FakeEntrance()) as served, connected(served) as client:
            for number in range(3 * SELDOM):
                client.post(b"{}", X=str(number))
                assert (await client.response()).status == 200
            parsed = len(read)
            for _ in range(3 * SELDOM):
                client.post(b"{}", X="the same")
                assert (await client.response()).status == 200
            assert len(read) <= parsed + 2 * SELDOM

    run(main())


def test_the_same_head_in_a_large_request_goes_to_the_handler() -> None:
    async def main() -> None:
        entrance = FakeEntrance()
        async with serving(entrance) as served, connected(served) as client:
            for size, direct_ones in ((5, 1), (MOST_BYTES, 0), (5, 0)):
                client.post(b"x" * size)
                assert (await client.response()).status == 200
                assert served.listener.direct == direct_ones
        assert [len(posted.body) for posted in entrance.posted] == [5, MOST_BYTES, 5]

    run(main())


def test_a_token_that_is_taken_back_opens_nothing_more() -> None:
    """Though its connection is open, and the head the same as before."""
    secret = Secret("someone", "s3cret")

    async def main() -> None:
        async with serving(FakeEntrance(), tokens=[secret]) as served, connected(served) as client:
            assert served.endpoint is not None
            names = own_names([Address("127.0.0.1", served.port)], (), ())
            statuses = []
            for tokens in ([secret], [secret], [Secret("another", "0ther")], [secret]):
                served.endpoint.guard = Guard(names, Tokens(tokens))
                client.post(b"{}", Authorization="Bearer s3cret")
                statuses.append((await client.response()).status)
            assert statuses == [200, 200, 401, 200]

    run(main())


def test_a_body_beyond_the_bound_is_refused_whatever_was_said_before_it() -> None:
    async def main() -> None:
        async with serving(FakeEntrance(), body_bytes=10) as served, connected(served) as client:
            statuses = []
            for size in (10, 11, 10):
                client.post(b"x" * size)
                statuses.append((await client.response()).status)
                if statuses[-1] == 413:
                    break
            assert statuses == [200, 413]

    run(main())
