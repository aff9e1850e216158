"""A child process that behaves as its first argument says; for the tests of the process layer.

Every mode that goes on living writes `ready PID…` first, so that a test can wait for it.
"""

import os
import signal
import subprocess
import sys
import time

FOREVER_S = 120


def main() -> None:
    mode, *rest = sys.argv[1:]
    MODES[mode](*rest)


def say(text: str) -> None:
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.buffer.flush()


def echo() -> None:
    """Every line back, until the input ends."""
    say(f"ready {os.getpid()}")
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def write(*pieces: str) -> None:
    """Write pieces given in hex, each with a write of its own, then leave."""
    for piece in pieces:
        os.write(1, bytes.fromhex(piece))


def large(size: str, then: str = "after") -> None:
    """One long line, in large writes; then a short one."""
    left = int(size)
    while left:
        left -= os.write(1, b"x" * min(left, 1 << 20))
    os.write(1, b"\n" + then.encode() + b"\n")
    sys.stdin.buffer.read()


def leave(code: str, *last_words: str) -> None:
    """Answers still in the pipe, more than one read takes; words on stderr; and out."""
    for words in last_words:
        print(words, file=sys.stderr)
    sys.stderr.flush()
    os.write(1, (b"x" * 9_999 + b"\n") * 20 + b"last answer\n")
    os._exit(int(code))


def die(name: str) -> None:
    os.kill(os.getpid(), getattr(signal, name))


def stubborn(*names: str) -> None:
    """Ignores the end of its input, and these signals."""
    for name in names:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    say(f"ready {os.getpid()}")
    end = time.monotonic() + FOREVER_S
    while time.monotonic() < end:
        time.sleep(1)


def polite() -> None:
    """Leaves on TERM, with a code of its own; ignores the end of its input."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(15))
    stubborn()


def wrap(how: str, *names: str) -> None:
    """A wrapper around a stubborn grandchild: `stays`, `leaves` at the end of input, or `exits`."""
    grandchild = subprocess.Popen(
        [sys.executable, "-S", __file__, "stubborn", *names], stdout=subprocess.PIPE
    )
    assert grandchild.stdout is not None
    grandchild.stdout.readline()
    say(f"ready {os.getpid()} {grandchild.pid}")
    if how == "exits":
        os._exit(0)
    sys.stdin.buffer.read()
    if how == "leaves":
        os._exit(0)
    grandchild.wait()


def holds_stdout() -> None:
    """Leaves a grandchild that keeps our stdout open and goes on writing to it."""
    code = "import time\nwhile True:\n    print('noise', flush=True)\n    time.sleep(0.01)"
    grandchild = subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)
    say(f"ready {grandchild.pid}")
    os._exit(7)


def closes(*fds: str) -> None:
    """Closes some of its pipes but lives."""
    say(f"ready {os.getpid()}")
    sys.stdin.buffer.readline()
    for fd in fds:
        os.close(int(fd))
    time.sleep(FOREVER_S)


def deaf() -> None:
    """Never reads its input."""
    say(f"ready {os.getpid()}")
    time.sleep(FOREVER_S)


def hard_of_hearing() -> None:
    """Reads its input only after being told so by a signal; then tells how much there was."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    say(f"ready {os.getpid()}")
    signal.sigwait({signal.SIGUSR1})
    total = 0
    for line in sys.stdin.buffer:
        total += len(line)
        if line == b"end\n":
            say(f"read {total}")


def shouts(lines: str) -> None:
    """A flood on stderr, then an answer."""
    line = b"\x1b[31mflood\x1b[0m " + b"y" * 80 + b"\n"
    for _ in range(int(lines) // 1000):
        sys.stderr.buffer.write(line * 1000)
    sys.stderr.buffer.write(b"the end")
    sys.stderr.buffer.flush()
    say("answer")
    sys.stdin.buffer.read()


def shows() -> None:
    """Its environment and folder, as it sees them."""
    for name, value in sorted(os.environ.items()):
        say(f"{name}={value}")
    say(f"cwd {os.getcwd()}")
    say(f"executable {sys.executable}")
    say(
        f"fds {sorted(int(fd) for fd in os.listdir('/proc/self/fd'))}"
        if os.path.isdir("/proc")
        else "fds unknown"
    )
    say(f"leader {os.getpid() == os.getsid(0) == os.getpgid(0)}")


MODES = {
    function.__name__: function
    for function in (
        *(echo, write, large, leave, die, stubborn, polite, wrap, holds_stdout, closes, deaf),
        *(hard_of_hearing, shouts, shows),
    )
}

if __name__ == "__main__":
    main()
