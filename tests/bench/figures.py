"""What one measurement found."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Figures:
    """Of one window: latencies in seconds of the answers that came in it, faults of all time."""

    latencies_s: list[float] = field(default_factory=list)
    seconds: float = 0.0
    cpu_s: float = 0.0
    """Of the gateway's own processes, without its servers."""
    client_cpu_s: float = 0.0
    failed: int = 0
    """Wrong, mixed-up, failed and missing answers, those before and after the window included."""
    faults: list[str] = field(default_factory=list)
    """The first few of them."""

    def fail(self, fault: str) -> None:
        self.failed += 1
        if len(self.faults) < 3:
            self.faults.append(fault)

    @property
    def calls(self) -> int:
        return len(self.latencies_s)

    @property
    def per_s(self) -> float:
        return self.calls / self.seconds if self.seconds else 0.0

    @property
    def cpu_us(self) -> float:
        """CPU of the gateway for one call."""
        return self.cpu_s / self.calls * 1e6 if self.calls else float("nan")

    def quantile_ms(self, share: float) -> float:
        return quantile(self.latencies_s, share) * 1e3

    def summary(self) -> dict[str, object]:
        """For the file of results."""
        return {
            "calls": self.calls,
            "seconds": round(self.seconds, 3),
            "per_s": round(self.per_s, 1),
            "p50_ms": round(self.quantile_ms(0.5), 3),
            "p95_ms": round(self.quantile_ms(0.95), 3),
            "p99_ms": round(self.quantile_ms(0.99), 3),
            "cpu_us": round(self.cpu_us, 1),
            "client_cpu_s": round(self.client_cpu_s, 3),
            "failed": self.failed,
            "faults": self.faults,
        }


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")
