"""Metrics as the text that Prometheus reads, in both of its formats.

Of our own thousands of series each line is put together from what stands already: a scrape
with 500 tools takes a few ms of the processor that calls need, not a fifth of a second. What
tells of the process and of Python itself is prometheus_client's, loaded by the first scrape.
Source: the Prometheus text format 0.0.4, and OpenMetrics 1.0.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

Labels = tuple[str, ...]
ESCAPED = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Family(NamedTuple):
    """All series of one counter or gauge. `labels` are the names that `samples` give values for."""

    kind: str
    name: str
    """Of a counter without its `_total`."""
    documentation: str
    labels: Labels
    samples: Iterable[tuple[Sequence[str], float]]

    def text(self, *, is_open: bool) -> str:
        """`is_open`: as OpenMetrics has it."""
        name = f"{self.name}_total" if self.kind == "counter" else self.name
        lines = [head(self.name if is_open else name, self.kind, self.documentation)]
        lines += [
            f"{name}{braced(labelled(self.labels, values))} {number(sample)}\n"
            for values, sample in self.samples
        ]
        return "".join(lines)


def head(name: str, kind: str, documentation: str) -> str:
    return f"# HELP {name} {documentation}\n# TYPE {name} {kind}\n"


def labelled(names: Labels, values: Sequence[str]) -> str:
    """`name="value",name="value"`, in the order of the names."""
    pairs = sorted(zip(names, values, strict=True))
    return ",".join([f'{name}="{value.translate(ESCAPED)}"' for name, value in pairs])


def braced(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def number(value: float) -> str:
    """As both formats write it."""
    return repr(float(value))


Rest = Callable[[], bytes]


class Format(NamedTuple):
    content_type: str
    is_open: bool
    rest: Rest
    """What prometheus_client tells, with the end of the page."""


def formats() -> Callable[[str], Format]:
    """What to answer with, by the `Accept` header. Loads prometheus_client."""
    from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
    from prometheus_client.exposition import choose_encoder

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)

    def chosen(accept: str) -> Format:
        encode, content_type = choose_encoder(accept)
        is_open = content_type.startswith("application/openmetrics-text")
        return Format(content_type, is_open, lambda: encode(registry))

    return chosen
