"""Ask a running gateway, by HTTP on its admin address. Standard library only: `health` is quick."""

import http.client
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

import msgspec

from gateway.cli.ending import Failed
from gateway.edge.admin.operator import Explanation, Readiness, ServerReport, ToolReport

if TYPE_CHECKING:
    from gateway.config.units import Address

T = TypeVar("T")
Heard = Callable[[Mapping[str, Any]], None]
"""Told the params of each progress notification: `progress`, perhaps `total` and `message`."""

ANSWER_S = 10.0
"""For pages, which the gateway has at hand. A call may take as long as its rules allow."""
LEFT = "the gateway at {} left before it had answered"
LINES = "application/jsonl"
WANTS_TOKEN = (
    "the gateway at {} wants a token for this: set ONEGATE_TOKEN to one of those whose hashes "
    "are under `auth.tokens`"
)


class NobodyThere(Exception):
    """Nothing listens on the admin address."""


class _Servers(msgspec.Struct):
    servers: list[ServerReport]


class _Tools(msgspec.Struct):
    tools: list[ToolReport]


class _Calls(msgspec.Struct):
    calls: list[dict[str, Any]]


class Admin:
    """A running gateway. Each question raises `NobodyThere`, or `Failed` if it is refused."""

    def __init__(self, address: "Address", token: str | None = None) -> None:
        self._address = address
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def __str__(self) -> str:
        return str(self._address)

    def servers(self) -> list[ServerReport]:
        return self._page("/api/servers", _Servers).servers

    def tools(self) -> list[ToolReport]:
        return self._page("/api/tools", _Tools).tools

    def explain(self, name: str) -> Explanation | None:
        status, body = self._ask("GET", f"/api/explain?{urlencode({'tool': name})}")
        return None if status == 404 else self._read(status, body, Explanation)

    def calls(self, last: int, only: Mapping[str, str]) -> list[dict[str, Any]]:
        """The newest `last` records that fit `only`, oldest first."""
        return self._page(f"/api/calls?{urlencode({'last': last, **only})}", _Calls).calls

    def ready(self) -> Readiness:
        status, body = self._ask("GET", "/readyz", headers={"Accept": "application/json"})
        return self._read(200 if status == 503 else status, body, Readiness)

    def call(
        self, name: str, arguments: Mapping[str, Any], heard: Heard | None = None
    ) -> dict[str, Any]:
        """`{"result": …}` or `{"error": {code, message}}`. `heard` is told of progress."""
        body = json.dumps({"tool": name, "arguments": arguments}).encode()
        headers = {"Content-Type": "application/json"}
        if heard is not None:
            headers["Accept"] = LINES
        with self._asked("POST", "/api/call", body, headers, within_s=None) as response:
            last = b""
            for line in response:
                if last and heard is not None:
                    heard(self._read(200, last, dict[str, Any]).get("progress") or {})
                last = line
            answered = self._read(response.status, last, dict[str, Any])
        if not answered.keys() & {"result", "error"}:
            raise Failed(LEFT.format(self._address))
        return answered

    def _page(self, path: str, shape: type[T]) -> T:
        return self._read(*self._ask("GET", path), shape)

    def _read(self, status: int, body: bytes, shape: type[T]) -> T:
        if status == 401:
            raise Failed(WANTS_TOKEN.format(self._address))
        if status != 200:
            raise Failed(f"the gateway at {self._address} refuses: {_reason(status, body)}")
        try:
            return msgspec.json.decode(body, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Failed(f"the gateway at {self._address} is of another version") from None

    def _ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        with self._asked(method, path, None, headers or {}, ANSWER_S) as response:
            return response.status, response.read()

    @contextmanager
    def _asked(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        within_s: float | None,
    ) -> Iterator[http.client.HTTPResponse]:
        connection = _connection(self._address, within_s)
        try:
            connection.request(method, path, body, {**self._headers, **headers})
            response = connection.getresponse()
            if response.getheader("Server") != "onegate":
                raise Failed(
                    f"what answers at {self._address} is not onegate; "
                    "set `admin` to an address of its own, or give --admin HOST:PORT"
                )
            yield response
        except TimeoutError:
            raise Failed(f"the gateway at {self._address} does not answer") from None
        except (ConnectionRefusedError, FileNotFoundError):
            raise NobodyThere from None
        except http.client.IncompleteRead:
            raise Failed(LEFT.format(self._address)) from None
        except http.client.HTTPException:
            raise Failed(f"what answers at {self._address} does not speak HTTP") from None
        except OSError as error:
            raise Failed(f"cannot reach {self._address}: {error.strerror or error}") from None
        finally:
            connection.close()


def _connection(address: "Address", within_s: float | None) -> http.client.HTTPConnection:
    if address.path is not None:
        return _OverUnixSocket(address.path, within_s)
    return http.client.HTTPConnection(address.host, address.port, timeout=within_s)


class _OverUnixSocket(http.client.HTTPConnection):
    """HTTP over a Unix socket; its `Host` is `localhost`."""

    def __init__(self, path: str, within_s: float | None) -> None:
        super().__init__("localhost", timeout=within_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _reason(status: int, body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {status}"
