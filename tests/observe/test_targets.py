"""Appending to a file that others rotate, on a disk that may fill up."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gateway.observe.stream import LineStream
from gateway.observe.targets import FileTarget, StreamTarget


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    FileTarget(tmp_path / "calls.jsonl").close()
    assert stat.S_IMODE((tmp_path / "calls.jsonl").stat().st_mode) == 0o600


def test_what_was_there_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text("old\n")
    target = FileTarget(path)

    assert target.append([b"new\n"]) == 1
    target.close()
    assert path.read_text() == "old\nnew\n"


def test_a_line_torn_by_a_crash_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text('{"ts":"2026')
    target = FileTarget(path)
    target.append([b"whole\n"])
    target.close()

    assert path.read_text().splitlines() == ['{"ts":"2026', "whole"]


def test_a_path_that_cannot_work_is_heard_of_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no/such"):
        FileTarget(tmp_path / "no/such" / "calls.jsonl")


@pytest.mark.parametrize("how", ["renamed", "removed", "replaced"])
def test_a_rotated_file_is_opened_anew(tmp_path: Path, how: str) -> None:
    path, old = tmp_path / "calls.jsonl", tmp_path / "calls.jsonl.1"
    target = FileTarget(path)
    target.append([b"before\n"])
    if how == "removed":
        path.unlink()
    else:
        path.rename(old)
    if how == "replaced":
        path.write_text("")

    target.append([b"after\n"])
    target.close()

    assert path.read_text() == "after\n"
    assert how == "removed" or old.read_text() == "before\n"


def test_a_truncated_file_is_written_on_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    target = FileTarget(path)
    target.append([b"before\n"])
    os.truncate(path, 0)

    target.append([b"after\n"])
    target.close()
    assert path.read_text() == "after\n"


def test_a_file_emptied_on_a_full_disk_begins_with_a_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    ran = subprocess.run(
        [sys.executable, "-c", FILLS_UP, path, "emptied"],
        capture_output=True, text=True, timeout=30, env={"PYTHONPATH": os.getcwd()},
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert path.read_text().splitlines() == [f"{n:02d}{'x' * 97}" for n in range(10, 20)]


@pytest.mark.parametrize("then", ["freed", "emptied"])
def test_a_full_disk_with_a_torn_line_on_it_is_no_reason_not_to_start(
    tmp_path: Path, then: str
) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text("torn")
    ran = subprocess.run(
        [sys.executable, "-c", STARTS_FULL, path, then],
        capture_output=True, text=True, timeout=30, env={"PYTHONPATH": os.getcwd()},
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert path.read_text().splitlines() == (["whole"] if then == "emptied" else ["torn", "whole"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_takes_as_much_as_its_reader_reads(tmp_path: Path) -> None:
    """Linux keeps 64 KiB for a pipe; what is more has to wait for the reader, not for long."""
    os.mkfifo(tmp_path / "pipe")
    lines = [b"x" * 1023 + b"\n"] * 64
    received: list[bytes] = []
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)
    target = FileTarget(tmp_path / "pipe")
    assert target.append(lines) == 64

    def read_late() -> None:
        while sum(map(len, received)) < 128 * 1024:
            received.append(os.read(reading, 4096))

    late = threading.Timer(0.05, read_late)
    late.daemon = True  # fails rather than hangs where nothing comes
    late.start()
    left = lines
    while left:
        left = left[target.append(left) :]
    late.join()
    target.close()
    os.close(reading)
    assert b"".join(received) == b"".join(lines * 2)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_without_reader_is_an_error_not_a_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device"):
        FileTarget(tmp_path / "pipe")


FILLS_UP = """
import resource, sys
from pathlib import Path
from gateway.observe.targets import FileTarget

path = Path(sys.argv[1])
lines = [f"{n:02d}{'x' * 97}\\n".encode() for n in range(20)]
target = FileTarget(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (1050, resource.RLIM_INFINITY))
done = target.append(lines)
assert done == 10, done
try:
    target.append(lines[done:])
    raise SystemExit("the disk was to be full")
except OSError:
    pass
assert path.stat().st_size == 1050
if sys.argv[2] == "rotated":
    path.rename(path.with_suffix(".1"))
if sys.argv[2] == "emptied":
    path.write_text("")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert target.append(lines[done:]) == 10
"""

STARTS_FULL = """
import resource, sys
from pathlib import Path
from gateway.observe.targets import FileTarget

path = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (4, resource.RLIM_INFINITY))
target = FileTarget(path)
for _ in range(2):
    try:
        target.append([b"whole\\n"])
        raise SystemExit("the disk was to be full")
    except OSError:
        pass
if sys.argv[2] == "emptied":
    path.write_text("")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert target.append([b"whole\\n"]) == 1
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of a process")
@pytest.mark.parametrize("then", ["freed", "rotated"])
def test_a_disk_that_fills_up_in_mid_line_tears_none(tmp_path: Path, then: str) -> None:
    path = tmp_path / "calls.jsonl"
    ran = subprocess.run(
        [sys.executable, "-c", FILLS_UP, path, then],
        capture_output=True, text=True, timeout=30, env={"PYTHONPATH": os.getcwd()},
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    expected = [f"{n:02d}{'x' * 97}" for n in range(20)]
    assert path.read_text().splitlines() == (expected if then == "freed" else expected[10:])


def test_the_stream_takes_line_by_line_and_says_how_far_it_got() -> None:
    reading, writing = os.pipe()
    target = StreamTarget(LineStream(writing))
    lines = [b"x" * 3000 + b"\n"] * 100

    out = target.append(lines)
    assert 0 < out < 100
    with pytest.raises(BlockingIOError):
        target.append(lines[out:])
    os.close(reading)
    os.close(writing)
