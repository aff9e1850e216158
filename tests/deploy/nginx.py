"""A real nginx on the shipped files, with gateways behind it and clients in front."""

import os
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import aiohttp
from aiohttp import AddrInfoType
from aiohttp.abc import AbstractResolver, ResolveResult

from tests.deploy.shipped import adapted, replaced, shipped, wanted
from tests.kit.gateway import Gateway
from tests.kit.http import PATIENCE, Wire
from tests.kit.ports import free_port
from tests.kit.processes import program
from tests.kit.waiting import eventually, eventually_async

W = TypeVar("W", bound=Wire)

NAME = "mcp.example.com"
"""What clients call it: the name in the shipped files."""
SNIPPET = "/etc/nginx/snippets/onegate-proxy.conf"
MAIN = """
daemon off;
{user}
pid {folder}/nginx.pid;
error_log stderr info;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running nginx."""

    url: str
    """Of the MCP endpoint, by the name clients use."""
    certificate: Path
    log: Path

    @asynccontextmanager
    async def client(
        self, kind: type[W], headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[W]:
        """A client that checks the certificate and finds the name on this machine."""
        made: list[socket.socket] = []

        def new_socket(info: AddrInfoType) -> socket.socket:
            made.append(socket.socket(*info[:3]))
            return made[-1]

        connector = aiohttp.TCPConnector(
            ssl=ssl.create_default_context(cafile=str(self.certificate)),
            resolver=_Here(),
            socket_factory=new_socket,
        )
        async with aiohttp.ClientSession(connector=connector, timeout=PATIENCE) as http:
            yield kind(http, self.url, headers)
        # Goodbyes over TLS take a moment that aiohttp does not wait for.
        await eventually_async(lambda: all(each.fileno() < 0 for each in made), what="goodbyes")


@contextmanager
def nginx(
    folder: Path,
    site: str,
    gateways: Mapping[str, Gateway],
    settings: Mapping[str, str] | None = None,
) -> Iterator[Proxy]:
    """nginx on a shipped site, before these gateways, by the addresses they have in the file.

    `settings` are replacements in the shipped settings that both sites include.
    """
    made = folder / "nginx"
    made.mkdir()
    port = free_port()
    certificate, key = _certificate(made)
    snippet = replaced(made, "snippet.conf", adapted(shipped(_PROXY), settings or {}))
    changes = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/ssl/onegate/fullchain.pem": str(certificate),
        "/etc/ssl/onegate/privkey.pem": str(key),
        SNIPPET: str(snippet),
    }
    text = shipped(f"nginx/{site}")
    for address, gateway in gateways.items():
        real = ":".join(map(str, gateway.host_port))
        changes[address] = real
        if escaped(address) in text:
            changes[escaped(address)] = escaped(real)
    replaced(made, "site.conf", adapted(text, changes))
    user = "user root;" if os.geteuid() == 0 else ""
    main = replaced(made, "nginx.conf", MAIN.format(folder=made, user=user))
    argv = [wanted("nginx"), "-p", str(made), "-c", str(main), "-e", "stderr"]
    subprocess.run([*argv, "-t", "-q"], check=True, timeout=20)
    with program(argv, made / "log") as running:
        eventually(lambda: _listens(port) or not running.is_running, what=running.text)
        assert running.is_running, running.text
        yield Proxy(f"https://{NAME}:{port}/mcp", certificate, made / "log")


_PROXY = "nginx/onegate-proxy.conf"


def escaped(address: str) -> str:
    """An address as a regular expression of the shipped file writes it."""
    return address.replace(".", r"\.")


def _certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for the name, signed by nobody but itself, and its key."""
    certificate, key = folder / "fullchain.pem", folder / "privkey.pem"
    subprocess.run(
        [
            *(wanted("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt"),
            *("ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={NAME}"),
            *("-addext", f"subjectAltName=DNS:{NAME}"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
        timeout=30,
    )
    return certificate, key


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class _Here(AbstractResolver):
    """Every name is this machine."""

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host="127.0.0.1",
                port=port,
                family=socket.AF_INET,
                proto=0,
                flags=0,
            )
        ]

    async def close(self) -> None:
        """Nothing is held."""
