"""The small HTTP client, against whatever a server may send."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.edge.stdio.http1 import Gone, Http
from gateway.edge.stdio.place import Place
from tests.kit.waiting import run

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Scripted:
    """Answers each request on a connection with the next of these; `b""` closes."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.connections = 0
        self.requests: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.answers:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(size))
                answer = self.answers.pop(0)
                for at in range(0, len(answer), 7):  # cut anywhere
                    writer.write(answer[at : at + 7])
                    await writer.drain()
                if b"close" in answer or not answer:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()


@asynccontextmanager
async def served(scripted: Scripted) -> AsyncIterator[Http]:
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    http = Http(Place.parse(f"http://127.0.0.1:{port}/mcp?x=1"))
    try:
        yield http
    finally:
        http.close()
        server.close()


async def asked(http: Http, body: bytes = b"") -> tuple[int, bytes]:
    async with await http.ask("POST", {"A": "b"}, body) as response:
        return response.status, await response.whole(1000)


def answered(*answers: bytes, times: int = 1) -> tuple[list[tuple[int, bytes]], Scripted]:
    scripted = Scripted(*answers)

    async def converse() -> list[tuple[int, bytes]]:
        async with served(scripted) as http:
            return [await asked(http, b"hello") for _ in range(times)]

    return run(converse()), scripted


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde", 200, b"abcde"),
        (b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", 202, b""),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (CHUNKED + b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: x\r\n\r\n", 200, b"abc0123456789"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz", 200, b"z"),
        (b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nto the end", 200, b"to the end"),
    ],
)  # fmt: skip
def test_a_body_is_read_however_it_is_framed(answer: bytes, status: int, body: bytes) -> None:
    found, scripted = answered(answer)
    assert found == [(status, body)]
    request = scripted.requests[0]
    assert request.startswith(b"POST /mcp?x=1 HTTP/1.1\r\nHost: 127.0.0.1:")
    assert request.endswith(b"\r\n\r\nhello")
    assert b"A: b\r\n" in request


def test_a_connection_is_used_again() -> None:
    one = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    found, scripted = answered(one, one, CHUNKED + b"0\r\n\r\n", one, times=4)
    assert [body for _, body in found] == [b"ok", b"ok", b"", b"ok"]
    assert scripted.connections == 1


def test_a_connection_that_is_to_be_closed_is_not() -> None:
    one = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
    _, scripted = answered(one, one, times=2)
    assert scripted.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n\r\nclose",
        b"HTTP/1.1 abc\r\n\r\nclose",
        CHUNKED + b"5\r\nabc close",
        CHUNKED + b"zz\r\nclose",
        b"HTTP/1.1 200 OK\r\nX: close\r\nContent-Length: 50\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nclose",
        CHUNKED + b"800\r\n" + b"x" * 2048 + b"\r\n0\r\n\r\n",
    ],
)
def test_what_is_no_whole_answer_is_none(answer: bytes) -> None:
    """Nor is one beyond the bound. In each case the request may have arrived."""
    with pytest.raises(Gone) as gone:
        answered(answer)
    assert gone.value.sent


def test_nobody_there_is_told_apart() -> None:
    async def converse() -> None:
        await Http(Place.parse("http://127.0.0.1:1/mcp")).ask("GET", {})

    with pytest.raises(Gone, match="refused") as gone:
        run(converse())
    assert not gone.value.sent


@pytest.mark.parametrize(
    ("text", "authority", "target"),
    [
        ("http://127.0.0.1:8765/mcp", "127.0.0.1:8765", "/mcp"),
        ("http://127.0.0.1:8765", "127.0.0.1:8765", "/mcp"),
        ("https://gate.example/mcp?a=b", "gate.example", "/mcp?a=b"),
        ("http://[::1]:80/x/", "[::1]", "/x/"),
        ("unix:/run/onegate.sock", "localhost", "/mcp"),
        ("http://b\u00fccher.example/mcp", "xn--bcher-kva.example", "/mcp"),
    ],
)
def test_an_address_says_where_and_what(text: str, authority: str, target: str) -> None:
    place = Place.parse(text)
    assert (place.authority, place.target, place.shown) == (authority, target, text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "127.0.0.1:8765", "ftp://x/", "unix:", "http://", "http://x:99999/", "http://x/a b"),
        *("http://user:secret@x/", "http://x/\r\nEvil: 1", "http://x/ü"),
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValueError) as refused:
        Place.parse(text)
    assert "secret" not in str(refused.value)
