"""What answers at the address is no gateway, or one that is not well: each call says which."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.stdio.talking import Speaker, seconds, speaking

HANDSHAKE_S = 15.0
"""Ten, and what a busy machine takes."""
REFUSED = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Host \'x\' is foreign"}}'


def answer(status: str, body: bytes = b"", kind: str = "text/html") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@contextmanager
def stranger(said: bytes) -> Iterator[str]:
    """Says the same whatever it is asked. Yields its URL."""

    class Saying(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while asked := self.request.recv(65536):
                if said and b"\r\n\r\n" in asked:
                    self.request.sendall(said)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = daemon_threads = True

    with Server(("127.0.0.1", 0), Saying) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
        finally:
            server.shutdown()
            thread.join()


def called(client: Speaker) -> str:
    """What a model reads that calls a tool."""
    result = client.call("any__tool")
    assert result["isError"] is True
    return str(result["content"][0]["text"])


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (answer("200 OK", b"<html>"), "no MCP endpoint (HTTP 200)"),
        (answer("302 Found"), "no MCP endpoint (HTTP 302)"),
        (answer("403 Forbidden", REFUSED, "application/json"), "(HTTP 403): Host 'x' is foreign"),
        (answer("403 Forbidden", b"<html>"), "no MCP endpoint (HTTP 403)"),
        (answer("404 Not Found", b"<html>"), "no MCP endpoint (HTTP 404)"),
        (answer("502 Bad Gateway", b"<html>"), "what stands in front of it (HTTP 502)"),
        (answer("503 Service Unavailable"), "is stopping, or has too much to do"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP"),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_it_is_named_to_the_model_and_once_to_the_log(
    tmp_path: Path, said: bytes, expected: str
) -> None:
    with stranger(said) as url, speaking(tmp_path, "--url", url) as client:
        client.initialize()
        assert client.tool_names() == []
        for _ in range(3):
            assert expected in called(client)
        assert client.call_modern("any__tool")["isError"] is True
        assert expected in client.errors
        assert "answers\n" not in client.errors.replace(expected, "")
        assert len(client.errors.splitlines()) <= 2


def test_a_gateway_that_hangs_is_told_of_before_clients_lose_patience(tmp_path: Path) -> None:
    """It takes connections and says nothing. Nothing was asked of it, so nothing is in doubt."""
    with stranger(b"") as url, speaking(tmp_path, "--url", url) as client:
        client.initialize()
        heard: list[str] = []
        assert seconds(lambda: heard.append(called(client))) < HANDSHAKE_S
        assert "does not answer (no answer in time)" in heard[0]
        assert "not known" not in heard[0]
        assert "does not answer" in client.errors


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"ONEGATE_TOKEN": "to\u2192ken"}, ["--url", "http://127.0.0.1:1/mcp"]),
        ({"ONEGATE_TOKEN": "a\nEvil: b"}, ["--url", "http://127.0.0.1:1/mcp"]),
        ({}, ["--url", f"http://{'a' * 64}.invalid/mcp"]),
    ],
)
def test_what_can_go_into_no_request_is_refused_at_the_start(
    tmp_path: Path, env: dict[str, str], words: list[str]
) -> None:
    with speaking(tmp_path, *words, env=env) as client:
        assert client.wait_exit() == 2
        assert client.errors.startswith("onegate: ")
        assert "bug" not in client.errors
        assert client.lines == []
