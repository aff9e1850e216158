"""How bounds read."""

import pytest

from gateway.policy.phrases import duration, rate


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.25, "250ms"), (0.0123, "12.3ms"), (1, "1s"), (1.5, "1.5s"), (10, "10s"), (60, "60s"),
        (90, "90s"), (120, "2m"), (600, "10m"), (3600, "60m"), (7200, "2h"), (86400, "24h"),
    ],
)  # fmt: skip
def test_a_duration_reads_as_one_would_write_it(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_rate_reads_as_one_would_write_it() -> None:
    assert [rate(10, 1), rate(60, 60), rate(100, 3600)] == ["10/s", "60/min", "100/h"]
