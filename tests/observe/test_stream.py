"""Standard error may be a pipe that nobody reads, or that nobody holds any more."""

import os
from collections.abc import Iterator

import pytest

from gateway.observe.stream import LineStream


@pytest.fixture
def pipe() -> Iterator[list[int]]:
    """[reading end, writing end]; a test that closes one takes it out."""
    ends = list(os.pipe())
    yield ends
    for end in ends:
        os.close(end)


def test_a_line_is_out_when_write_returns(pipe: list[int]) -> None:
    assert LineStream(pipe[1]).write(b"one\n")
    assert os.read(pipe[0], 100) == b"one\n"


def test_a_reader_who_left_makes_nobody_fail(pipe: list[int]) -> None:
    stream = LineStream(pipe[1])
    os.close(pipe.pop(0))

    assert [stream.write(b"x\n") for _ in range(3)] == [False, False, False]
    assert stream.dropped == 3


def test_a_reader_who_does_not_read_makes_nobody_wait_and_tears_no_line(pipe: list[int]) -> None:
    stream = LineStream(pipe[1])
    lines = [f"{n}:{'x' * 5000}\n".encode() for n in range(100)]

    taken = [line for line in lines if stream.write(line)]  # would hang here if it waited
    assert 0 < len(taken) < 100
    assert stream.dropped == 100 - len(taken)

    text = b""
    last = b"the last\n"
    while not stream.write(last):
        text += os.read(pipe[0], 1 << 16)
    os.set_blocking(pipe[0], False)
    text += os.read(pipe[0], 1 << 20)
    assert text == b"".join(taken) + last


def test_a_closed_stream_makes_nobody_fail() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)

    assert LineStream(writing).write(b"x\n") is False


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_loses_lines_but_is_tried_again() -> None:
    fd = os.open("/dev/full", os.O_WRONLY)
    stream = LineStream(fd)
    try:
        assert stream.write(b"lost\n") is False
        room = os.open(os.devnull, os.O_WRONLY)
        os.dup2(room, fd)
        os.close(room)
        assert stream.write(b"written\n") is True
    finally:
        os.close(fd)
