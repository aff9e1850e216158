"""Bounds in words, as a person would write them in the configuration."""

from gateway.calls.call import Limit

_UNITS = ((3600.0, "h"), (60.0, "m"), (1.0, "s"))


def duration(seconds: float) -> str:
    """`10s`, `5m`, `250ms`: in the largest unit of which it is a whole number of two or more."""
    for size, unit in _UNITS:
        count = seconds / size
        if count == int(count) and (count >= 2 or (unit == "s" and count)):
            return f"{count:.0f}{unit}"
    return f"{seconds:.3g}s" if seconds >= 1 else f"{seconds * 1000:.3g}ms"


def origin(limit: Limit) -> str:
    """`set at onegate.yaml:27`, or that nobody set it."""
    return "the default" if limit.source == "default" else f"set at {limit.source}"


def rate(count: float, per_s: float) -> str:
    """`10/s`, `60/min`, `100/h`."""
    unit = {1.0: "s", 60.0: "min", 3600.0: "h"}.get(per_s, duration(per_s))
    return f"{count:.0f}/{unit}"
