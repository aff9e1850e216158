"""Open the sockets to listen on: TCP and Unix, with errors a person can act on."""

import asyncio
import errno
import os
import socket
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.config.units import Address

IS_POSIX = os.name == "posix"
KEEP_ALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
UNACKNOWLEDGED_MS = 90_000
"""A peer that acknowledges nothing for so long is gone: a cable pulled under an open stream."""
PROBE_S = 1.0


class CannotListen(Exception):
    """An address could not be bound. The message is one line, for the person who set it."""


@dataclass(frozen=True, slots=True)
class Bound:
    """An address with the port it really has, and its sockets (`localhost` may have two)."""

    address: Address
    sockets: tuple[socket.socket, ...]
    file: tuple[int, int] | None = None
    """Device and inode of a Unix socket's file."""

    def close(self) -> None:
        """Close the sockets, and remove the file unless it is somebody else's by now."""
        for sock in self.sockets:
            sock.close()
        if self.address.path is not None and _file_of(self.address.path) == self.file:
            Path(self.address.path).unlink(missing_ok=True)


async def bind(addresses: Sequence[Address], setting: str) -> tuple[Bound, ...]:
    """Bind every address, or none. `setting` is the key that names them, for the error.

    Raises `CannotListen`.
    """
    bound: list[Bound] = []
    try:
        for address in addresses:
            if address.path is not None:
                sock = _unix(address.path)
                bound.append(Bound(address, (sock,), _file_of(address.path)))
            else:
                bound.append(await _tcp(address))
    except OSError as error:
        for one in bound:
            one.close()
        reason = _reason(error, address)
        raise CannotListen(f"cannot listen on {address} (`{setting}`): {reason}") from error
    return tuple(bound)


async def _tcp(address: Address) -> Bound:
    found = await asyncio.get_running_loop().getaddrinfo(
        address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    port = address.port
    missing: OSError | None = None
    for family, _, _, _, where in dict.fromkeys(found):
        try:
            sockets.append(_tcp_socket(family, (where[0], port, *where[2:])))
        except OSError as error:
            if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                missing = error  # a machine without IPv6 still has a `localhost` in it
                continue
            for sock in sockets:
                sock.close()
            raise
        port = sockets[-1].getsockname()[1]
    if not sockets:
        raise missing or OSError(errno.EADDRNOTAVAIL, "no such address")
    return Bound(replace(address, port=port), tuple(sockets))


def _tcp_socket(family: int, where: tuple[object, ...]) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if IS_POSIX:  # on Windows this would let another program take the port over
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        _notice_dead_peers(sock)
        sock.setblocking(False)
        sock.bind(where)
    except OSError:
        sock.close()
        raise
    return sock


def _notice_dead_peers(sock: socket.socket) -> None:
    """Set once here: accepted connections inherit it."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (*KEEP_ALIVE, ("TCP_USER_TIMEOUT", UNACKNOWLEDGED_MS)):
        option = getattr(socket, name, None)
        if option is not None:
            with suppress(OSError):  # a kernel may know the name and not the option
                sock.setsockopt(socket.IPPROTO_TCP, option, value)


def _unix(path: str) -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise OSError(errno.EAFNOSUPPORT, "this system has no Unix sockets")
    _remove_stale(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(OSError):  # Linux makes the file with this mode, so it is never open to all
            os.fchmod(sock.fileno(), 0o600)
        sock.setblocking(False)
        sock.bind(path)
        os.chmod(path, 0o600)
    except OSError:
        sock.close()
        raise
    return sock


def _file_of(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _remove_stale(path: str) -> None:
    """Remove a socket file nobody listens on. Raises OSError if it is anything else."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise OSError(errno.EEXIST, "there is a file of that name that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_S)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            Path(path).unlink(missing_ok=True)
            return
        except TimeoutError:
            pass  # somebody holds it and does not accept: not ours to take
    raise OSError(errno.EADDRINUSE, "in use")


def _reason(error: OSError, address: Address) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return "another program listens there already; stop it, or choose another address"
        case errno.EACCES | errno.EPERM:
            return "no permission; choose a port above 1023, or a folder you may write to"
        case errno.EADDRNOTAVAIL:
            return "this machine has no such address"
        case errno.ENOENT if address.path is not None:
            return "its folder does not exist"
        case _ if isinstance(error, socket.gaierror):
            return "the host's name cannot be resolved"
        case _:
            return error.strerror or str(error)
