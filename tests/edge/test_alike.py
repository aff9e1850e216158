"""What is served directly is answered as aiohttp's handler would: the same bytes in, the same out.

Each conversation is held with both, its bytes in one piece, in small ones and one by one. The
last request of each ends the connection, so that everything that is said can be compared.
"""

import asyncio
import gzip
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from gateway.edge.parsing import MOST_BYTES
from gateway.eras.sides import Answer, Posted, Reply
from tests.edge.conftest import OnLoop
from tests.edge.serving import (
    OK,
    WITHIN_S,
    FakeEntrance,
    Secret,
    progress,
    serving,
)
from tests.kit.waiting import eventually_async, run

HOST = b"Host: gate.example"
JSON = b"Content-Type: application/json"
LAST = b"Connection: close"
ORIGIN = "https://app.example"
TOKEN = Secret("someone", "s3cret")
AUTH = b"Authorization: Bearer s3cret"

Seen = tuple[bytes, str | None, dict[str, str]]
Said = tuple[bytes, list[tuple[bytes, bytes]], bytes]


def _request(line: bytes, *headers: bytes, body: bytes = b"") -> bytes:
    return b"\r\n".join([line, *headers, b"", body])


def _post(body: bytes = b"{}", *more: bytes, path: bytes = b"/mcp", size: bytes = b"") -> bytes:
    length = b"Content-Length: " + (size or b"%d" % len(body))
    return _request(b"POST %b HTTP/1.1" % path, HOST, JSON, length, *more, body=body)


def _headers(*headers: bytes, body: bytes = b"{}") -> bytes:
    """A POST with no more headers than these."""
    return _request(b"POST /mcp HTTP/1.1", *headers, body=body)


END = _post(b'"end"', LAST)
CHUNKS = b"2\r\n{}\r\n0\r\n\r\n"
TE = b"Transfer-Encoding: "
CL = b"Content-Length: "

CONVERSATIONS: dict[str, bytes] = {
    "one": END,
    "two": _post() + END,
    "three, all early": _post(b"1") + _post(b"2") + _post(b"3") + END,
    "two hundred": b"".join(_post(b"%d" % number) for number in range(200)) + END,
    "other spelling of the path": _post(path=b"/mcp/") + END,
    "blank lines between": b"\r\n" + _post() + b"\r\n\r\n" + END,
    "a line before a blank one": b"\n\r\n\r\n" + _post(b"x" * 40) + END,
    "the end of a head in a body": _post(b"a\r\n\r\nb") + END,
    "a request in a body": _post(_post(b"inner")) + END,
    "names in any case": _headers(b"hOST: gate.example", JSON.upper(), b"content-LENGTH: 2") + END,
    "said before it was asked": _post(b'"stream"') + _post() + END,
    "a stream that is the last": _post(b'"stream"', LAST),
    "answers of all kinds": b"".join(
        _post(b'"%b"' % kind) for kind in (b"202", b"204", b"headers", b"large", b"crash", b"busy")
    )
    + END,
    "no length": _headers(HOST, JSON, body=b"") + END,
    "length zero": _post(b"") + END,
    "length with zeros": _post(size=b"0002") + END,
    "length with spaces": _post(size=b"  2 \t") + END,
    "length with a plus": _post(size=b"+2") + END,
    "length in Python's way": _post(b"{}" * 5, size=b"1_0") + END,
    "length in hexadecimal": _post(size=b"0x2") + END,
    "length below zero": _post(size=b"-2") + END,
    "length as a list": _post(size=b"2, 2") + END,
    "length beyond all bounds": _post(size=b"99999999999999999999999999") + END,
    "two lengths that agree": _post(b"{}", CL + b"2") + END,
    "two lengths that do not": _post(b"{}", CL + b"7") + END,
    "no length but a space": _headers(HOST, JSON, b"Content-Length : 2") + END,
    "chunks": _headers(HOST, JSON, TE + b"chunked", body=CHUNKS) + END,
    "chunks and a length": _headers(HOST, JSON, CL + b"2", TE + b"chunked", body=CHUNKS) + END,
    "chunks, said twice": _headers(HOST, JSON, TE + b"chunked, chunked", body=CHUNKS) + END,
    "chunks, misspelt": _headers(HOST, JSON, TE + b"xchunked", CL + b"2") + END,
    "an encoding that is none": _headers(HOST, JSON, TE + b"identity", CL + b"2") + END,
    "compressed": _post(gzip.compress(b"{}", mtime=0), b"Content-Encoding: gzip") + END,
    "bare line feeds": END.replace(b"\r\n", b"\n"),
    "a header that goes on": _post(b"{}", b"X: a\r\n b") + END,
    "a NUL": _post(b"{}", b"X: \x00") + END,
    "a header without a name": _post(b"{}", b": x") + END,
    "bytes that are no text": _post(b"\xff", b"X: \xff\xfe") + END,
    "no Host": _headers(JSON, CL + b"2") + END,
    "two Hosts": _post(b"{}", HOST) + END,
    "another Host": _headers(b"Host: evil.example", JSON, CL + b"2") + END,
    "HTTP/1.0": _request(b"POST /mcp HTTP/1.0", HOST, JSON, CL + b"2", body=b"{}"),
    "HTTP/1.0 that stays": _request(
        b"POST /mcp HTTP/1.0", HOST, JSON, CL + b"2", b"Connection: keep-alive", body=b"{}"
    )
    + END,
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "an upgrade": _post(b"{}", b"Connection: upgrade, close", b"Upgrade: h2c"),
    "leave to send": _post(b"{}", b"Expect: 100-continue") + END,
    "another method": _post() + _request(b"DELETE /mcp HTTP/1.1", HOST, AUTH) + _post() + END,
    "a preflight": _request(
        b"OPTIONS /mcp HTTP/1.1",
        HOST,
        b"Origin: " + ORIGIN.encode(),
        b"Access-Control-Request-Method: POST",
    )
    + END,
    "a GET that takes no stream": _request(b"GET /mcp HTTP/1.1", HOST, b"Accept: a/b") + END,
    "a method nobody knows": _request(b"BREW /mcp HTTP/1.1", HOST) + END,
    "another path": _post(path=b"/nowhere") + END,
    "a query": _post(path=b"/mcp?a=b") + END,
    "a whole URL": _post(path=b"http://gate.example/mcp") + END,
    "an Origin that may": _post(b"{}", b"Origin: " + ORIGIN.encode()) + END,
    "an Origin that may not": _post(b"{}", b"Origin: https://evil.example") + END,
    "no JSON": _headers(HOST, b"Content-Type: text/plain", CL + b"2") + END,
    "nothing that could be answered": _post(b"{}", b"Accept: image/png") + END,
    "a stream and nothing else": _post(b"{}", b"Accept: text/event-stream") + END,
    "more body than allowed": _post(b"x" * 2001),
    "a long header": _post(b"{}", b"X: " + b"y" * 3000),
    "many headers": _post(b"{}", *(b"X%d: y" % number for number in range(200))),
    "a long path": _post(path=b"/mcp?" + b"y" * 3000),
}

WITH_TOKENS = {
    "no token": _post() + END,
    "a token": _post(b"{}", AUTH) + _post(b'"end"', AUTH, LAST),
    "another token": _post(b"{}", AUTH + b"x") + END,
}

PIECES = {"whole": 2**20, "sevens": 7, "bytes": 1}
LONGEST = 2500
"""Of what is longer, single bytes would take too many turns."""


@pytest.mark.parametrize("size", PIECES.values(), ids=PIECES)
@pytest.mark.parametrize("said", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_both_see_the_same_requests_and_give_the_same_answers(said: bytes, size: int) -> None:
    """Two readers of one connection that disagree are how requests are smuggled."""

    async def main() -> None:
        pieces = list(_pieces(said, size))
        direct = await _held(pieces)
        handled = await _held(pieces, direct=False)
        assert direct == handled
        assert direct[0], "nothing was answered"

    run(main())


@pytest.mark.parametrize("said", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_both_agree_on_what_comes_after_a_request_like_it(said: bytes) -> None:
    """A head that is the same again but for its length is not parsed again (`request_head`)."""

    async def main() -> None:
        pieces = [_post(b'"before"'), _post(b"{}"), said]
        direct = await _held(pieces, awaited=2)
        handled = await _held(pieces, awaited=2, direct=False)
        assert _without_lengths(direct) == _without_lengths(handled)
        assert [body for body, _, _ in direct[1]][:2] == [b'"before"', b"{}"]

    run(main())


@pytest.mark.parametrize("said", WITH_TOKENS.values(), ids=WITH_TOKENS)
def test_both_ask_for_a_token(said: bytes) -> None:
    async def main() -> None:
        direct = await _held([said], tokens=[TOKEN])
        assert direct == await _held([said], tokens=[TOKEN], direct=False)
        assert [name for _, name, _ in direct[1]] == ["someone"] * (said.count(AUTH + b"\r"))

    run(main())


def test_both_leave_alone_what_comes_after_the_last_request() -> None:
    async def main() -> None:
        for pieces in ([END, _post()], [END + _post()], [*_pieces(END, 1), _post()]):
            assert await _held(pieces) == await _held(pieces, direct=False)

    run(main())


def test_both_do_so_on_either_loop(on_loop: OnLoop) -> None:
    async def main() -> None:
        for name in ("three, all early", "said before it was asked", "another method", "chunks"):
            for size in PIECES.values():
                pieces = list(_pieces(CONVERSATIONS[name], size))
                assert await _held(pieces) == await _held(pieces, direct=False), name

    on_loop(main())


def test_the_answers_are_the_ones_that_are_meant() -> None:
    """That both agree says little if both were wrong."""

    async def main() -> None:
        for name, statuses in {
            "two hundred": [200] * 201,
            "said before it was asked": [200] * 3,
            "answers of all kinds": [202, 204, 200, 200, 500, 503, 200],
            "more body than allowed": [413],
            "a long header": [431],
            "no Host": [400],
            "two lengths that do not": [400],
            "chunks and a length": [400],
            "leave to send": [200, 200],
            "another method": [200, 204, 200, 200],
        }.items():
            answers, _ = await _held([CONVERSATIONS[name]])
            assert [int(first.split()[1]) for first, _, _ in answers] == statuses, name

    run(main())


def _without_lengths(
    held: tuple[list[Said], list[Seen]],
) -> tuple[list[Said], list[Seen]]:
    """Of what the entrance saw: nobody there reads how long a body is said to be."""
    answers, seen = held
    return answers, [(body, who, {**told, "Content-Length": ""}) for body, who, told in seen]


async def _answer(posted: Posted, reply: Reply) -> Answer:
    match posted.body:
        case b'"stream"':
            reply.push(progress(1))
        case b'"202"' | b'"204"':
            return Answer(int(posted.body.strip(b'"')))
        case b'"headers"':
            return Answer(200, b"{}", {"Mcp-Session-Id": "abc"})
        case b'"large"':
            return Answer(200, b"x" * 3 * MOST_BYTES)
        case b'"crash"':
            raise RuntimeError("on purpose")
        case b'"busy"':
            return Answer(503, b"{}", {"Retry-After": "5"})
    return OK


async def _held(
    pieces: Sequence[bytes], awaited: int = 0, **setting: Any
) -> tuple[list[Said], list[Seen]]:
    """All that the gateway says to them, and what its entrance saw of them. The answers to the
    first `awaited` are awaited, each before the next is sent."""
    entrance = FakeEntrance(_answer)
    usual: dict[str, Any] = {
        "hosts": ["gate.example"],
        "origins": [ORIGIN],
        "body_bytes": 2000,
        "header_bytes": 2000,
    }
    with capture_logs():
        async with serving(entrance, **usual | setting) as served:
            with socket.create_connection(("127.0.0.1", served.port)) as client:
                said = await _spoken(client, pieces, awaited)
            await eventually_async(lambda: served.listener.connections == 0)
            assert not served.pulse.open
    seen = [
        (one.body, one.principal, dict(cast(Mapping[str, str], one.headers)))
        for one in entrance.posted
    ]
    return list(_answers(said)), seen


def _pieces(said: bytes, size: int) -> Iterator[bytes]:
    step = max(size, len(said) // LONGEST)
    return (said[at : at + step] for at in range(0, len(said), step))


async def _spoken(client: socket.socket, pieces: Sequence[bytes], awaited: int) -> bytes:
    """No stream of asyncio: that forgets what it has read when the other end resets."""
    loop = asyncio.get_running_loop()
    client.setblocking(False)
    said = b""
    with suppress(ConnectionError):  # an answer may come, and the end, before all is sent
        for number, piece in enumerate(pieces, 1):
            await loop.sock_sendall(client, piece)
            while said.count(OK.body or b"") < number <= awaited:
                said += await asyncio.wait_for(loop.sock_recv(client, 2**16), WITHIN_S)
            for _ in range(2):  # turns of the loop: the other end reads this piece alone
                await asyncio.sleep(0)
    with suppress(ConnectionError):
        async with asyncio.timeout(WITHIN_S):
            while more := await loop.sock_recv(client, 2**16):
                said += more
    return said


def _answers(said: bytes) -> Iterator[Said]:
    """First line, headers in order of their names (they may come in any), body. The time is
    told, but another one each time."""
    while said:
        head, _, said = said.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        parts = (line.lower().partition(b": ") for line in lines)
        told = {name: held for name, _, held in parts}
        assert len(told) == len(lines), "a header twice"
        if first != b"HTTP/1.1 100 Continue":
            assert told.pop(b"date").endswith(b" gmt")
            assert told[b"server"] == b"onegate"
        if told.get(b"transfer-encoding") == b"chunked":
            size = said.index(b"\r\n0\r\n\r\n") + len(b"\r\n0\r\n\r\n")
        else:
            size = int(told.get(b"content-length", b"0"))
        body, said = said[:size], said[size:]
        assert len(body) == size, "an answer was cut"
        yield first, sorted(told.items()), body
