"""How quantities and addresses are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.annotations import Misfit
from gateway.config.units import Address, Rate, seconds, size_bytes, spelt_size


@pytest.mark.parametrize(
    ("written", "value_s"),
    [("500ms", 0.5), ("30s", 30), ("1.5m", 90), ("2h", 7200), ("1d", 86400), (3, 3), (0.25, 0.25)],
)
def test_durations_are_seconds(written: object, value_s: float) -> None:
    assert seconds().read(written) == value_s


@pytest.mark.parametrize(
    "written",
    [
        "",
        "30",
        "s",
        "30 s",
        "-1s",
        "1e3s",
        "1m30s",
        "0s",
        0,
        -1,
        True,
        None,
        float("nan"),
        [],
        "5w",
        "400d",
        1e300,
        "٣s",
    ],
)
def test_what_is_no_duration_is_refused(written: object) -> None:
    with pytest.raises(Misfit, match="a duration"):
        seconds().read(written)


def test_nothing_is_a_duration_where_that_makes_sense() -> None:
    assert seconds(or_zero=True).read("0s") == 0.0


@pytest.mark.parametrize(
    ("written", "value"),
    [("64KiB", 65536), ("4MiB", 4194304), ("1.5KiB", 1536), ("1kB", 1000), ("2B", 2), (17, 17)],
)
def test_sizes_are_bytes(written: object, value: int) -> None:
    assert size_bytes(1, 2**30).read(written) == value


@pytest.mark.parametrize("written", ["4M", "4 MiB", "0.3B", "1TiB", "-1B", "", True, 2**31, 0])
def test_what_is_no_size_is_refused(written: object) -> None:
    with pytest.raises(Misfit, match="a size"):
        size_bytes(1, 2**30).read(written)


@given(st.integers(0, 2**40))
def test_a_spelt_size_reads_back(size: int) -> None:
    assert size_bytes(0, 2**40).read(spelt_size(size)) == size


def test_rates_count_calls_in_seconds() -> None:
    assert Rate.parse("10/s") == Rate(10, 1)
    assert Rate.parse("60/min") == Rate(60, 60)
    assert Rate.parse("100/h") == Rate(100, 3600)
    for wrong in ["", "10", "10/sec", "0/s", "1.5/s", "10 / s", "/s"]:
        with pytest.raises(ValueError, match="rate"):
            Rate.parse(wrong)


@pytest.mark.parametrize(
    ("text", "address", "is_loopback"),
    [
        ("127.0.0.1:8765", Address("127.0.0.1", 8765), True),
        ("127.8.8.8:0", Address("127.8.8.8", 0), True),
        ("localhost:80", Address("localhost", 80), True),
        ("[::1]:80", Address("::1", 80), True),
        ("[::ffff:127.0.0.1]:80", Address("::ffff:127.0.0.1", 80), True),
        ("unix:/run/x:y.sock", Address(path="/run/x:y.sock"), True),
        (":8765", Address("", 8765), False),
        ("0.0.0.0:1", Address("0.0.0.0", 1), False),
        ("[::]:1", Address("::", 1), False),
        ("10.0.0.1:1", Address("10.0.0.1", 1), False),
        ("localhost.example:1", Address("localhost.example", 1), False),
    ],
)
def test_addresses_read_and_write(text: str, address: Address, is_loopback: bool) -> None:
    assert Address.parse(text) == address
    assert str(address) == text
    assert address.is_loopback is is_loopback


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        "8765",
        "host:",
        "host:99999",
        "host:-1",
        "::1:80",
        "[::1]",
        "[host]:1",
        "[127.0.0.1]:1",
        "http://host:1",
        "unix:",
        "a b:1",
        "host:1/mcp",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Address.parse(text)
