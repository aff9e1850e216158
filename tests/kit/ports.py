"""Ports nobody listens on."""

import socket


def free_port(host: str = "127.0.0.1") -> int:
    """A TCP port that was free a moment ago. Another program may take it: rare, on loopback."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
