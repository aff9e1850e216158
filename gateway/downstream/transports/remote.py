"""One address on the network, and the one HTTP client that reaches all of them.

Nothing but what the configuration says travels: no cookies, no proxy from the environment,
no credentials to another origin. Errors name the host, never a path or a query: people put
keys there.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import aiohttp
from yarl import URL

from gateway import __version__
from gateway.downstream.environment import CannotStart
from gateway.downstream.transports.failures import BrokenOff, NotTaken

KEPT_S = 4.0
"""How long an idle connection is kept: servers commonly close theirs after 5 s, and a request
sent in that very moment would be lost."""

AGENT = f"onegate/{__version__}"

TOLD_WITHIN_S = 10.0
"""How long a server may be silent where it is only told something: it has been told by then."""

AT_ONCE_BYTES = 256 * 1024

SECRET_CHARACTERS = 6
"""Shorter header values are no secrets, and found in many a word."""

UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
"""What OpenSSL says of a chain that leads to nobody who is trusted."""

PROBES = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""How soon the system looks whether the other end of a silent stream is there (seconds)."""

REDIRECTS = frozenset({307, 308})
"""Those that keep method and body. With the others a POST would turn into a GET."""


@dataclass(slots=True, eq=False)
class Web:
    """The HTTP client of the gateway, and all that is under way over it. Opened at its
    first use."""

    begin: Callable[[Coroutine[Any, Any, None], str], "asyncio.Task[None]"]
    """Run work for a server in a task that somebody owns."""
    _session: aiohttp.ClientSession | None = None
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _is_closed: bool = False

    @property
    def session(self) -> aiohttp.ClientSession:
        """Raises `RuntimeError` once the client is closed."""
        if self._is_closed:
            raise RuntimeError("closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                headers={"User-Agent": AGENT, "Accept-Encoding": "gzip, deflate"},
            )
        return self._session

    def start(self, work: Coroutine[Any, Any, None], server: str) -> "asyncio.Task[None]":
        task = self.begin(work, server)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # it may have been ended before it began
        return task

    async def close(self) -> None:
        """End all that is still under way."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._session is not None:
            await self._session.close()


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificates other than the usual, as files; read anew at each start."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    async def context(self) -> ssl.SSLContext | bool:
        """True for the usual. Raises `CannotStart`, naming the file."""
        if self.ca is None and self.cert is None:
            return True
        return await asyncio.to_thread(self._load)

    def _load(self) -> ssl.SSLContext:
        file = self.ca
        try:
            made = ssl.create_default_context(cafile=self.ca)
            if self.cert is not None:
                file = self.cert
                made.load_cert_chain(self.cert, self.key, password=_no_password)
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            why = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            said = f"cannot use the certificate in {file}: {why}"
            raise CannotStart(said, permanent=True) from None
        return made


def _no_password() -> str:
    raise ValueError("its key is encrypted; give one that is not")


@dataclass(frozen=True, slots=True)
class Remote:
    """Where one server is, and how to get there."""

    server: str
    url: URL = field(repr=False)
    web: Web
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: ssl.SSLContext | bool = True
    proxy: str | None = field(default=None, repr=False)
    connect_timeout_s: float = 10.0

    @property
    def host(self) -> str:
        """HOST or HOST:PORT, for people."""
        return self.url.authority.rpartition("@")[2]

    def masked(self, said: bytes) -> bytes:
        """What a server says of a request, without the credentials it may quote from it."""
        for header in self.headers.values():
            for secret in (header, header.rpartition(" ")[2]):
                if len(secret) >= SECRET_CHARACTERS:
                    said = said.replace(secret.encode(), b"***")
        return said

    async def request(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        url: URL | None = None,
        silence_s: float | None = None,
    ) -> aiohttp.ClientResponse:
        """Send one request; return when the head of the answer is there.

        `silence_s` bounds the time without a byte. The caller closes what it gets. Raises
        `NotTaken` if there was no connection to send it over, else `BrokenOff`.
        """
        target = url or self.url
        answer = await self._send(method, target, headers, body, silence_s)
        if answer.status not in REDIRECTS:
            return answer
        where = self._redirected(target, answer)
        answer.release()
        if where is None:
            return answer
        return await self._send(method, where, headers, body, silence_s)

    async def _send(
        self,
        method: str,
        url: URL,
        headers: Mapping[str, str],
        body: bytes | None,
        silence_s: float | None,
    ) -> aiohttp.ClientResponse:
        timeout = aiohttp.ClientTimeout(
            total=None, connect=self.connect_timeout_s, sock_read=silence_s
        )
        try:
            return await self.web.session.request(
                method,
                url,
                data=_payload(body),
                headers={**self.headers, **headers},
                allow_redirects=False,
                ssl=self.tls,
                proxy=None if is_loopback(url.host) else self.proxy,
                timeout=timeout,
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise self._unreachable(_why(error)) from None
        except aiohttp.ClientHttpProxyError as error:
            raise self._unreachable(f"the proxy answers HTTP {error.status}") from None
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self.broken(_why(error)) from None
        except ValueError:  # what the server told would make a header that none may be
            raise self.broken("HTTP cannot carry the request") from None
        except RuntimeError:  # the client is closed: the gateway is stopping
            raise self._unreachable("the gateway is stopping") from None

    def _redirected(self, asked: URL, answer: aiohttp.ClientResponse) -> URL | None:
        """Where to, if that is at the same origin."""
        try:
            where = asked.join(URL(answer.headers["Location"]))
        except (KeyError, ValueError):
            return None
        return where.with_user(None) if where.origin() == asked.origin() else None

    def _unreachable(self, why: str) -> NotTaken:
        return NotTaken(
            f"The server {self.server} cannot be reached at {self.host}: {why}",
            server=self.server,
            retryable=True,
        )

    def broken(self, why: str) -> BrokenOff:
        return BrokenOff(
            f"The server {self.server} broke off before it answered ({why}). "
            "Whether it did what it was asked is not known",
            server=self.server,
        )


def watch_over(response: aiohttp.ClientResponse) -> None:
    """A stream that may be silent for long: have the system notice if its other end is gone."""
    transport = response.connection.transport if response.connection else None
    held = transport.get_extra_info("socket") if transport else None
    if held is None:
        return
    with suppress(OSError):
        held.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in PROBES.items():
            if hasattr(socket, name):
                held.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _payload(body: bytes | None) -> bytes | BytesIO | None:
    """In pieces if it is long: written at once it would hold up everybody."""
    return BytesIO(body) if body is not None and len(body) > AT_ONCE_BYTES else body


def is_loopback(host: str | None) -> bool:
    if host is None or host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _why(error: Exception) -> str:
    """In words, and without anything of what was sent."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            why = error.certificate_error
            said = getattr(why, "verify_message", "") or "not valid"
            hint = "; `ca` names another authority"
            is_strange = getattr(why, "verify_code", None) in UNKNOWN_AUTHORITY
            return f"its certificate cannot be trusted ({said}){hint if is_strange else ''}"
        case aiohttp.ClientConnectorDNSError():
            return "its name cannot be resolved"
        case aiohttp.ClientProxyConnectionError():
            return f"its `proxy` cannot be reached ({_in_words(error)})"
        case aiohttp.ClientConnectorSSLError():
            return f"TLS failed ({getattr(error.os_error, 'reason', None) or 'no agreement'})"
        case aiohttp.ConnectionTimeoutError():
            return "no connection within `connect_timeout`"
        case aiohttp.ServerTimeoutError():
            return "silent for too long"
        case aiohttp.ServerDisconnectedError():
            return "it closed the connection"
        case aiohttp.ClientOSError():
            return _in_words(error)
    return type(error).__name__


def _in_words(error: aiohttp.ClientOSError) -> str:
    """`Connection refused` rather than the call that found it so."""
    known = error.errno is not None and error.errno in errno.errorcode
    return os.strerror(error.errno) if known and error.errno else "the connection failed"
