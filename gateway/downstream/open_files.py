"""How many files the gateway may open: all that the system lets it, for it serves many clients.

The usual limit of 1024 is a courtesy to programs that use `select`. The servers it starts
may be such programs, so they get the limit that the gateway itself was started with.
"""

from contextlib import suppress

try:
    import resource
except ImportError:
    resource = None  # type: ignore[assignment]  # there is no such module on Windows

GIVEN = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if resource else 0
"""What this process was started with: read before anybody can have raised it."""


def raise_limit() -> None:
    """Once, at the start of a gateway."""
    if not hasattr(resource, "getrlimit"):
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS: more than it has, and says so only now
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def restore_limit(pid: int) -> None:
    """Give a child back what it would have had. Where that cannot be done it keeps ours."""
    if not hasattr(resource, "prlimit"):
        return
    with suppress(OSError, ValueError):  # it has gone already, or is another user's
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        if soft != GIVEN:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (GIVEN, hard))
